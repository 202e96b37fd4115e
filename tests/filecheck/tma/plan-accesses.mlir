// RUN: tilec opt -p tileas-plan-accesses{tma-descriptors=host} --gpu-name sm_90 --remarks -

// Operands of a product by tensor maps, where the view allows: a column-major one, too. The product
// itself leaves so as well; its tile has 4 KiB.
// CHECK-NOT: no tensor map copies the tile
// CHECK: func.func @product
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: copy = "tma", order = array<i32: 1, 0>
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: copy = "tma", order = array<i32: 0, 1>
// CHECK: "nv_tileas.tiled_store"
// CHECK-SAME: copy = "tma"
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!out = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
!mem = !nv_tileaa.memref<f16, array<i64: 64, 64>, array<i64: 64, 1>>
!turned = !nv_tileaa.memref<f16, array<i64: 64, 64>, array<i64: 1, 64>>
!result = !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>>
!va = !nv_tileaa.tiled_view<!mem, array<i32: 32, 32>, array<i32: 0, 1>, "zero">
!vb = !nv_tileaa.tiled_view<!turned, array<i32: 32, 32>, array<i32: 0, 1>, "zero">
!vc = !nv_tileaa.tiled_view<!result, array<i32: 32, 32>, array<i32: 0, 1>, "">
func.func @product(%p: !ptr, %q: !out, %i: i32, %c: tensor<32x32xf32>) attributes {nv_tileaa.kernel} {
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %b = "nv_tileaa.assume"(%q) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!out) -> !out
  %ma = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %mb = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !turned
  %mc = "nv_tileaa.make_memref"(%b) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!out) -> !result
  %va = "nv_tileaa.block_tile"(%ma) : (!mem) -> !va
  %vb = "nv_tileaa.block_tile"(%mb) : (!turned) -> !vb
  %vc = "nv_tileaa.block_tile"(%mc) : (!result) -> !vc
  %zero = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %one = arith.constant 1 : i32
  %d = scf.for %j = %zero to %two step %one iter_args(%s = %c) -> (tensor<32x32xf32>) : i32 {
    %x:2 = "nv_tileas.tiled_load"(%va, %i, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!va, i32, i32) -> (tensor<32x32xf16>, !tok)
    %y:2 = "nv_tileas.tiled_load"(%vb, %j, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!vb, i32, i32) -> (tensor<32x32xf16>, !tok)
    %e = "nv_tileas.dot"(%x#0, %y#0, %s) {atom = "fma", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>) -> tensor<32x32xf32>
    scf.yield %e : tensor<32x32xf32>
  }
  %t = "nv_tileas.tiled_store"(%vc, %d, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!vc, tensor<32x32xf32>, i32, i32) -> !tok
  return
}
// -----
// What the rules do not allow, each with its reasons.
// CHECK: TMA: the address is not known to be a multiple of 16 bytes
// CHECK: TMA: the hint allow_tma is false
// CHECK-NEXT: TMA: coordinates are i64, and those of tensor maps i32
// CHECK-NEXT: TMA: rows of the tile have 8 bytes, which is no multiple of 16
// CHECK: TMA: the view depends on more than arguments, and no loop copies by its map: it depends on nv_tileaa.get_program_id
// CHECK: TMA: the tile is read after the kernel has written memory
// CHECK-NEXT: TMA: the stride of axis 0 is not known to be a multiple of 16 bytes
// CHECK: TMA: it does not pay: the tile goes to registers
// CHECK: func.func @refused
// CHECK-NOT: copy = "tma"
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!tok = !nv_tileaa.mem_token
!mem = !nv_tileaa.memref<f16, array<i64: 64, 64>, array<i64: 64, 1>>
!open = !nv_tileaa.memref<f16, array<i64: -9223372036854775808, 64>, array<i64: 64, 1>>
!odd = !nv_tileaa.memref<f16, array<i64: 64, 64>, array<i64: 68, 1>>
!v = !nv_tileaa.tiled_view<!mem, array<i32: 32, 32>, array<i32: 0, 1>, "neg_inf">
!n = !nv_tileaa.tiled_view<!mem, array<i32: 32, 4>, array<i32: 0, 1>, "">
!o = !nv_tileaa.tiled_view<!open, array<i32: 32, 32>, array<i32: 0, 1>, "">
!q = !nv_tileaa.tiled_view<!odd, array<i32: 32, 32>, array<i32: 0, 1>, "">
func.func @refused(%p: !ptr, %i: i32, %l: i64, %b: tensor<32x32xf16>, %s: tensor<4x32xf16>, %c: tensor<32x32xf32>) attributes {nv_tileaa.kernel} {
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %n = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %ma = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %mo = "nv_tileaa.make_memref"(%a, %n) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !open
  %mq = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !odd
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !v
  %w = "nv_tileaa.block_tile"(%ma) : (!mem) -> !n
  %o = "nv_tileaa.block_tile"(%mo) : (!open) -> !o
  %q = "nv_tileaa.block_tile"(%mq) : (!odd) -> !q
  %x:2 = "nv_tileas.tiled_load"(%v, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!v, i32, i32) -> (tensor<32x32xf16>, !tok)
  %d = "nv_tileas.dot"(%x#0, %b, %c) {atom = "fma", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %y:2 = "nv_tileas.tiled_load"(%w, %l, %l) {hints = {allow_tma = false}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!n, i64, i64) -> (tensor<32x4xf16>, !tok)
  %e = "nv_tileas.dot"(%y#0, %s, %d) {atom = "fma", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<32x4xf16>, tensor<4x32xf16>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %z:2 = "nv_tileas.tiled_load"(%o, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!o, i32, i32) -> (tensor<32x32xf16>, !tok)
  %f = "nv_tileas.dot"(%z#0, %b, %e) {atom = "fma", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %t = "nv_tileas.tiled_store"(%o, %z#0, %i, %i, %z#1) {hints = {allow_tma = false}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!o, tensor<32x32xf16>, i32, i32, !tok) -> !tok
  %u:2 = "nv_tileas.tiled_load"(%q, %i, %i, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!q, i32, i32, !tok) -> (tensor<32x32xf16>, !tok)
  %g = "nv_tileas.dot"(%u#0, %b, %f) {atom = "fma", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %k:2 = "nv_tileas.tiled_load"(%q, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!q, i32, i32) -> (tensor<32x32xf16>, !tok)
  return
}

// RUN: tilec opt -p tileas-shorten-steps --gpu-name sm_120

// Tiles of 128 elements of K are 64 KB, of which a block of 99 KB has room for one stage: steps of
// 64, twice as many. Half of the last tile may lie outside as a whole, which is padding.
// CHECK-LABEL: func.func @halved
// CHECK-DAG: "nv_tileaa.block_tile"(%{{.*}}) {parts_of = array<i32: 128, 128>} : {{.*}} array<i32: 128, 64>, array<i32: 0, 1>, "zero">
// CHECK-DAG: "nv_tileaa.block_tile"(%{{.*}}) {parts_of = array<i32: 128, 128>} : {{.*}} array<i32: 64, 128>, array<i32: 0, 1>, "zero">
// CHECK: %[[COUNT:.*]] = arith.ceildivsi %{{.*}}, %{{.*}} : i32
// CHECK: %[[TWICE:.*]] = arith.muli %[[COUNT]], %c2_i32
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[TWICE]]
// CHECK: "nv_tileaa.tiled_load"(%{{.*}}, %{{.*}}, %[[K]]){{.*}} -> (tensor<128x64xf16>
// CHECK: "nv_tileaa.tiled_load"(%{{.*}}, %[[K]], %{{.*}}){{.*}} -> (tensor<64x128xf16>
// CHECK: "nv_tileaa.dot"{{.*}} (tensor<128x64xf16>, tensor<64x128xf16>, tensor<128x128xf32>)
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!memref = !nv_tileaa.memref<f16, array<i64: -9223372036854775808, -9223372036854775808>, array<i64: -9223372036854775808, 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 128, 128>, array<i32: 0, 1>, "zero">
!tok = !nv_tileaa.mem_token
!tile = tensor<128x128xf16>
!sum = tensor<128x128xf32>
func.func @halved(%a: !ptr, %b: !ptr, %m: i32, %n: i32, %depth: i32, %x: i32, %y: i32) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : !sum
  %ma = "nv_tileaa.make_memref"(%a, %m, %depth, %depth) {operandSegmentSizes = array<i32: 1, 2, 1>} : (!ptr, i32, i32, i32) -> !memref
  %mb = "nv_tileaa.make_memref"(%b, %depth, %n, %n) {operandSegmentSizes = array<i32: 1, 2, 1>} : (!ptr, i32, i32, i32) -> !memref
  %va = "nv_tileaa.block_tile"(%ma) : (!memref) -> !view
  %vb = "nv_tileaa.block_tile"(%mb) : (!memref) -> !view
  %count = arith.ceildivsi %depth, %c128 : i32
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %l:2 = "nv_tileaa.tiled_load"(%va, %x, %k) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (!tile, !tok)
    %r:2 = "nv_tileaa.tiled_load"(%vb, %k, %y) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (!tile, !tok)
    %p = "nv_tileaa.dot"(%l#0, %r#0, %acc) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tile, !tile, !sum) -> !sum
    scf.yield %p : !sum
  }
  return %sum : !sum
}
// -----
// The number of turns may be anything; a place is not the loop's count; the count is asked for
// otherwise: the loops stay.
// CHECK-LABEL: func.func @stay
// CHECK-NOT: parts_of
// CHECK-COUNT-3: scf.for
// CHECK-NOT: tensor<64x128xf16>
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!memref = !nv_tileaa.memref<f16, array<i64: -9223372036854775808, -9223372036854775808>, array<i64: -9223372036854775808, 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 128, 128>, array<i32: 0, 1>, "zero">
!tok = !nv_tileaa.mem_token
!tile = tensor<128x128xf16>
!sum = tensor<128x128xf32>
func.func @stay(%a: !ptr, %b: !ptr, %m: i32, %n: i32, %depth: i32, %x: i32, %y: i32) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : !sum
  %ma = "nv_tileaa.make_memref"(%a, %m, %depth, %depth) {operandSegmentSizes = array<i32: 1, 2, 1>} : (!ptr, i32, i32, i32) -> !memref
  %mb = "nv_tileaa.make_memref"(%b, %depth, %n, %n) {operandSegmentSizes = array<i32: 1, 2, 1>} : (!ptr, i32, i32, i32) -> !memref
  %va = "nv_tileaa.block_tile"(%ma) : (!memref) -> !view
  %vb = "nv_tileaa.block_tile"(%mb) : (!memref) -> !view
  %count = arith.ceildivsi %depth, %c128 : i32
  %one = scf.for %k = %c0 to %depth step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %l:2 = "nv_tileaa.tiled_load"(%va, %x, %k) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (!tile, !tok)
    %r:2 = "nv_tileaa.tiled_load"(%vb, %k, %y) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (!tile, !tok)
    %p = "nv_tileaa.dot"(%l#0, %r#0, %acc) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tile, !tile, !sum) -> !sum
    scf.yield %p : !sum
  }
  %two = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %one) -> (!sum) : i32 {
    %l:2 = "nv_tileaa.tiled_load"(%va, %x, %y) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (!tile, !tok)
    %r:2 = "nv_tileaa.tiled_load"(%vb, %k, %y) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (!tile, !tok)
    %p = "nv_tileaa.dot"(%l#0, %r#0, %acc) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tile, !tile, !sum) -> !sum
    scf.yield %p : !sum
  }
  %three = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %two) -> (!sum) : i32 {
    %l:2 = "nv_tileaa.tiled_load"(%va, %x, %k) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (!tile, !tok)
    %r:2 = "nv_tileaa.tiled_load"(%vb, %k, %k) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (!tile, !tok)
    %p = "nv_tileaa.dot"(%l#0, %r#0, %acc) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tile, !tile, !sum) -> !sum
    scf.yield %p : !sum
  }
  return %three : !sum
}
// -----
// CHECK: error: 'nv_tileaa.dot' op expects the shape of operand #A and #B to be compatible
!left = tensor<128x64xf16>
!right = tensor<128x128xf16>
!sum = tensor<128x128xf32>
func.func @apart(%l: !left, %r: !right, %s: !sum) -> !sum {
  %p = "nv_tileaa.dot"(%l, %r, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!left, !right, !sum) -> !sum
  return %p : !sum
}

// RUN: tilec opt -p tileas-separate-host-tma --gpu-name sm_90

// A view of arguments: its map is a parameter, and both users of equal maps share it.
// CHECK: func.func @arguments(%[[A:.*]]: !nv_tileaa.ptr<f16, 1 : i32>, %[[N:.*]]: i32, %[[S:.*]]: i32, %[[I:.*]]: i32, %[[MAP:.*]]: !nv_tileas.tma_desc<tensor<128x64xf16>, "128B">)
// CHECK-SAME: "nv_tileas.num-device-tmas" = 0 : i32
// CHECK-SAME: "nv_tileas.num-host-tmas" = 1 : i32
// CHECK-SAME: \22parameter\22:4,\22type\22:\22f16\22,\22address\22:{\22arg\22:0,\22bits\22:64}
// CHECK-SAME: \22dims\22:[{\22arg\22:1,\22bits\22:32},512]
// CHECK-SAME: \22muli\22,64,{\22arg\22:2,\22bits\22:32},2]
// CHECK-SAME: \22box\22:[64,128],\22swizzle\22:\22128B\22
// CHECK-NOT: make_tiled_tma_desc
// CHECK: "nv_tileas.prefetch_tma_desc"(%[[MAP]])
// CHECK: "nv_tileas.prefetch_tma_desc"(%[[MAP]])
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mem = !nv_tileaa.memref<f16, array<i64: 512, -9223372036854775808>, array<i64: -9223372036854775808, 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 128, 64>, array<i32: 0, 1>, "zero">
!desc = !nv_tileas.tma_desc<tensor<128x64xf16>, "128B">
func.func @arguments(%p: !ptr, %n: i32, %s: i32, %i: i32) attributes {nv_tileaa.kernel} {
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %m = "nv_tileaa.make_memref"(%a, %n, %s) {operandSegmentSizes = array<i32: 1, 1, 1>} : (!ptr, i32, i32) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %d = "nv_tileas.make_tiled_tma_desc"(%v) {oob_mode = "zero"} : (!view) -> !desc
  %e = "nv_tileas.make_tiled_tma_desc"(%v) {oob_mode = "zero"} : (!view) -> !desc
  "nv_tileas.prefetch_tma_desc"(%d) : (!desc) -> ()
  "nv_tileas.prefetch_tma_desc"(%e) : (!desc) -> ()
  return
}
// -----
// Axes along which copies are at 0 are said to the host.
// CHECK: func.func @joined
// CHECK-SAME: \22box\22:[8,32,4],\22swizzle\22:\22none\22
// CHECK-SAME: \22joined\22:2
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mem = !nv_tileaa.memref<f16, array<i64: 64, 32, 8>, array<i64: 256, 8, 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 4, 32, 8>, array<i32: 0, 1, 2>, "zero">
!desc = !nv_tileas.tma_desc<tensor<4x32x8xf16>, "none">
func.func @joined(%p: !ptr) attributes {nv_tileaa.kernel} {
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %m = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %d = "nv_tileas.make_tiled_tma_desc"(%v) {joined = 2 : i32, oob_mode = "zero"} : (!view) -> !desc
  "nv_tileas.prefetch_tma_desc"(%d) : (!desc) -> ()
  return
}
// -----
// An extent that depends on the block: the kernel makes the map itself.
// CHECK: func.func @block
// CHECK-SAME: "nv_tileas.num-device-tmas" = 1 : i32
// CHECK-SAME: "nv_tileas.num-host-tmas" = 0 : i32
// CHECK: make_tiled_tma_desc
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: -9223372036854775808>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64>, array<i32: 0>, "zero">
!desc = !nv_tileas.tma_desc<tensor<64xf32>, "none">
func.func @block(%p: !ptr) attributes {nv_tileaa.kernel} {
  %n = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
  %m = "nv_tileaa.make_memref"(%p, %n) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %d = "nv_tileas.make_tiled_tma_desc"(%v) {oob_mode = "zero"} : (!view) -> !desc
  "nv_tileas.prefetch_tma_desc"(%d) : (!desc) -> ()
  return
}
// -----
// CHECK: error: 'nv_tileas.make_tiled_tma_desc' op TmaLoad only support zero padding now
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: 64>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64>, array<i32: 0>, "zero">
!desc = !nv_tileas.tma_desc<tensor<64xf32>, "none">
func.func @constant(%p: !ptr) attributes {nv_tileaa.kernel} {
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %d = "nv_tileas.make_tiled_tma_desc"(%v) {oob_mode = "constant"} : (!view) -> !desc
  return
}

// RUN: tilec opt -p tileas-plan-accesses{bulk-loads=always},tileas-assign-layouts,lower-tma-load-store-to-async{loads=true} --gpu-name sm_90 --remarks -

// Two runs of 64 elements, whose rows lie 96 apart; their barrier expects the bytes of both.
// CHECK: func.func @rows
// CHECK: "nv_tileas.barrier_expect"
// CHECK-SAME: bytes = 512
// CHECK: "nv_tileas.async_copy"
// CHECK-SAME: bytes = 256
// CHECK: "nv_tileas.async_copy"
// CHECK-SAME: bytes = 256
// CHECK: "nv_tileas.barrier_wait"
// CHECK: "nv_tileas.copy"
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: 8, 64>, array<i64: 96, 1>>
!v = !nv_tileaa.tiled_view<!mem, array<i32: 2, 64>, array<i32: 0, 1>, "">
func.func @rows(%p: !ptr, %i: i32, %j: i32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %m = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !v
  %x:2 = "nv_tileas.tiled_load"(%v, %i, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!v, i32, i32) -> (tensor<2x64xf32>, !nv_tileaa.mem_token)
  %y = math.absf %x#0 : tensor<2x64xf32>
  %t = "nv_tileas.tiled_store"(%v, %y, %i, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!v, tensor<2x64xf32>, i32, i32) -> !nv_tileaa.mem_token
  return
}
// -----
// What may reach past the end is left to threads, and so is what is not known to be aligned.
// CHECK: func.func @refused
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: copy = "generic"
// CHECK-SAME: bulk = "the tile may reach past the end along axis 0, and bulk copies fill nothing in"
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: copy = "generic"
// CHECK-SAME: bulk = "runs are not known to start at a multiple of 16 bytes"
// CHECK-NOT: nv_tileas.async_copy
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: 7, 64>, array<i64: 96, 1>>
!odd = !nv_tileaa.memref<f32, array<i64: 8, 64>, array<i64: 97, 1>>
!v = !nv_tileaa.tiled_view<!mem, array<i32: 2, 64>, array<i32: 0, 1>, "">
!o = !nv_tileaa.tiled_view<!odd, array<i32: 2, 64>, array<i32: 0, 1>, "">
func.func @refused(%p: !ptr, %i: i32, %j: i32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %m = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %n = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !odd
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !v
  %o = "nv_tileaa.block_tile"(%n) : (!odd) -> !o
  %x:2 = "nv_tileas.tiled_load"(%v, %i, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!v, i32, i32) -> (tensor<2x64xf32>, !nv_tileaa.mem_token)
  %y:2 = "nv_tileas.tiled_load"(%o, %i, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!o, i32, i32) -> (tensor<2x64xf32>, !nv_tileaa.mem_token)
  %z = arith.addf %x#0, %y#0 : tensor<2x64xf32>
  %t = "nv_tileas.tiled_store"(%v, %z, %i, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!v, tensor<2x64xf32>, i32, i32) -> !nv_tileaa.mem_token
  return
}

// RUN: tilec opt -p tileaa-canonicalize

// CHECK: func.func @shapes(%[[X:.*]]: f32
// CHECK: %[[S:.*]] = "nv_tileaa.splat"(%[[X]]) : (f32) -> tensor<4x8xf32>
// CHECK: return %[[S]]
func.func @shapes(%x: f32) -> tensor<4x8xf32> {
  %0 = "nv_tileaa.splat"(%x) : (f32) -> tensor<8xf32>
  %1 = "nv_tileaa.expand_dims"(%0) {axis = 0 : i32} : (tensor<8xf32>) -> tensor<1x8xf32>
  %2 = "nv_tileaa.broadcast"(%1) : (tensor<1x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
// -----
// CHECK: func.func @stays
// CHECK-NEXT: nv_tileaa.view
// CHECK-NEXT: nv_tileaa.broadcast
// CHECK-NEXT: return
func.func @stays(%x: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = "nv_tileaa.view"(%x) : (tensor<8xf32>) -> tensor<1x8xf32>
  %1 = "nv_tileaa.broadcast"(%0) : (tensor<1x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
// -----
// A store under a false mask is gone, and who waited for it waits for what it waited for.
// CHECK: func.func @never(%[[P:.*]]: !nv_tileaa.ptr{{.*}}, %[[X:.*]]: f32, %[[T:.*]]: !nv_tileaa.mem_token)
// CHECK-NEXT: arith.constant
// CHECK-NEXT: "nv_tileaa.store"(%[[P]], %[[X]], %[[T]])
// CHECK-NEXT: return
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
func.func @never(%p: !p, %x: f32, %t: !tok) {
  %no = arith.constant false
  %0 = "nv_tileaa.store"(%p, %x, %no, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!p, f32, i1, !tok) -> !tok
  %1 = "nv_tileaa.store"(%p, %x, %0) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!p, f32, !tok) -> !tok
  return
}
// -----
// CHECK: loc("tileaa-canonicalize.mlir":[[# @LINE + 2]]:8): error: 'nv_tileaa.view' op cannot view [8] as [4]
func.func @invalid(%x: tensor<8xf32>) {
  %0 = "nv_tileaa.view"(%x) : (tensor<8xf32>) -> tensor<4xf32>
  return
}

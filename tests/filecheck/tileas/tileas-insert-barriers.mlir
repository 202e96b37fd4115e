// RUN: tilec opt -p tileas-insert-barriers

// The second one writes where the first one may still be read; the third has a place of its own.
// CHECK: func.func @reuses
// CHECK-NEXT: "nv_tileas.convert_layout"
// CHECK-SAME: {shared_bytes = 2048 : i32, shared_offset = 0 : i32}
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.convert_layout"
// CHECK-SAME: {shared_bytes = 2048 : i32, shared_offset = 1024 : i32}
// CHECK-NEXT: "nv_tileas.convert_layout"
// CHECK-SAME: {shared_bytes = 2048 : i32, shared_offset = 4096 : i32}
#a = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
func.func @reuses(%x: tensor<512xf32, #a>) {
  %0 = "nv_tileas.convert_layout"(%x) {shared_bytes = 2048 : i32, shared_offset = 0 : i32} : (tensor<512xf32, #a>) -> tensor<512xf32, #b>
  %1 = "nv_tileas.convert_layout"(%0) {shared_bytes = 2048 : i32, shared_offset = 1024 : i32} : (tensor<512xf32, #b>) -> tensor<512xf32, #a>
  %2 = "nv_tileas.convert_layout"(%1) {shared_bytes = 2048 : i32, shared_offset = 4096 : i32} : (tensor<512xf32, #a>) -> tensor<512xf32, #b>
  return
}
// -----
// A load whose token waits for a store through pointers, which another thread may have made.
// CHECK: func.func @waits
// CHECK: "nv_tileas.store"
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.load"
#l = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
!p = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>, #l>
!f = tensor<128xf32, #l>
!tok = !nv_tileaa.mem_token
func.func @waits(%p: !p, %x: !f) {
  %t = "nv_tileas.store"(%p, %x) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, !f) -> !tok
  %y:2 = "nv_tileas.load"(%p, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (!f, !tok)
  return
}
// -----
// No token, no order: nothing waits.
// CHECK: func.func @unordered
// CHECK-NOT: nv_tileas.sync
#l = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
!p = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>, #l>
!f = tensor<128xf32, #l>
!tok = !nv_tileaa.mem_token
func.func @unordered(%p: !p, %x: !f) {
  %t = "nv_tileas.store"(%p, %x) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, !f) -> !tok
  %y:2 = "nv_tileas.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (!f, !tok)
  return
}
// -----
// CHECK: loc("tileas-insert-barriers.mlir":[[# @LINE + 3]]:8): error: 'nv_tileas.store' op unsupported mem_semantic: acquire
!p = !nv_tileaa.ptr<f32, 1 : i32>
func.func @acquires(%p: !p, %x: f32) {
  %t = "nv_tileas.store"(%p, %x) {mem_semantic = "acquire", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, f32) -> !nv_tileaa.mem_token
  return
}

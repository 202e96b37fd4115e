// RUN: tilec opt -p lower-tma-load-store-to-async,tileas-allocate-shared,tileas-insert-barriers --gpu-name sm_90

// Fragments go to swizzled rows as they are; two boxes of 64 columns, one group. Threads fence and
// meet before, and the one that began the copies waits until they have read, as memory ends here.
// CHECK: func.func @planned
// CHECK: %[[B:.*]] = "nv_tileas.alloc_tensor"() {alignment = 1024 : i32
// CHECK: "nv_tileas.copy"(%arg1, %[[B]])
// CHECK: "nv_tileas.make_tiled_tma_desc"
// CHECK-SAME: !nv_tileas.tma_desc<tensor<64x64xf16>, "128B">
// CHECK: "nv_tileas.fence"() {proxy = "async"}
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: %[[S:.*]]:2 = "nv_tileas.async_tiled_tma_store"
// CHECK: %[[T:.*]]:2 = "nv_tileas.async_tiled_tma_store"
// CHECK: "nv_tileas.async_commit_group"(%[[S]]#0, %[[T]]#0) {group = "bulk"}
// CHECK-NEXT: "nv_tileaa.join_mem_token"(%[[S]]#1, %[[T]]#1)
// CHECK-NEXT: "nv_tileas.async_wait"() {group = "bulk.read", pending = 0 : i32}
// CHECK-NEXT: return
#l = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[0,64]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x128">
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mem = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64, 128>, array<i32: 0, 1>, "">
func.func @planned(%p: !ptr, %x: tensor<64x128xf16, #l>, %i: i32) {
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %t = "nv_tileas.tiled_store"(%v, %x, %i, %i) {access = {checked = array<i32>, copy = "tma", order = array<i32: 1, 0>, vector = 8 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!view, tensor<64x128xf16, #l>, i32, i32) -> !nv_tileaa.mem_token
  return
}
// -----
// What is not planned so stays.
// CHECK: func.func @by_threads
// CHECK: "nv_tileas.tiled_store"
// CHECK-NEXT: return
#l = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[0,64]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x128">
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mem = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64, 128>, array<i32: 0, 1>, "">
func.func @by_threads(%p: !ptr, %x: tensor<64x128xf16, #l>, %i: i32) {
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %t = "nv_tileas.tiled_store"(%v, %x, %i, %i) {access = {checked = array<i32>, order = array<i32: 1, 0>, vector = 8 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!view, tensor<64x128xf16, #l>, i32, i32) -> !nv_tileaa.mem_token
  return
}
// -----
// A plan that no map can follow: rows of the tile are not contiguous.
// CHECK: error: 'nv_tileas.tiled_store' op cannot be made by a tensor map: no axis of the tile is known to lie contiguously in memory
#l = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[0,64]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x128">
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mem = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 1024, 2>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64, 128>, array<i32: 0, 1>, "">
func.func @planned_wrongly(%p: !ptr, %x: tensor<64x128xf16, #l>, %i: i32) {
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %t = "nv_tileas.tiled_store"(%v, %x, %i, %i) {access = {checked = array<i32>, copy = "tma", order = array<i32: 1, 0>, vector = 1 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!view, tensor<64x128xf16, #l>, i32, i32) -> !nv_tileaa.mem_token
  return
}

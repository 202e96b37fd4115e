// RUN: tilec opt -p tileas-insert-barriers

// Others read what a thread wrote, and write where others may still read.
// CHECK: func.func @reuses
// CHECK: "nv_tileas.copy"(%arg0
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.copy"
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.copy"(%arg0
// CHECK-NEXT: "nv_tileas.copy"(%arg0
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.copy"
// CHECK-NEXT: return
#a = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256]] : 512">
!m = !nv_tileas.buffer<tensor<512xf32, #m>, "shared", 1 : i32>
func.func @reuses(%x: tensor<512xf32, #a>) {
  %0 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 0 : i32} : () -> !m
  %1 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 1024 : i32} : () -> !m
  %2 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 4096 : i32} : () -> !m
  "nv_tileas.copy"(%x, %0) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<512xf32, #a>, !m) -> ()
  %y = "nv_tileas.copy"(%0) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
  "nv_tileas.copy"(%x, %1) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<512xf32, #a>, !m) -> ()
  "nv_tileas.copy"(%x, %2) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<512xf32, #a>, !m) -> ()
  %z = "nv_tileas.copy"(%1) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
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
// -----
// CHECK: loc("tileas-insert-barriers.mlir":[[# @LINE + 6]]:8): error: 'nv_tileas.copy' op works on a buffer without a place; run 'tileas-allocate-shared' before
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256]] : 512">
!m = !nv_tileas.buffer<tensor<512xf32, #m>, "shared", 1 : i32>
func.func @nowhere() {
  %0 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
  %y = "nv_tileas.copy"(%0) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
  return
}
// -----
// A tensor map is made again in a loop when stores by the one before have read it, and themselves.
// CHECK: func.func @maps
// CHECK: scf.for
// CHECK: "nv_tileas.async_wait"() {group = "bulk.read", pending = 0 : i32}
// CHECK: "nv_tileas.fill_tma_desc"
#r = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32]] : 64">
#s = #nv_tileas.layout<"offset=[[1],[2],[4],[8]] : 16">
!tile = !nv_tileas.buffer<tensor<64xf16, #r>, "shared", 1 : i32>
!scratch = !nv_tileas.buffer<tensor<16xi64, #s>, "shared", 1 : i32>
!desc = !nv_tileas.tma_desc<tensor<64xf16>, "none">
func.func @maps(%p: !nv_tileaa.ptr<f16, 1 : i32>, %n: i32, %i: i32) {
  %b = "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 0 : i32} : () -> !tile
  %c = "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 1024 : i32} : () -> !scratch
  scf.for %j = %i to %n step %n : i32 {
    %d = "nv_tileas.fill_tma_desc"(%n, %c, %p, %j) {count = 1 : i32, element = "f16", index = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>} : (i32, !scratch, !nv_tileaa.ptr<f16, 1 : i32>, i32) -> !desc
    %s, %t = "nv_tileas.async_tiled_tma_store"(%d, %b, %i) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!desc, !tile, i32) -> (!nv_tileas.async_token, !nv_tileaa.mem_token)
    %g = "nv_tileas.async_commit_group"(%s) {group = "bulk"} : (!nv_tileas.async_token) -> !nv_tileas.async_token
  }
  return
}
// -----
// What is filled in all blocks of a cluster waits until all of them are done with what lay there;
// not for stages that nothing else lay in, and not where each block fills its own.
// CHECK: func.func @filled_by_others
// CHECK: "nv_tileas.copy"(%arg0
// CHECK-NEXT: "nv_tileas.fence"
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.copy"
// CHECK-NEXT: "nv_tileas.fence"
// CHECK-NEXT: "nv_tileas.cluster_sync"
// CHECK-NEXT: scf.if
// CHECK-NEXT: "nv_tileas.async_tiled_tma_load"
// CHECK-NEXT: }
// CHECK-NEXT: scf.if
// CHECK-NEXT: "nv_tileas.async_tiled_tma_load"
// CHECK-NEXT: }
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.copy"(%arg0
// CHECK-NEXT: "nv_tileas.fence"
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: scf.if
// CHECK-NEXT: "nv_tileas.async_tiled_tma_load"
#a = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256]] : 512">
#w = #nv_tileas.layout<": 1">
#s = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32],[1,8],[2,16],[4,32],[8,0],[16,0]] : 32x64">
!m = !nv_tileas.buffer<tensor<512xf32, #m>, "shared", 1 : i32>
!s = !nv_tileas.buffer<tensor<32x64xf16, #s>, "shared", 1 : i32>
!t = !nv_tileas.tma_desc<tensor<32x64xf16>, "128B">
!w = !nv_tileas.buffer<tensor<1xi64, #w>, "shared", 1 : i32>
func.func @filled_by_others(%x: tensor<512xf32, #a>, %map: !t, %there: i1, %at: i32, %mask: i16) {
  %words = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 16384 : i32} : () -> !w
  %barrier = "nv_tileas.barrier_init"(%words) : (!w) -> !nv_tileas.barrier<1 : i32, 1 : i32>
  "nv_tileas.cluster_sync"() : () -> ()
  %0 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 0 : i32} : () -> !m
  %1 = "nv_tileas.alloc_tensor"() {alignment = 1024 : i32, pipelined, shared_offset = 0 : i32} : () -> !s
  %2 = "nv_tileas.alloc_tensor"() {alignment = 1024 : i32, pipelined, shared_offset = 4096 : i32} : () -> !s
  "nv_tileas.copy"(%x, %0) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<512xf32, #a>, !m) -> ()
  %y = "nv_tileas.copy"(%0) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
  scf.if %there {
    %3 = "nv_tileas.async_tiled_tma_load"(%map, %1, %at, %at, %barrier, %at, %mask) {operandSegmentSizes = array<i32: 1, 1, 2, 1, 1, 1>, tx_count = 4096 : i32} : (!t, !s, i32, i32, !nv_tileas.barrier<1 : i32, 1 : i32>, i32, i16) -> !nv_tileas.async_token
  }
  scf.if %there {
    %3 = "nv_tileas.async_tiled_tma_load"(%map, %2, %at, %at, %barrier, %at, %mask) {operandSegmentSizes = array<i32: 1, 1, 2, 1, 1, 1>, tx_count = 4096 : i32} : (!t, !s, i32, i32, !nv_tileas.barrier<1 : i32, 1 : i32>, i32, i16) -> !nv_tileas.async_token
  }
  "nv_tileas.copy"(%x, %0) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<512xf32, #a>, !m) -> ()
  scf.if %there {
    %3 = "nv_tileas.async_tiled_tma_load"(%map, %1, %at, %at, %barrier, %at) {operandSegmentSizes = array<i32: 1, 1, 2, 1, 1, 0>, tx_count = 4096 : i32} : (!t, !s, i32, i32, !nv_tileas.barrier<1 : i32, 1 : i32>, i32) -> !nv_tileas.async_token
  }
  return
}

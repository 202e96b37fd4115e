// RUN: tilec opt -p tileas-optimize-pipeline-region

// The load needs no stage, the copy does; doubling and storing need no stage any more.
// CHECK-LABEL: func.func @both
// CHECK: %[[L:.*]]:2 = "nv_tileas.load"
// CHECK: "nv_tileas.async_pipeline_produce_one"
// CHECK-NEXT: ^bb0(%[[S:.*]]: !nv_tileas.buffer
// CHECK-NEXT: "nv_tileas.copy"(%[[L]]#0, %[[S]])
// CHECK-NEXT: "nv_tileas.async_pipeline_yield"()
// CHECK: %[[C:.*]]:2 = "nv_tileas.async_pipeline_consume_one"
// CHECK: %[[A:.*]] = "nv_tileas.copy"
// CHECK-NEXT: "nv_tileas.async_pipeline_yield"(%[[A]])
// CHECK: resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
// CHECK: %[[D:.*]] = arith.mulf %[[C]]#1
// CHECK: "nv_tileas.store"(%{{.*}}, %[[D]])
#row = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64]] : 128">
#r = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
!t = tensor<128xf32, #r>
!v = !nv_tileas.buffer<tensor<128xf32, #row>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<128xf32, #row>, "shared", 2 : i32>
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<!v>
!tok = !nv_tileaa.mem_token
!ptrs = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>, #r>
func.func @both(%p: !ptrs) {
  %two = arith.constant dense<2.0> : !t
  %b = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !b
  %pt, %ct = "nv_tileas.async_pipeline_create_pipeline"(%b) {numStages = 2 : i32, producerGroupId = 0 : i8, consumerGroupId = 0 : i8, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!b) -> (!pt, !ct)
  %i = "nv_tileas.async_pipeline_create_iterator"(%pt) : (!pt) -> !it
  %k = "nv_tileas.async_pipeline_create_iterator"(%ct) : (!ct) -> !it
  %t1 = "nv_tileas.async_pipeline_produce_one"(%pt, %i) ({
  ^bb0(%s: !v):
    %l:2 = "nv_tileas.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!ptrs) -> (!t, !tok)
    "nv_tileas.copy"(%l#0, %s) : (!t, !v) -> ()
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {producer_types = [!v], kind = "generic", resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!pt, !it) -> !pt
  %c1 = "nv_tileas.async_pipeline_consume_one"(%ct, %k) ({
  ^bb0(%s: !v):
    %a = "nv_tileas.copy"(%s) : (!v) -> !t
    %d = arith.mulf %a, %two : !t
    %w = "nv_tileas.store"(%p, %d) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!ptrs, !t) -> !tok
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {consumer_types = [!v], consumer_idx = 0 : i32, kind = "generic", resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!ct, !it) -> !ct
  return
}
// -----
// What is copied after a meeting, and an ordered load, stay.
// CHECK-LABEL: func.func @stays
// CHECK: "nv_tileas.async_pipeline_produce_one"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.load"
// CHECK-NEXT: "nv_tileas.copy"
#row = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64]] : 128">
#r = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
!t = tensor<128xf32, #r>
!v = !nv_tileas.buffer<tensor<128xf32, #row>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<128xf32, #row>, "shared", 2 : i32>
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<!v>
!tok = !nv_tileaa.mem_token
!ptrs = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>, #r>
func.func @stays(%p: !ptrs) {
  %b = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !b
  %pt, %ct = "nv_tileas.async_pipeline_create_pipeline"(%b) {numStages = 2 : i32, producerGroupId = 0 : i8, consumerGroupId = 0 : i8, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!b) -> (!pt, !ct)
  %i = "nv_tileas.async_pipeline_create_iterator"(%pt) : (!pt) -> !it
  %t1 = "nv_tileas.async_pipeline_produce_one"(%pt, %i) ({
  ^bb0(%s: !v):
    "nv_tileas.sync"() : () -> ()
    %l:2 = "nv_tileas.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!ptrs) -> (!t, !tok)
    "nv_tileas.copy"(%l#0, %s) : (!t, !v) -> ()
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {producer_types = [!v], kind = "generic", resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!pt, !it) -> !pt
  return
}
// -----
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
func.func @nothing() {
  return
}
// -----
// CHECK: error: {{.*}}'nv_tileas.async_pipeline_produce_one' op expects region arguement types to match with producer types
#row = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64]] : 128">
!v = !nv_tileas.buffer<tensor<128xf32, #row>, "shared", 1 : i32>
!pt = !nv_tileas.pipeline_producer_token
!it = !nv_tileas.pipeline_iterator<!v>
func.func @wrong(%t: !pt, %i: !it) {
  %t1 = "nv_tileas.async_pipeline_produce_one"(%t, %i) ({
  ^bb0:
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {producer_types = [!v], kind = "generic", resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!pt, !it) -> !pt
  return
}

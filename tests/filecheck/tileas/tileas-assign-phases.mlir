// RUN: tilec opt -p tileas-assign-phases

// The loop carries an i32: bit 31 is the phase, the rest the stage.
// CHECK-LABEL: func.func @loop
// CHECK: %[[I:.*]]:2 = scf.for {{.*}} iter_args(%[[T:.*]] = %{{.*}}, %[[A:.*]] = %c0_i32{{.*}}) -> (!nv_tileas.pipeline_producer_token, i32)
// CHECK: %[[STAGE:.*]] = arith.andi %[[A]], %c2147483647
// CHECK: %[[PHASE:.*]] = arith.shrui %[[A]], %c31
// CHECK: async_pipeline_producer_acquire"(%[[T]], %[[STAGE]], %[[PHASE]])
// CHECK: async_pipeline_producer_commit"(%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}})
// CHECK: %[[NEXT:.*]] = arith.addi %[[A]], %c1
// CHECK: arith.xori
// CHECK: %[[S:.*]] = arith.andi %[[NEXT]], %c2147483647
// CHECK: %[[END:.*]] = arith.cmpi eq, %[[S]], %c3
// CHECK: arith.select %[[END]]
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<i1>
func.func @loop(%n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %p, %c = "nv_tileas.async_pipeline_create_pipeline"() {numStages = 3 : i32, producerGroupId = 0 : i8, consumerGroupId = 0 : i8, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> (!pt, !ct)
  %i = "nv_tileas.async_pipeline_create_iterator"(%p) : (!pt) -> !it
  %r:2 = scf.for %k = %zero to %n step %one iter_args(%t = %p, %a = %i) -> (!pt, !it) : i32 {
    %t1 = "nv_tileas.async_pipeline_producer_acquire"(%t, %a) : (!pt, !it) -> !pt
    %t2 = "nv_tileas.async_pipeline_producer_commit"(%t1, %a) {kind = "generic"} : (!pt, !it) -> !pt
    %b = "nv_tileas.async_pipeline_inc_iter"(%a) : (!it) -> !it
    scf.yield %t2, %b : !pt, !it
  }
  return
}
// -----
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
func.func @nothing() {
  return
}
// -----
// CHECK: error: {{.*}}'nv_tileas.async_pipeline_producer_acquire' op uses a token of a pipe that is not known here
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<i1>
func.func @unknown(%t: !pt, %a: !it) {
  %t1 = "nv_tileas.async_pipeline_producer_acquire"(%t, %a) : (!pt, !it) -> !pt
  return
}

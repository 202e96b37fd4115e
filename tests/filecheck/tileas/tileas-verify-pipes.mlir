// RUN: tilec opt -p tileas-verify-pipes

// Two agents, one pipe of three stages, as many rounds at both ends: nothing changes.
// CHECK-LABEL: func.func @in_turn
// CHECK: async_pipeline_agent_switch
// CHECK: async_pipeline_producer_commit
// CHECK: async_pipeline_consumer_release
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<i1>
func.func @in_turn(%n: i32) {
  %p, %c = "nv_tileas.async_pipeline_create_pipeline"() {numStages = 3 : i32, producerGroupId = 0 : i8, consumerGroupId = 1 : i8, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> (!pt, !ct)
  "nv_tileas.async_pipeline_agent_switch"() ({
    "nv_tileas.agent"() ({
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %i = "nv_tileas.async_pipeline_create_iterator"(%p) : (!pt) -> !it
      %r:2 = scf.for %k = %zero to %n step %one iter_args(%t = %p, %a = %i) -> (!pt, !it) : i32 {
        %t1 = "nv_tileas.async_pipeline_producer_acquire"(%t, %a) : (!pt, !it) -> !pt
        %t2 = "nv_tileas.async_pipeline_producer_commit"(%t1, %a) {kind = "generic"} : (!pt, !it) -> !pt
        %b = "nv_tileas.async_pipeline_inc_iter"(%a) : (!it) -> !it
        scf.yield %t2, %b : !pt, !it
      }
      "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
    "nv_tileas.agent"() ({
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %i = "nv_tileas.async_pipeline_create_iterator"(%c) : (!ct) -> !it
      %r:2 = scf.for %k = %zero to %n step %one iter_args(%t = %c, %a = %i) -> (!ct, !it) : i32 {
        %t1 = "nv_tileas.async_pipeline_consumer_wait"(%t, %a) {consumer_idx = 0 : i32} : (!ct, !it) -> !ct
        %t2 = "nv_tileas.async_pipeline_consumer_release"(%t1, %a) {kind = "generic"} : (!ct, !it) -> !ct
        %b = "nv_tileas.async_pipeline_inc_iter"(%a) : (!it) -> !it
        scf.yield %t2, %b : !ct, !it
      }
      "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  }) {num_agents_per_group = array<i32: 1, 1>, isolated = false} : () -> ()
  return
}
// -----
// A function without pipes is left alone.
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
func.func @nothing() {
  return
}
// -----
// An iterator that stands still.
// CHECK: error: {{.*}}'nv_tileas.async_pipeline_producer_acquire' op breaks the protocol of its pipe: the kernel means stage 0 in round 0 of pipe 0 to acquire, but it is the turn of stage 1 in round 0
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<i1>
func.func @stands_still(%n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %p, %c = "nv_tileas.async_pipeline_create_pipeline"() {numStages = 3 : i32, producerGroupId = 0 : i8, consumerGroupId = 0 : i8, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> (!pt, !ct)
  %i = "nv_tileas.async_pipeline_create_iterator"(%p) : (!pt) -> !it
  scf.for %k = %zero to %n step %one : i32 {
    %t1 = "nv_tileas.async_pipeline_producer_acquire"(%p, %i) : (!pt, !it) -> !pt
    %t2 = "nv_tileas.async_pipeline_producer_commit"(%t1, %i) {kind = "generic"} : (!pt, !it) -> !pt
    %c1 = "nv_tileas.async_pipeline_consumer_wait"(%c, %i) {consumer_idx = 0 : i32} : (!ct, !it) -> !ct
    %c2 = "nv_tileas.async_pipeline_consumer_release"(%c1, %i) {kind = "generic"} : (!ct, !it) -> !ct
  }
  return
}
// -----
// CHECK: error: {{.*}}'nv_tileas.async_pipeline_consumer_wait' op breaks the protocol of its pipe: the kernel waits for ever to wait pipe 0
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<i1>
func.func @waits_first() {
  %p, %c = "nv_tileas.async_pipeline_create_pipeline"() {numStages = 3 : i32, producerGroupId = 0 : i8, consumerGroupId = 0 : i8, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> (!pt, !ct)
  %i = "nv_tileas.async_pipeline_create_iterator"(%p) : (!pt) -> !it
  %c1 = "nv_tileas.async_pipeline_consumer_wait"(%c, %i) {consumer_idx = 0 : i32} : (!ct, !it) -> !ct
  %c2 = "nv_tileas.async_pipeline_consumer_release"(%c1, %i) {kind = "generic"} : (!ct, !it) -> !ct
  %t1 = "nv_tileas.async_pipeline_producer_acquire"(%p, %i) : (!pt, !it) -> !pt
  %t2 = "nv_tileas.async_pipeline_producer_commit"(%t1, %i) {kind = "generic"} : (!pt, !it) -> !pt
  return
}

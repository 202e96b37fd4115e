// RUN: tilec opt -p tileas-materialize-barriers

// Between agents: a full and an empty barrier; one arrival per warp, as both sides have them.
// CHECK-LABEL: func.func @agents
// CHECK: %[[W:.*]] = "nv_tileas.alloc_tensor"() {alignment = 8 : i32}
// CHECK: %[[FULL:.*]] = "nv_tileas.barrier_init"(%[[W]]) {{.*}} -> !nv_tileas.barrier<2 : i32, 3 : i32>
// CHECK: %[[EMPTY:.*]] = "nv_tileas.barrier_init"({{.*}} -> !nv_tileas.barrier<4 : i32, 3 : i32>
// CHECK-NOT: nv_tileas.fence
// CHECK: nv_tileas.sync
// CHECK: nv_tileas.agent
// CHECK: %[[BEFORE:.*]] = arith.xori %{{.*}}, %c1
// CHECK: "nv_tileas.barrier_wait"(%[[EMPTY]], %{{.*}}, %[[BEFORE]])
// CHECK: "nv_tileas.barrier_arrive"(%[[FULL]], %{{.*}}) {by = "warp", kind = "generic"}
// CHECK: nv_tileas.agent
// CHECK: "nv_tileas.barrier_wait"(%[[FULL]]
// CHECK: "nv_tileas.barrier_arrive"(%[[EMPTY]], %{{.*}}) {by = "warp", kind = "generic"}
// CHECK-NOT: async_pipeline_c
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
func.func @agents(%s: i32, %f: i32) attributes {nv_tileaa.kernel_spec = {num_warps = 6 : i32}} {
  %p, %c = "nv_tileas.async_pipeline_create_pipeline"() {numStages = 3 : i32, producerGroupId = 0 : i8, consumerGroupId = 1 : i8, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> (!pt, !ct)
  "nv_tileas.async_pipeline_agent_switch"() ({
    "nv_tileas.agent"() ({
      %t1 = "nv_tileas.async_pipeline_producer_acquire"(%p, %s, %f) : (!pt, i32, i32) -> !pt
      %t2 = "nv_tileas.async_pipeline_producer_commit"(%t1, %s, %f) {kind = "generic"} : (!pt, i32, i32) -> !pt
      "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }) {num_warps = 2 : i32, max_regs = 0 : i32} : () -> ()
    "nv_tileas.agent"() ({
      %t1 = "nv_tileas.async_pipeline_consumer_wait"(%c, %s, %f) {consumer_idx = 0 : i32} : (!ct, i32, i32) -> !ct
      %t2 = "nv_tileas.async_pipeline_consumer_release"(%t1, %s, %f) {kind = "generic"} : (!ct, i32, i32) -> !ct
      "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }) {num_warps = 4 : i32, max_regs = 0 : i32} : () -> ()
  }) {num_agents_per_group = array<i32: 1, 1>, isolated = false} : () -> ()
  return
}
// -----
// One agent at both ends: it meets; copies by cp.async keep their barrier, one arrival per thread.
// CHECK-LABEL: func.func @one
// CHECK: %[[FULL:.*]] = "nv_tileas.barrier_init"({{.*}} -> !nv_tileas.barrier<128 : i32, 2 : i32>
// CHECK-NEXT: nv_tileas.create_none
// CHECK-NEXT: nv_tileas.create_none
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.barrier_arrive"(%[[FULL]], %{{.*}}) {by = "thread", kind = "cp.async"}
// CHECK-NEXT: "nv_tileas.barrier_wait"(%[[FULL]]
// CHECK-NEXT: return
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
func.func @one(%s: i32, %f: i32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %p, %c = "nv_tileas.async_pipeline_create_pipeline"() {numStages = 2 : i32, producerGroupId = 0 : i8, consumerGroupId = 0 : i8, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> (!pt, !ct)
  %t1 = "nv_tileas.async_pipeline_producer_acquire"(%p, %s, %f) : (!pt, i32, i32) -> !pt
  %t2 = "nv_tileas.async_pipeline_producer_commit"(%t1, %s, %f) {kind = "cp.async"} : (!pt, i32, i32) -> !pt
  %c1 = "nv_tileas.async_pipeline_consumer_wait"(%c, %s, %f) {consumer_idx = 0 : i32} : (!ct, i32, i32) -> !ct
  %c2 = "nv_tileas.async_pipeline_consumer_release"(%c1, %s, %f) {kind = "generic"} : (!ct, i32, i32) -> !ct
  return
}
// -----
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
func.func @nothing() {
  return
}
// -----
// CHECK: error: {{.*}}'nv_tileas.async_pipeline_create_pipeline' op is filled in several ways; split it into a pipe for each
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
func.func @two_ways(%s: i32, %f: i32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %p, %c = "nv_tileas.async_pipeline_create_pipeline"() {numStages = 2 : i32, producerGroupId = 0 : i8, consumerGroupId = 0 : i8, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> (!pt, !ct)
  %t1 = "nv_tileas.async_pipeline_producer_acquire"(%p, %s, %f) : (!pt, i32, i32) -> !pt
  %t2 = "nv_tileas.async_pipeline_producer_commit"(%t1, %s, %f) {kind = "cp.async"} : (!pt, i32, i32) -> !pt
  %t3 = "nv_tileas.async_pipeline_producer_acquire"(%t2, %s, %f) : (!pt, i32, i32) -> !pt
  %t4 = "nv_tileas.async_pipeline_producer_commit"(%t3, %s, %f) {kind = "generic"} : (!pt, i32, i32) -> !pt
  return
}

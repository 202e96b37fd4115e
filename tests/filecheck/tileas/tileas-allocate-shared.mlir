// RUN: tilec opt -p tileas-allocate-shared{separate-bytes=4096} --gpu-name sm_90

// Side by side while all of it stays below 4096 bytes, then over again.
// CHECK: func.func @one_after_the_other
// CHECK: shared_offset = 0 : i32
// CHECK: shared_offset = 2048 : i32
// CHECK: shared_offset = 0 : i32
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
!m = !nv_tileas.buffer<tensor<512xf32, #m>, "shared", 1 : i32>
func.func @one_after_the_other() {
  %0 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
  %x = "nv_tileas.copy"(%0) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
  %1 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
  %y = "nv_tileas.copy"(%1) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
  %2 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
  %z = "nv_tileas.copy"(%2) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
  return
}
// -----
// What lives at once lies apart, beyond those bytes too; what lives on around a loop stays.
// CHECK: func.func @at_once
// CHECK: shared_offset = 0 : i32
// CHECK: scf.for
// CHECK: shared_offset = 2048 : i32
// CHECK: shared_offset = 4096 : i32
// CHECK: return
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
!m = !nv_tileas.buffer<tensor<512xf32, #m>, "shared", 1 : i32>
func.func @at_once(%n: index) {
  %c = arith.constant 1 : index
  %0 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
  scf.for %i = %c to %n step %c {
    %w = "nv_tileas.copy"(%0) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
    %1 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
    %2 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
    %x = "nv_tileas.copy"(%1) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
    %y = "nv_tileas.copy"(%2) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
  }
  return
}
// -----
// Agents run at once: what lives in one lies apart from what lives in another, beyond the bytes that
// are kept apart anyway. Behind the switch their bytes are free again.
// CHECK: func.func @agents
// CHECK: shared_offset = 0 : i32
// CHECK: shared_offset = 2048 : i32
// CHECK: shared_offset = 4096 : i32
// CHECK: shared_offset = 0 : i32
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
!m = !nv_tileas.buffer<tensor<512xf32, #m>, "shared", 1 : i32>
func.func @agents() {
  "nv_tileas.async_pipeline_agent_switch"() ({
  "nv_tileas.agent"() ({
    %0 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
    %x = "nv_tileas.copy"(%0) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
    %1 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
    %y = "nv_tileas.copy"(%1) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 4 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    %2 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
    %z = "nv_tileas.copy"(%2) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 4 : i32, max_regs = 0 : i32} : () -> ()
  }) {num_agents_per_group = array<i32: 1, 1>, isolated = false} : () -> ()
  %3 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
  %w = "nv_tileas.copy"(%3) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
  return
}
// -----
// What a pipe hands round lives on behind the operation that makes the pipe.
// CHECK: func.func @payload
// CHECK: shared_offset = 0 : i32
// CHECK: shared_offset = 4096 : i32
// CHECK: shared_offset = 4096 : i32
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
!m = !nv_tileas.buffer<tensor<512xf32, #m>, "shared", 1 : i32>
!r = !nv_tileas.buffer<tensor<512xf32, #m>, "shared", 2 : i32>
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
func.func @payload() {
  %r = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !r
  %p, %c = "nv_tileas.async_pipeline_create_pipeline"(%r) {numStages = 2 : i32, producerGroupId = 0 : i8, consumerGroupId = 0 : i8, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!r) -> (!pt, !ct)
  %0 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
  %x = "nv_tileas.copy"(%0) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
  %1 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
  %y = "nv_tileas.copy"(%1) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> tensor<512xf32, #b>
  return
}
// -----
// The target's own limit holds, not that of static arrays: 128 KiB are fine, 256 KiB are not.
// CHECK: func.func @beyond_48_kib
// CHECK: shared_offset = 0 : i32
!m = !nv_tileas.buffer<tensor<32768xf32>, "shared", 1 : i32>
func.func @beyond_48_kib() {
  %0 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
  return
}
// -----
// CHECK: error: 'nv_tileas.alloc_tensor' op uses too much shared data (0x40000 bytes, 0x38c00 max)
!m = !nv_tileas.buffer<tensor<32768xf32>, "shared", 2 : i32>
func.func @too_much() {
  %0 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !m
  return
}

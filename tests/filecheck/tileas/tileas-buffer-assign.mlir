// RUN: tilec opt -p tileas-buffer-assign --gpu-name sm_100 --remarks -

// What lives in one agent lives in all: %a and %b lie apart. %c comes later, and has the bytes of %a;
// so do its agents the barriers.
// CHECK: share pipeline buffer
// CHECK: func.func @agents
// CHECK: "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 0 : i32}
// CHECK: "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 512 : i32}
// CHECK: barrier = 1 : i32
// CHECK: barrier = 2 : i32
// CHECK: "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 0 : i32}
// CHECK: barrier = 3 : i32
#row = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64]] : 128">
#r = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
!t = tensor<128xf32, #r>
!v = !nv_tileas.buffer<tensor<128xf32, #row>, "shared", 1 : i32>
func.func @agents(%x: !t) {
  %a = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !v
  %b = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !v
  "nv_tileas.async_pipeline_agent_switch"() ({
  "nv_tileas.agent"() ({
    "nv_tileas.copy"(%x, %a) : (!t, !v) -> ()
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    "nv_tileas.copy"(%x, %b) : (!t, !v) -> ()
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  }) {num_agents_per_group = array<i32: 1, 1>, isolated = false} : () -> ()
  %c = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !v
  "nv_tileas.async_pipeline_agent_switch"() ({
  "nv_tileas.agent"() ({
    "nv_tileas.copy"(%x, %c) : (!t, !v) -> ()
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  }) {num_agents_per_group = array<i32: 1>, isolated = false} : () -> ()
  return
}
// -----
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
func.func @nothing() {
  return
}
// -----
// CHECK: error: {{.*}}'nv_tileas.async_pipeline_create_pipeline' op fails to resolve lifetime
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<i1>
func.func @unread() {
  %p, %c = "nv_tileas.async_pipeline_create_pipeline"() {numStages = 3 : i32, producerGroupId = 0 : i8, consumerGroupId = 0 : i8, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> (!pt, !ct)
  %i = "nv_tileas.async_pipeline_create_iterator"(%p) : (!pt) -> !it
  return
}
// -----
// CHECK: error: {{.*}}'nv_tileas.agent' op fails to assign named barrier
func.func @crowd() {
  "nv_tileas.async_pipeline_agent_switch"() ({
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  "nv_tileas.agent"() ({
    
    "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {num_warps = 1 : i32, max_regs = 0 : i32} : () -> ()
  }) {num_agents_per_group = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>, isolated = false} : () -> ()
  return
}
// -----
// CHECK: error: {{.*}}'nv_tileas.alloc_tensor' op fails to assign smem buffer
#row = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64]] : 128">
#r = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
!t = tensor<128xf32, #r>
!v = !nv_tileas.buffer<tensor<128xf32, #row>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<128xf32, #row>, "shared", 1000 : i32>
func.func @large(%x: !t) {
  %zero = arith.constant 0 : i32
  %a = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !b
  %s = "nv_tileas.buffer_view"(%a, %zero) : (!b, i32) -> !v
  "nv_tileas.copy"(%x, %s) : (!t, !v) -> ()
  return
}
// -----
// CHECK: error: {{.*}}'nv_tileas.alloc_tensor' op fails to assign tmem buffer
#m = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32],[0,64],[0,128],[0,256]] row=[[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[64,0]] : 128x512">
#c = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[0,64],[0,128],[0,256],[16,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[32,0],[64,0]] : 128x512">
!m = !nv_tileas.buffer<tensor<128x512xf32, #m>, "tensor", 1 : i32>
!c = tensor<128x512xf32, #c>
func.func @too_much() {
  %a = "nv_tileas.alloc_tensor"() {alignment = 32 : i32} : () -> !m
  %b = "nv_tileas.alloc_tensor"() {alignment = 32 : i32} : () -> !m
  %x = "nv_tileas.copy"(%a) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> !c
  %y = "nv_tileas.copy"(%b) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> !c
  return
}

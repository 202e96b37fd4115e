// RUN: tilec opt -p tileas-specialize-warps --gpu-name sm_90

// The loop that copies, in the loop and the branch around it, which carry nothing else there; what
// both agents need is computed once, before they part. Eight warps get registers of four more.
// CHECK: func.func @in_turn(%[[N:.*]]: i32, %[[X:.*]]: f32, %{{.*}}) attributes {{{.*}}num_warps = 12 : i32
// CHECK: %[[BAR:.*]] = "nv_tileas.barrier_init"
// CHECK: arith.muli %[[N]], %[[N]] : i32
// CHECK: "nv_tileas.fence"() {proxy = "mbarrier_init"}
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.async_pipeline_agent_switch"
// CHECK: "nv_tileas.agent"
// CHECK: scf.for {{.*}} -> (f32, i32)
// CHECK: scf.if
// CHECK-NOT: "nv_tileas.barrier_expect"
// CHECK: "nv_tileas.barrier_wait"(%[[BAR]]
// CHECK: max_regs = 232 : i32, num_warps = 8 : i32
// CHECK: "nv_tileas.agent"
// CHECK: scf.for {{.*}} iter_args(%[[AT:.*]] = %[[N]]) -> (i32)
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[AT]]
// CHECK-NEXT: scf.if %[[SOME]]
// CHECK-NEXT: scf.for
// CHECK: "nv_tileas.barrier_expect"(%[[BAR]]
// CHECK-NOT: producer
// CHECK-NOT: f32
// CHECK: arith.addi %[[AT]]
// CHECK: max_regs = 40 : i32, num_warps = 4 : i32
// CHECK: "nv_tileas.dealloc"
// CHECK-NEXT: return
!w = !nv_tileas.buffer<tensor<1xi64, #nv_tileas.layout<": 1">>, "shared", 2 : i32>
!bar = !nv_tileas.barrier<1 : i32, 2 : i32>
func.func @in_turn(%n: i32, %x: f32, %p: !nv_tileaa.ptr<f32, 1 : i32>) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 8 : i32}} {
  %w = "nv_tileas.alloc_tensor"() {alignment = 8 : i32} : () -> !w
  %bar = "nv_tileas.barrier_init"(%w) : (!w) -> !bar
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %end = arith.muli %n, %n : i32
  %r:2 = scf.for %i = %zero to %end step %one iter_args(%s = %x, %at = %n) -> (f32, i32) : i32 {
    %some = arith.cmpi slt, %at, %end : i32
    %t = scf.if %some -> (f32) {
      scf.for %j = %zero to %at step %one : i32 {
        %a:2 = "nv_tileas.barrier_next"(%bar) : (!bar) -> (i32, i32)
        "nv_tileas.barrier_expect"(%bar, %a#0) {bytes = 16 : i32} : (!bar, i32) -> ()
      } {nv_tileas.producer}
      %u = scf.for %j = %zero to %at step %one iter_args(%v = %s) -> (f32) : i32 {
        %b:2 = "nv_tileas.barrier_next"(%bar) : (!bar) -> (i32, i32)
        "nv_tileas.barrier_wait"(%bar, %b#0, %b#1) : (!bar, i32, i32) -> ()
        %y = arith.addf %v, %v : f32
        scf.yield %y : f32
      }
      scf.yield %u : f32
    } else {
      scf.yield %s : f32
    }
    %next = arith.addi %at, %one : i32
    scf.yield %t, %next : f32, i32
  }
  %done = "nv_tileas.store"(%p, %r#0) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!nv_tileaa.ptr<f32, 1 : i32>, f32) -> !nv_tileaa.mem_token
  "nv_tileas.dealloc"(%w) : (!w) -> ()
  return
}
// -----
// Four warps have all the registers that they can use: one more warp copies.
// CHECK: func.func @few
// CHECK: max_regs = 0 : i32, num_warps = 4 : i32
// CHECK: scf.while
// CHECK: max_regs = 0 : i32, num_warps = 1 : i32
!w = !nv_tileas.buffer<tensor<1xi64, #nv_tileas.layout<": 1">>, "shared", 2 : i32>
!bar = !nv_tileas.barrier<1 : i32, 2 : i32>
func.func @few(%n: i32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %w = "nv_tileas.alloc_tensor"() {alignment = 8 : i32} : () -> !w
  %bar = "nv_tileas.barrier_init"(%w) : (!w) -> !bar
  %one = arith.constant 1 : i32
  %r = scf.while (%i = %n) : (i32) -> i32 {
    %go = arith.cmpi ne, %i, %one : i32
    scf.condition(%go) %i : i32
  } do {
  ^bb0(%i: i32):
    scf.for %j = %one to %i step %one : i32 {
      "nv_tileas.barrier_expect"(%bar, %j) {bytes = 16 : i32} : (!bar, i32) -> ()
    } {nv_tileas.producer}
    %next = arith.subi %i, %one : i32
    scf.yield %next : i32
  }
  "nv_tileas.dealloc"(%w) : (!w) -> ()
  return
}
// -----
// CHECK: error: {{.*}}'scf.for' op cannot be an agent's of its own: its place comes from 'nv_tileas.load', which one agent alone can do
!bar = !nv_tileas.barrier<1 : i32, 2 : i32>
func.func @far(%p: !nv_tileaa.ptr<i32, 1 : i32>, %bar: !bar) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %one = arith.constant 1 : i32
  %n:2 = "nv_tileas.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!nv_tileaa.ptr<i32, 1 : i32>) -> (i32, !nv_tileaa.mem_token)
  scf.for %j = %one to %n#0 step %one : i32 {
    "nv_tileas.barrier_expect"(%bar, %j) {bytes = 16 : i32} : (!bar, i32) -> ()
  } {nv_tileas.producer}
  return
}

// RUN: tilec opt -p tileas-dynamic-persistent,tileas-dynamic-persistent --gpu-name sm_100 --remarks -

// What depends on the program id, or has effects, is in the loop; the rest stays in front.
// CHECK: blocks take further tile blocks until none is left
// CHECK: Kernel is already dynamic persistent
// CHECK: func.func @stores(%[[P:.*]]: !nv_tileaa.ptr<f32, 1 : i32>, %[[N:.*]]: i32)
// CHECK: %[[BAR:.*]] = "nv_tileas.barrier_init"
// CHECK-NEXT: "nv_tileas.fence"() {proxy = "mbarrier_init"}
// CHECK-NEXT: "nv_tileas.sync"
// CHECK: %[[ANSWER:.*]] = "nv_tileas.alloc_tensor"() {alignment = 16 : i32}
// CHECK: arith.addi %[[N]], %[[N]] : i32
// CHECK: scf.while (%[[X:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (i32, i32, i32) -> (i32, i32, i32)
// CHECK: "nv_tileas.barrier_expect"(%[[BAR]], %{{.*}}) {bytes = 16 : i32}
// CHECK-NEXT: "nv_tileas.async_cancel_next_program_id"(%[[ANSWER]], %[[BAR]], %{{.*}})
// CHECK: arith.muli %[[X]], %{{.*}} : i32
// CHECK: "nv_tileas.store"
// CHECK: %[[PHASE:.*]] = "nv_tileas.barrier_turn"(%[[BAR]])
// CHECK-NEXT: "nv_tileas.barrier_wait"(%[[BAR]], %{{.*}}, %[[PHASE]])
// CHECK-NEXT: %[[GO:.*]] = "nv_tileas.is_valid_program_id"(%[[ANSWER]])
// CHECK-NEXT: %[[NX:.*]] = "nv_tileas.next_program_id"(%[[ANSWER]]) {axis = 0 : i32}
// CHECK: scf.condition(%[[GO]]) %[[NX]],
// CHECK: "nv_tileas.dealloc"
// CHECK-NOT: scf.while
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
gpu.module @m attributes {tt.num_warps = 4 : i32, tt.num_ctas = 1 : i32} {
  func.func @stores(%p: !ptr, %n: i32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
    %id = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
    %twice = arith.addi %n, %n : i32
    %start = arith.muli %id, %twice : i32
    %at = "nv_tileaa.addptr"(%p, %start) : (!ptr, i32) -> !ptr
    %one = arith.constant 1.0 : f32
    %0 = "nv_tileas.store"(%at, %one) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!ptr, f32) -> !tok
    return
  }
}
// -----
// One that all blocks run alike stays as it is; of a cluster the first block asks for all, behind a
// meeting.
// CHECK: remark[failed]: blocks do not take further tile blocks: the kernel does not ask for its program id
// CHECK: func.func @alike
// CHECK-NOT: scf.while
// CHECK: func.func @shared
// CHECK: "nv_tileas.cluster_sync"() {barriers_made}
// CHECK: scf.while
// CHECK: "nv_tileas.cluster_sync"
// CHECK-NEXT: "nv_tileas.barrier_expect"
// CHECK-NEXT: "nv_tileas.async_cancel_next_program_id"({{.*}}) {ctas = 2 : i32}
gpu.module @m {
  func.func @alike() attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
    return
  }
  func.func @shared() attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 2 : i32, num_warps = 4 : i32}} {
    %id = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
    return
  }
}
// -----
// CHECK: loc("tileas-dynamic-persistent.mlir":[[# @LINE + 1]]:1): error: 'func.func' op has no kernel_spec; run 'convert-tileaa-to-tileas' before
func.func @nobody_knows_how_it_is_launched() attributes {nv_tileaa.kernel} {
  %id = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
  return
}

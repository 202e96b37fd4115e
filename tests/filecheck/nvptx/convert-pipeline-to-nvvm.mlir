// RUN: tilec opt -p convert-pipeline-to-nvvm

// A step of a pipe of two stages: barriers in shared memory, initialised by one thread; the producer
// waits for the other parity of the empty barrier; a lane of its warp arrives at the full one.
// CHECK: llvm.mlir.global internal @__cutlass_pipe_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4 x i64>
// CHECK-LABEL: func.func @step
// CHECK: %[[P:.*]] = llvm.mlir.addressof @__cutlass_pipe_0
// CHECK: call @__tile_mbarrier_init_1
// CHECK: call @__tile_mbarrier_init_1
// CHECK: call @__tile_mbarrier_init_2
// CHECK: call @__tile_mbarrier_init_2
// CHECK: nvvm.barrier
// CHECK: scf.if
// CHECK: arith.xori
// CHECK: call @__tile_mbarrier_try_wait
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK-NEXT: call @__tile_mbarrier_expect_64
// CHECK: arith.select
// CHECK: llvm.insertvalue
!pipe = !cutlass.pipeline<2>
!state = !cutlass.pipeline_state<2>
gpu.module @m {
  func.func @step() attributes {nv_tileaa.kernel_spec = {num_warps = 3 : i32}} {
    %p = "cutlass.pipeline_create"() : () -> !pipe
    "cutlass.pipeline_init"(%p) {numStages = 2, numProducers = 1, numConsumers = 2,
      participants = array<i32: 0>, consumers = array<i32: 1, 2>} : (!pipe) -> ()
    %s = "cutlass.pipeline_state_create"() : () -> !state
    "cutlass.async_exec"() ({
      "cutlass.pipeline_producer_acquire"(%p, %s) : (!pipe, !state) -> ()
      "cutlass.pipeline_producer_commit"(%p, %s) {transaction_bytes = 64} : (!pipe, !state) -> ()
      %t = "cutlass.pipeline_state_increment"(%s) : (!state) -> !state
    }) {mask = 1 : i32} : () -> ()
    return
  }
}
// -----
// CHECK-LABEL: @unchanged
// CHECK-NEXT: func.func @f(%[[X:.*]]: i32) -> i32
// CHECK-NEXT: return %[[X]] : i32
gpu.module @unchanged {
  func.func @f(%x: i32) -> i32 {
    return %x : i32
  }
}
// -----
// CHECK: error: 'cutlass.pipeline_consumer_wait' op is reached by warps 0x1, which do not take part as consumer
!pipe = !cutlass.pipeline<2>
!state = !cutlass.pipeline_state<2>
gpu.module @m {
  func.func @step() attributes {nv_tileaa.kernel_spec = {num_warps = 3 : i32}} {
    %p = "cutlass.pipeline_create"() : () -> !pipe
    "cutlass.pipeline_init"(%p) {numStages = 2, numProducers = 1, numConsumers = 2,
      participants = array<i32: 0>, consumers = array<i32: 1, 2>} : (!pipe) -> ()
    %s = "cutlass.pipeline_state_create"() : () -> !state
    "cutlass.pipeline_consumer_wait"(%p, %s) : (!pipe, !state) -> ()
    return
  }
}
// -----
// CHECK: error: 'cutlass.pipeline_create' op expects one 'cutlass.pipeline_init' of the pipe, but got 0
gpu.module @m {
  func.func @none() attributes {nv_tileaa.kernel_spec = {num_warps = 3 : i32}} {
    %p = "cutlass.pipeline_create"() : () -> !cutlass.pipeline<2>
    return
  }
}
// -----
// CHECK: error: 'cutlass.pipeline_init' op is for all threads of the block: it cannot stand where some warps come
!pipe = !cutlass.pipeline<2>
gpu.module @m {
  func.func @some() attributes {nv_tileaa.kernel_spec = {num_warps = 3 : i32}} {
    %p = "cutlass.pipeline_create"() : () -> !pipe
    "cutlass.async_exec"() ({
      "cutlass.pipeline_init"(%p) {numStages = 2, numProducers = 1, numConsumers = 1,
        participants = array<i32: 1>, consumers = array<i32: 2>} : (!pipe) -> ()
    }) {mask = 6 : i32} : () -> ()
    return
  }
}
// -----
// CHECK: error: 'cutlass.tile_scheduler_fixup_increment' op is for some warps of the block: it needs a 'barrier_id' of their own
!params = !cutlass.tile_scheduler_params<"streamk">
!info = !cutlass.work_tile_info<"streamk">
gpu.module @m {
  func.func @meet(%p: !params, %w: !info) attributes {nv_tileaa.kernel_spec = {num_warps = 3 : i32}} {
    "cutlass.async_exec"() ({
      "cutlass.tile_scheduler_fixup_increment"(%p, %w) {accumulator_bytes = 2048} : (!params, !info) -> ()
    }) {mask = 3 : i32} : () -> ()
    return
  }
}
// -----
// CHECK: error: 'cutlass.named_barrier_arrive_and_wait' op is for 32 threads, but 96 come here
gpu.module @m {
  func.func @named() attributes {nv_tileaa.kernel_spec = {num_warps = 3 : i32}} {
    "cutlass.named_barrier_arrive_and_wait"() {barrier_id = 1, threads = 32} : () -> ()
    return
  }
}

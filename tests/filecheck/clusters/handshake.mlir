// RUN: tilec opt -p convert-tileas-to-llvm --gpu-name sm_90

// A block arrives at the barriers of two; the leader waits, and its warp for it.
// CHECK: func.func @handshake
// CHECK: nvvm.read.ptx.sreg.tid.x
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK: nvvm.cluster.arrive.relaxed
// CHECK: nvvm.cluster.wait
// CHECK: nvvm.cluster.arrive
// CHECK: nvvm.cluster.wait
// CHECK-COUNT-2: llvm.call @__tile_mbarrier_arrive_at(%{{.*}}, %{{.*}}) : (!llvm.ptr<3>, i32)
// CHECK: llvm.call @__tile_mbarrier_try_wait
// CHECK: nvvm.bar.warp.sync
#w = #nv_tileas.layout<": 1">
!words = !nv_tileas.buffer<tensor<1xi64, #w>, "shared", 2 : i32>
!barrier = !nv_tileas.barrier<2 : i32, 2 : i32>
gpu.module @m {
  func.func @handshake() attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 2 : i32}} {
    %words = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 0 : i32} : () -> !words
    %read = "nv_tileas.barrier_init"(%words) : (!words) -> !barrier
    "nv_tileas.cluster_sync"() : () -> ()
    "nv_tileas.cluster_arrive"() {relaxed} : () -> ()
    "nv_tileas.cluster_wait"() : () -> ()
    "nv_tileas.cluster_arrive"() : () -> ()
    "nv_tileas.cluster_wait"() : () -> ()
    %stage = "nv_tileas.cta_rank"() : () -> i32
    "nv_tileas.barrier_arrive_in_cluster"(%read, %stage) {ctas = 2 : i32} : (!barrier, i32) -> ()
    "nv_tileas.barrier_wait"(%read, %stage, %stage) {leader, with_warp} : (!barrier, i32, i32) -> ()
    return
  }
}
// -----
// Where blocks share work, the number of a tile block is that of its cluster.
// CHECK: func.func @place
// CHECK: nvvm.read.ptx.sreg.clusterid.x
// CHECK: nvvm.read.ptx.sreg.nclusterid.y
gpu.module @m {
  func.func @place(%p: !nv_tileaa.ptr<i32, 1 : i32>) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 2 : i32}} {
    %x = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
    %y = "nv_tileaa.get_num_programs"() {axis = 1 : i32} : () -> i32
    return
  }
}
// -----
// CHECK: error: 'nv_tileas.barrier_arrive_in_cluster' op expects 2 to 16 blocks, but got 1
!barrier = !nv_tileas.barrier<2 : i32, 2 : i32>
func.func @alone(%read: !barrier, %stage: i32) {
  "nv_tileas.barrier_arrive_in_cluster"(%read, %stage) {ctas = 1 : i32} : (!barrier, i32) -> ()
  return
}

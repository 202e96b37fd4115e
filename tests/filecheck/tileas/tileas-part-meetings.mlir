// RUN: tilec opt -p tileas-part-meetings

// Blocks arrive when their barriers are made, and wait before the first copy: between both threads
// compute, and a warp takes tensor memory.
// CHECK: func.func @parted
// CHECK: "nv_tileas.fence"
// CHECK-NEXT: "nv_tileas.cluster_arrive"() {relaxed} : () -> ()
// CHECK-NEXT: arith.divsi
// CHECK: "nv_tileas.alloc_tmem"
// CHECK-NEXT: "nv_tileas.cluster_wait"
// CHECK-NEXT: "nv_tileas.cluster_arrive"() : () -> ()
// CHECK: "nv_tileas.barrier_expect"
#w = #nv_tileas.layout<": 1">
!words = !nv_tileas.buffer<tensor<1xi64, #w>, "shared", 2 : i32>
!word = !nv_tileas.buffer<tensor<1xi32, #w>, "shared", 1 : i32>
!barrier = !nv_tileas.barrier<1 : i32, 2 : i32>
func.func @parted(%m: i32, %n: i32) -> i32 {
  %words = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 0 : i32} : () -> !words
  %made = "nv_tileas.barrier_init"(%words) : (!words) -> !barrier
  "nv_tileas.fence"() {proxy = "mbarrier_init"} : () -> ()
  "nv_tileas.cluster_sync"() {barriers_made} : () -> ()
  %place = arith.divsi %m, %n : i32
  %word = "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 128 : i32} : () -> !word
  "nv_tileas.alloc_tmem"(%word) {columns = 32 : i32, pair} : (!word) -> ()
  "nv_tileas.cluster_arrive"() : () -> ()
  %zero = arith.constant 0 : i32
  "nv_tileas.barrier_expect"(%made, %zero) {bytes = 64 : i32} : (!barrier, i32) -> ()
  "nv_tileas.cluster_wait"() : () -> ()
  return %place : i32
}
// -----
// What a thread stored before has to be seen as well; other meetings stay whole.
// CHECK: func.func @hands_over
// CHECK: "nv_tileas.copy"
// CHECK-NEXT: "nv_tileas.cluster_arrive"() : () -> ()
// CHECK-NEXT: "nv_tileas.cluster_wait"
// CHECK-NEXT: "nv_tileas.cluster_sync"
#one = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[0],[0]] : 32">
#row = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16]] : 32">
!row = !nv_tileas.buffer<tensor<32xi32, #row>, "shared", 1 : i32>
func.func @hands_over(%tile: tensor<32xi32, #one>, %row: !row) {
  "nv_tileas.copy"(%tile, %row) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<32xi32, #one>, !row) -> ()
  "nv_tileas.cluster_sync"() {barriers_made} : () -> ()
  "nv_tileas.cluster_sync"() : () -> ()
  return
}
// -----
// CHECK: error: 'nv_tileas.alloc_tmem' op expects a power of two from 32 to 512 columns, but got 33
#w = #nv_tileas.layout<": 1">
!word = !nv_tileas.buffer<tensor<1xi32, #w>, "shared", 1 : i32>
func.func @odd(%word: !word) {
  "nv_tileas.cluster_sync"() {barriers_made} : () -> ()
  "nv_tileas.alloc_tmem"(%word) {columns = 33 : i32, pair} : (!word) -> ()
  return
}

// RUN: tilec opt -p "mlir:cse,mlir:canonicalize"

// Two reads of one buffer are one, until something writes or threads meet.
// CHECK: func.func @reads
// CHECK: %[[A:.*]] = "nv_tileas.copy"(%[[V:[a-z0-9]+]])
// CHECK-NEXT: "nv_tileas.copy"(%{{[a-z0-9]+}}, %[[V]])
// CHECK-NEXT: %[[B:.*]] = "nv_tileas.copy"(%[[V]])
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: %[[C:.*]] = "nv_tileas.copy"(%[[V]])
// CHECK-NEXT: return %[[A]], %[[A]], %[[B]], %[[C]]
#s = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16]] : 32">
#r = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] : 32">
!v = !nv_tileas.buffer<tensor<32xf32, #s>, "shared", 1 : i32>
!t = tensor<32xf32, #r>
func.func @reads(%v: !v, %t: !t) -> (!t, !t, !t, !t) {
  %a = "nv_tileas.copy"(%v) : (!v) -> !t
  %b = "nv_tileas.copy"(%v) : (!v) -> !t
  "nv_tileas.copy"(%t, %v) : (!t, !v) -> ()
  %c = "nv_tileas.copy"(%v) : (!v) -> !t
  "nv_tileas.sync"() : () -> ()
  %d = "nv_tileas.copy"(%v) : (!v) -> !t
  return %a, %b, %c, %d : !t, !t, !t, !t
}
// -----
// A buffer that nobody uses goes; one that is written stays; views are one.
// CHECK: func.func @allocations
// CHECK-NEXT: %[[B:.*]] = "nv_tileas.alloc_tensor"
// CHECK-NEXT: %[[V:.*]] = "nv_tileas.buffer_view"(%[[B]]
// CHECK-NEXT: "nv_tileas.copy"(%{{[a-z0-9]+}}, %[[V]])
// CHECK-NEXT: "nv_tileas.copy"(%{{[a-z0-9]+}}, %[[V]])
// CHECK-NEXT: return
#s = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16]] : 32">
#r = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] : 32">
!b = !nv_tileas.buffer<tensor<32xf32, #s>, "shared", 2 : i32>
!v = !nv_tileas.buffer<tensor<32xf32, #s>, "shared", 1 : i32>
!t = tensor<32xf32, #r>
func.func @allocations(%t: !t, %i: i32) {
  %dead = "nv_tileas.alloc_tensor"() {alignment = 16 : i32} : () -> !b
  %b = "nv_tileas.alloc_tensor"() {alignment = 16 : i32} : () -> !b
  %v = "nv_tileas.buffer_view"(%b, %i) : (!b, i32) -> !v
  %w = "nv_tileas.buffer_view"(%b, %i) : (!b, i32) -> !v
  "nv_tileas.copy"(%t, %v) : (!t, !v) -> ()
  "nv_tileas.copy"(%t, %w) : (!t, !v) -> ()
  return
}
// -----
// Waiting, arriving, fences and copies all stay, in their order.
// CHECK: func.func @order
// CHECK: nv_tileas.async_copy
// CHECK-NEXT: nv_tileas.async_copy
// CHECK-NEXT: nv_tileas.async_commit_group
// CHECK-NEXT: nv_tileas.async_wait
// CHECK-NEXT: nv_tileas.fence
// CHECK-NEXT: nv_tileas.fence
// CHECK-NEXT: nv_tileas.barrier_arrive
// CHECK-NEXT: nv_tileas.barrier_wait
// CHECK-NEXT: nv_tileas.barrier_wait
// CHECK-NEXT: return
#s = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16]] : 32">
!v = !nv_tileas.buffer<tensor<32xf32, #s>, "shared", 1 : i32>
!p = !nv_tileaa.ptr<f32, 1 : i32>
!a = !nv_tileas.async_token
!bar = !nv_tileas.barrier<1 : i32, 1 : i32>
func.func @order(%v: !v, %p: !p, %bar: !bar, %i: i32) {
  %x = "nv_tileas.async_copy"(%v, %p) {bytes = 128 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!v, !p) -> !a
  %y = "nv_tileas.async_copy"(%v, %p) {bytes = 128 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!v, !p) -> !a
  %g = "nv_tileas.async_commit_group"(%x, %y) {group = "bulk"} : (!a, !a) -> !a
  "nv_tileas.async_wait"(%g) {pending = 0 : i32, group = "bulk"} : (!a) -> ()
  "nv_tileas.fence"() {proxy = "async"} : () -> ()
  "nv_tileas.fence"() {proxy = "async"} : () -> ()
  "nv_tileas.barrier_arrive"(%bar, %i) {by = "warp", kind = "generic"} : (!bar, i32) -> ()
  "nv_tileas.barrier_wait"(%bar, %i, %i) : (!bar, i32, i32) -> ()
  "nv_tileas.barrier_wait"(%bar, %i, %i) : (!bar, i32, i32) -> ()
  return
}

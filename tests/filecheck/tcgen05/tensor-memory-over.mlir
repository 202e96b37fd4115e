// RUN: tilec opt -p tileas-insert-barriers

// Threads meet before they write columns that others read, by whichever name they have them.
// CHECK: func.func @over
// CHECK: "nv_tileas.copy"
// CHECK: "nv_tileas.tmem_fence"() {side = "before"}
// CHECK-NEXT: "nv_tileas.sync"
// CHECK: "nv_tileas.copy"
// CHECK: return
#m = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4]] row=[[1,0],[2,0],[4,0],[8,0],[0,0],[16,0],[32,0]] : 64x8">
#h = #nv_tileas.layout<"column=[[0,1],[0,2]] row=[[1,0],[2,0],[4,0],[8,0],[0,0],[16,0],[32,0]] : 64x4">
#c = #nv_tileas.layout<"register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x8">
#d = #nv_tileas.layout<"register=[[8,0]] lane=[[0,1],[0,2],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x4">
!m = !nv_tileas.buffer<tensor<64x8xf32, #m>, "tensor", 1 : i32>
!h = !nv_tileas.buffer<tensor<64x4xf32, #h>, "tensor", 1 : i32>
!c = tensor<64x8xf32, #c>
!d = tensor<64x4xf32, #d>
func.func @over(%address: i32, %x: !d) {
  %c4 = arith.constant 4 : i32
  %a = "nv_tileas.tmem_buffer"(%address) {column = 0 : i32} : (i32) -> !m
  %h = "nv_tileas.tmem_view"(%a, %c4) : (!m, i32) -> !h
  %r = "nv_tileas.copy"(%a) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> !c
  "nv_tileas.copy"(%x, %h) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (!d, !h) -> ()
  return
}
// -----
// Columns beside each other are no matter, nor what a loop keeps in order itself.
// CHECK: func.func @beside
// CHECK-NOT: "nv_tileas.sync"
// CHECK: return
#m = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4]] row=[[1,0],[2,0],[4,0],[8,0],[0,0],[16,0],[32,0]] : 64x8">
#h = #nv_tileas.layout<"column=[[0,1],[0,2]] row=[[1,0],[2,0],[4,0],[8,0],[0,0],[16,0],[32,0]] : 64x4">
#d = #nv_tileas.layout<"register=[[8,0]] lane=[[0,1],[0,2],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x4">
!m = !nv_tileas.buffer<tensor<64x8xf32, #m>, "tensor", 1 : i32>
!h = !nv_tileas.buffer<tensor<64x4xf32, #h>, "tensor", 1 : i32>
!d = tensor<64x4xf32, #d>
func.func @beside(%address: i32, %x: !d) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %a = "nv_tileas.tmem_buffer"(%address) {column = 0 : i32} : (i32) -> !m
  %f = "nv_tileas.tmem_view"(%a, %c0) : (!m, i32) -> !h
  %h = "nv_tileas.tmem_view"(%a, %c4) : (!m, i32) -> !h
  %b = "nv_tileas.tmem_buffer"(%address) {column = 32 : i32, ordered} : (i32) -> !m
  %o = "nv_tileas.tmem_view"(%b, %c0) : (!m, i32) -> !h
  %r = "nv_tileas.copy"(%f) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!h) -> !d
  "nv_tileas.copy"(%x, %h) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (!d, !h) -> ()
  %q = "nv_tileas.copy"(%o) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!h) -> !d
  "nv_tileas.copy"(%x, %o) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (!d, !h) -> ()
  return
}
// -----
// A column that is known only when the kernel runs may be any of the buffer's.
// CHECK: func.func @unknown
// CHECK: "nv_tileas.copy"
// CHECK: "nv_tileas.sync"
// CHECK: "nv_tileas.copy"
// CHECK: return
#m = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4]] row=[[1,0],[2,0],[4,0],[8,0],[0,0],[16,0],[32,0]] : 64x8">
#h = #nv_tileas.layout<"column=[[0,1],[0,2]] row=[[1,0],[2,0],[4,0],[8,0],[0,0],[16,0],[32,0]] : 64x4">
#d = #nv_tileas.layout<"register=[[8,0]] lane=[[0,1],[0,2],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x4">
!m = !nv_tileas.buffer<tensor<64x8xf32, #m>, "tensor", 1 : i32>
!h = !nv_tileas.buffer<tensor<64x4xf32, #h>, "tensor", 1 : i32>
!d = tensor<64x4xf32, #d>
func.func @unknown(%address: i32, %column: i32, %x: !d) {
  %c4 = arith.constant 4 : i32
  %a = "nv_tileas.tmem_buffer"(%address) {column = 0 : i32} : (i32) -> !m
  %f = "nv_tileas.tmem_view"(%a, %column) : (!m, i32) -> !h
  %h = "nv_tileas.tmem_view"(%a, %c4) : (!m, i32) -> !h
  %r = "nv_tileas.copy"(%f) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!h) -> !d
  "nv_tileas.copy"(%x, %h) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (!d, !h) -> ()
  return
}

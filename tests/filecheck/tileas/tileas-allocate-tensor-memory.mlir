// RUN: tilec opt -p tileas-allocate-tensor-memory

// All columns are taken at once, and given back before the return; what does not live at once
// shares columns only where there are not enough.
// CHECK: func.func @two
// CHECK: %[[W:.*]] = "nv_tileas.alloc_tensor"() {{.*}}tensor<1xi32
// CHECK-NEXT: "nv_tileas.alloc_tmem"(%[[W]]) {columns = 64 : i32}
// CHECK-NEXT: %[[A:.*]] = "nv_tileas.tmem_address"(%[[W]])
// CHECK-NEXT: %[[X:.*]] = "nv_tileas.tmem_buffer"(%[[A]]) {column = 0 : i32}
// CHECK-NEXT: %[[Y:.*]] = "nv_tileas.tmem_buffer"(%[[A]]) {column = 32 : i32}
// CHECK-NEXT: "nv_tileas.copy"(%[[X]])
// CHECK-NEXT: "nv_tileas.copy"(%[[Y]])
// CHECK-NEXT: "nv_tileas.dealloc_tmem"(%[[A]]) {columns = 64 : i32}
// CHECK-NEXT: return
#m = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4]] row=[[1,0],[2,0],[4,0],[8,0],[0,0],[16,0],[32,0]] : 64x8">
#c = #nv_tileas.layout<"register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x8">
!m = !nv_tileas.buffer<tensor<64x8xf32, #m>, "tensor", 1 : i32>
!c = tensor<64x8xf32, #c>
func.func @two() {
  %a = "nv_tileas.alloc_tensor"() {alignment = 32 : i32} : () -> !m
  %x = "nv_tileas.copy"(%a) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> !c
  %b = "nv_tileas.alloc_tensor"() {alignment = 32 : i32} : () -> !m
  %y = "nv_tileas.copy"(%b) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> !c
  return
}
// -----
// They are taken behind the last meeting before tensor memory is used, and the address is read there.
// CHECK: func.func @met
// CHECK-NEXT: "nv_tileas.sync"
// CHECK-NEXT: %[[W:.*]] = "nv_tileas.alloc_tensor"() {{.*}}tensor<1xi32
// CHECK-NEXT: "nv_tileas.alloc_tmem"(%[[W]])
// CHECK-NEXT: arith.constant
// CHECK-NEXT: "nv_tileas.tmem_address"(%[[W]])
// CHECK-NEXT: "nv_tileas.tmem_buffer"
// CHECK-NEXT: "nv_tileas.copy"
#m = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4]] row=[[1,0],[2,0],[4,0],[8,0],[0,0],[16,0],[32,0]] : 64x8">
#c = #nv_tileas.layout<"register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x8">
!m = !nv_tileas.buffer<tensor<64x8xf32, #m>, "tensor", 1 : i32>
!c = tensor<64x8xf32, #c>
func.func @met() {
  %a = "nv_tileas.alloc_tensor"() {alignment = 32 : i32} : () -> !m
  "nv_tileas.sync"() : () -> ()
  %i = arith.constant 0 : i32
  %x = "nv_tileas.copy"(%a) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!m) -> !c
  "nv_tileas.sync"() : () -> ()
  return
}
// -----
// CHECK: func.func @none
// CHECK-NOT: tmem
func.func @none() {
  return
}
// -----
// CHECK: error: 'nv_tileas.alloc_tensor' op allocated tmem out of resource: 1024 vs 512
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

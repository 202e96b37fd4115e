// RUN: tilec opt -p tileas-store-in-slices

// Each box of the store: its columns are read where the loop has run, scaled, rounded and staged.
// CHECK: func.func @in_slices
// CHECK-COUNT-2: "nv_tileas.alloc_tensor"() {alignment = 1024 : i32}
// CHECK: "nv_tileas.tmem_view"
// CHECK-NEXT: scf.if
// CHECK: "nv_tileas.copy"
// CHECK: arith.mulf
// CHECK: "nv_tileaa.fp_to_fp"
// CHECK: "nv_tileas.copy"
// CHECK: "nv_tileas.async_tiled_tma_store"
// CHECK: arith.constant 32 : i32
// CHECK: "nv_tileas.tmem_view"
// CHECK: "nv_tileas.copy"
// CHECK: "nv_tileas.async_tiled_tma_store"
#tmem = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32]] row=[[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[64,0]] : 128x64">
#regs = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[16,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[32,0],[64,0]] : 128x64">
#whole = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[1,0],[2,8],[4,16],[8,0],[16,0],[32,0],[64,0],[0,32]] : 128x64">
#box = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[1,0],[2,8],[4,16],[8,0],[16,0],[32,0],[64,0]] : 128x32">
!sums = !nv_tileas.buffer<tensor<128x64xf32, #tmem>, "tensor", 1 : i32>
!staged = !nv_tileas.buffer<tensor<128x64xf16, #whole>, "shared", 1 : i32>
!box = !nv_tileas.buffer<tensor<128x32xf16, #box>, "shared", 1 : i32>
!map = !nv_tileas.tma_desc<tensor<128x32xf16>, "64B">
func.func @in_slices(%sums: !sums, %ran: i1, %map: !map, %row: i32, %token: !nv_tileaa.mem_token) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<128x64xf32, #regs>
  %half = arith.constant dense<0.5> : tensor<128x64xf32, #regs>
  %found = scf.if %ran -> (tensor<128x64xf32, #regs>) {
    %read = "nv_tileas.copy"(%sums) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!sums) -> tensor<128x64xf32, #regs>
    scf.yield %read : tensor<128x64xf32, #regs>
  } else {
    scf.yield %none : tensor<128x64xf32, #regs>
  }
  %scaled = arith.mulf %found, %half : tensor<128x64xf32, #regs>
  %rounded = "nv_tileaa.fp_to_fp"(%scaled) : (tensor<128x64xf32, #regs>) -> tensor<128x64xf16, #regs>
  %staged = "nv_tileas.alloc_tensor"() {alignment = 1024 : i32} : () -> !staged
  "nv_tileas.copy"(%rounded, %staged) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<128x64xf16, #regs>, !staged) -> ()
  %left = "nv_tileas.buffer_view"(%staged, %zero, %zero, %zero) : (!staged, i32, i32, i32) -> !box
  %a:2 = "nv_tileas.async_tiled_tma_store"(%map, %left, %row, %zero, %token) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!map, !box, i32, i32, !nv_tileaa.mem_token) -> (!nv_tileas.async_token, !nv_tileaa.mem_token)
  %right = "nv_tileas.buffer_view"(%staged, %zero, %zero, %one) : (!staged, i32, i32, i32) -> !box
  %b:2 = "nv_tileas.async_tiled_tma_store"(%map, %right, %row, %one, %token) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!map, !box, i32, i32, !nv_tileaa.mem_token) -> (!nv_tileas.async_token, !nv_tileaa.mem_token)
  return
}
// -----
// In a loop whose threads all go on behind the last slice the tile stays whole.
// CHECK: func.func @in_a_loop
// CHECK-NOT: "nv_tileas.tmem_view"
// CHECK: return
#tmem = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32]] row=[[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[64,0]] : 128x64">
#regs = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[16,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[32,0],[64,0]] : 128x64">
#whole = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[1,0],[2,8],[4,16],[8,0],[16,0],[32,0],[64,0],[0,32]] : 128x64">
#box = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[1,0],[2,8],[4,16],[8,0],[16,0],[32,0],[64,0]] : 128x32">
!sums = !nv_tileas.buffer<tensor<128x64xf32, #tmem>, "tensor", 1 : i32>
!staged = !nv_tileas.buffer<tensor<128x64xf16, #whole>, "shared", 1 : i32>
!box = !nv_tileas.buffer<tensor<128x32xf16, #box>, "shared", 1 : i32>
!map = !nv_tileas.tma_desc<tensor<128x32xf16>, "64B">
func.func @in_a_loop(%sums: !sums, %ran: i1, %map: !map, %row: i32, %token: !nv_tileaa.mem_token) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %row step %one : i32 {
  %none = arith.constant dense<0.0> : tensor<128x64xf32, #regs>
  %half = arith.constant dense<0.5> : tensor<128x64xf32, #regs>
  %found = scf.if %ran -> (tensor<128x64xf32, #regs>) {
    %read = "nv_tileas.copy"(%sums) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!sums) -> tensor<128x64xf32, #regs>
    scf.yield %read : tensor<128x64xf32, #regs>
  } else {
    scf.yield %none : tensor<128x64xf32, #regs>
  }
  %scaled = arith.mulf %found, %half : tensor<128x64xf32, #regs>
  %rounded = "nv_tileaa.fp_to_fp"(%scaled) : (tensor<128x64xf32, #regs>) -> tensor<128x64xf16, #regs>
  %staged = "nv_tileas.alloc_tensor"() {alignment = 1024 : i32} : () -> !staged
  "nv_tileas.copy"(%rounded, %staged) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<128x64xf16, #regs>, !staged) -> ()
  %left = "nv_tileas.buffer_view"(%staged, %zero, %zero, %zero) : (!staged, i32, i32, i32) -> !box
  %a:2 = "nv_tileas.async_tiled_tma_store"(%map, %left, %row, %zero, %token) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!map, !box, i32, i32, !nv_tileaa.mem_token) -> (!nv_tileas.async_token, !nv_tileaa.mem_token)
  %right = "nv_tileas.buffer_view"(%staged, %zero, %zero, %one) : (!staged, i32, i32, i32) -> !box
  %b:2 = "nv_tileas.async_tiled_tma_store"(%map, %right, %row, %one, %token) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!map, !box, i32, i32, !nv_tileaa.mem_token) -> (!nv_tileas.async_token, !nv_tileaa.mem_token)
  }
  return
}
// -----
// What is added differs from element to element: the tile stays whole.
// CHECK: func.func @with_another_tile
// CHECK-NOT: "nv_tileas.tmem_view"
// CHECK: arith.addf
#tmem = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32]] row=[[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[64,0]] : 128x64">
#regs = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[16,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[32,0],[64,0]] : 128x64">
#whole = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[1,4],[2,8],[4,16],[8,0],[16,0],[32,0],[64,0],[0,32]] : 128x64">
#box = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[1,4],[2,8],[4,16],[8,0],[16,0],[32,0],[64,0]] : 128x32">
!sums = !nv_tileas.buffer<tensor<128x64xf32, #tmem>, "tensor", 1 : i32>
!staged = !nv_tileas.buffer<tensor<128x64xf32, #whole>, "shared", 1 : i32>
!box = !nv_tileas.buffer<tensor<128x32xf32, #box>, "shared", 1 : i32>
!map = !nv_tileas.tma_desc<tensor<128x32xf32>, "128B">
func.func @with_another_tile(%sums: !sums, %more: tensor<128x64xf32, #regs>, %map: !map, %row: i32, %token: !nv_tileaa.mem_token) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %read = "nv_tileas.copy"(%sums) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!sums) -> tensor<128x64xf32, #regs>
  %sum = arith.addf %read, %more : tensor<128x64xf32, #regs>
  %staged = "nv_tileas.alloc_tensor"() {alignment = 1024 : i32} : () -> !staged
  "nv_tileas.copy"(%sum, %staged) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<128x64xf32, #regs>, !staged) -> ()
  %left = "nv_tileas.buffer_view"(%staged, %zero, %zero, %zero) : (!staged, i32, i32, i32) -> !box
  %a:2 = "nv_tileas.async_tiled_tma_store"(%map, %left, %row, %zero, %token) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!map, !box, i32, i32, !nv_tileaa.mem_token) -> (!nv_tileas.async_token, !nv_tileaa.mem_token)
  %right = "nv_tileas.buffer_view"(%staged, %zero, %zero, %one) : (!staged, i32, i32, i32) -> !box
  %b:2 = "nv_tileas.async_tiled_tma_store"(%map, %right, %row, %one, %token) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!map, !box, i32, i32, !nv_tileaa.mem_token) -> (!nv_tileas.async_token, !nv_tileaa.mem_token)
  return
}
// -----
// CHECK: error: 'nv_tileas.tmem_view' op cannot view
#tmem = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4]] row=[[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[64,0]] : 128x8">
#part = #nv_tileas.layout<"column=[[0,2],[0,1]] row=[[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[64,0]] : 128x4">
!sums = !nv_tileas.buffer<tensor<128x8xf32, #tmem>, "tensor", 1 : i32>
!part = !nv_tileas.buffer<tensor<128x4xf32, #part>, "tensor", 1 : i32>
func.func @other_columns(%sums: !sums, %column: i32) {
  %part = "nv_tileas.tmem_view"(%sums, %column) : (!sums, i32) -> !part
  return
}

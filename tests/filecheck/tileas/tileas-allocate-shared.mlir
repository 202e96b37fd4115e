// RUN: tilec opt -p tileas-allocate-shared{separate-bytes=4096} --gpu-name sm_90

// Side by side while all of it stays below 4096 bytes, then over again.
// CHECK: func.func @scratch
// CHECK-SAME: nv_tileas.shared_bytes = 4096 : i32
// CHECK: "nv_tileas.convert_layout"
// CHECK-SAME: shared_bytes = 2048 : i32, shared_offset = 0 : i32
// CHECK: "nv_tileas.convert_layout"
// CHECK-SAME: shared_bytes = 2048 : i32, shared_offset = 2048 : i32
// CHECK: "nv_tileas.convert_layout"
// CHECK-SAME: shared_bytes = 2048 : i32, shared_offset = 0 : i32
#a = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
func.func @scratch(%x: tensor<512xf32, #a>) {
  %0 = "nv_tileas.convert_layout"(%x) : (tensor<512xf32, #a>) -> tensor<512xf32, #b>
  %1 = "nv_tileas.convert_layout"(%0) : (tensor<512xf32, #b>) -> tensor<512xf32, #a>
  %2 = "nv_tileas.convert_layout"(%1) : (tensor<512xf32, #a>) -> tensor<512xf32, #b>
  return
}
// -----
// A sum over warps needs one number of each warp and row.
// CHECK: func.func @across_warps
// CHECK: "nv_tileas.reduce"
// CHECK: shared_bytes = 128 : i32, shared_offset = 0 : i32
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
#r = #nv_tileas.layout<"lane=[[],[],[],[],[]] warp=[[],[]] : ">
func.func @across_warps(%x: tensor<128xf32, #a>) {
  %0 = "nv_tileas.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = "nv_tileaa.addf"(%a, %b) : (f32, f32) -> f32
    "nv_tileas.yield"(%s) : (f32) -> ()
  }) {axis = 0 : i32, identities = [0.0 : f32]} : (tensor<128xf32, #a>) -> f32
  return
}
// -----
// Registers and lanes need no memory.
// CHECK: func.func @in_registers
// CHECK-SAME: nv_tileas.shared_bytes = 0 : i32
// CHECK-NEXT: "nv_tileas.convert_layout"(%{{.*}}) : (
// CHECK-NEXT: return
#a = #nv_tileas.layout<"register=[[128]] lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 256">
#b = #nv_tileas.layout<"register=[[128]] lane=[[2],[1],[4],[8],[16]] warp=[[32],[64]] : 256">
func.func @in_registers(%x: tensor<256xf32, #a>) {
  %0 = "nv_tileas.convert_layout"(%x) : (tensor<256xf32, #a>) -> tensor<256xf32, #b>
  return
}
// -----
// CHECK: loc("tileas-allocate-shared.mlir":[[# @LINE + 2]]:8): error: 'nv_tileas.convert_layout' op works on a tile without a layout; run 'tileas-assign-layouts' before
func.func @no_layout(%x: tensor<256xf32>) {
  %0 = "nv_tileas.convert_layout"(%x) : (tensor<256xf32>) -> tensor<256xf32>
  return
}
// -----
// The target's own limit holds, not that of static arrays: 128 KiB are fine, 256 KiB are not.
// CHECK: func.func @beyond_48_kib
// CHECK-SAME: nv_tileas.shared_bytes = 131072 : i32
#a = #nv_tileas.layout<"register=[[1],[2],[4],[8],[16],[32],[64],[128]] lane=[[256],[512],[1024],[2048],[4096]] warp=[[8192],[16384]] : 32768">
func.func @beyond_48_kib(%x: tensor<32768xf32, #a>) {
  %0 = "nv_tileaa.print"(%x) {format = "%f", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<32768xf32, #a>) -> !nv_tileaa.mem_token
  return
}
// -----
// CHECK: error: 'nv_tileaa.print' op uses too much shared data (0x40000 bytes, 0x38c00 max)
#a = #nv_tileas.layout<"register=[[1],[2],[4],[8],[16],[32],[64],[128]] lane=[[256],[512],[1024],[2048],[4096]] warp=[[8192],[16384]] : 32768">
func.func @too_much(%x: tensor<32768xf64, #a>) {
  %0 = "nv_tileaa.print"(%x) {format = "%f", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<32768xf64, #a>) -> !nv_tileaa.mem_token
  return
}

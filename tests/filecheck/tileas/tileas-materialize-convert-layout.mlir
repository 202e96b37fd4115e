// RUN: tilec opt -p tileas-materialize-convert-layout --gpu-name sm_90

// Data that crosses warps goes through a buffer.
// CHECK: func.func @crosses_warps
// CHECK: %[[B:.*]] = "nv_tileas.alloc_tensor"() {{.*}} -> !nv_tileas.buffer<tensor<512xf32, {{.*}}>, "shared", 1 : i32>
// CHECK-NEXT: "nv_tileas.copy"(%arg0, %[[B]])
// CHECK-NEXT: "nv_tileas.copy"(%[[B]])
// CHECK-NEXT: return
#a = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
func.func @crosses_warps(%x: tensor<512xf32, #a>) {
  %0 = "nv_tileas.convert_layout"(%x) : (tensor<512xf32, #a>) -> tensor<512xf32, #b>
  return
}
// -----
// Registers and lanes need no memory.
// CHECK: func.func @in_registers
// CHECK-NEXT: "nv_tileas.convert_layout"(%{{.*}}) : (
// CHECK-NEXT: return
#a = #nv_tileas.layout<"register=[[128]] lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 256">
#b = #nv_tileas.layout<"register=[[128]] lane=[[2],[1],[4],[8],[16]] warp=[[32],[64]] : 256">
func.func @in_registers(%x: tensor<256xf32, #a>) {
  %0 = "nv_tileas.convert_layout"(%x) : (tensor<256xf32, #a>) -> tensor<256xf32, #b>
  return
}
// -----
// A sum over warps needs one number of each warp and row.
// CHECK: func.func @across_warps
// CHECK: %[[B:.*]] = "nv_tileas.alloc_tensor"() {{.*}} -> !nv_tileas.buffer<tensor<4xf32,
// CHECK: "nv_tileas.reduce_across_warps"(%arg0, %[[B]])
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
func.func @across_warps(%x: tensor<128xf32, #a>) {
  %0 = "nv_tileas.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = "nv_tileaa.addf"(%a, %b) : (f32, f32) -> f32
    "nv_tileas.yield"(%s) : (f32) -> ()
  }) {axis = 0 : i32, identities = [0.0 : f32]} : (tensor<128xf32, #a>) -> f32
  return
}
// -----
// CHECK: loc("tileas-materialize-convert-layout.mlir":[[# @LINE + 2]]:8): error: 'nv_tileas.convert_layout' op works on a tile without a layout; run 'tileas-assign-layouts' before
func.func @no_layout(%x: tensor<256xf32>) {
  %0 = "nv_tileas.convert_layout"(%x) : (tensor<256xf32>) -> tensor<256xf32>
  return
}

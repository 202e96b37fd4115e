// RUN: tilec opt -p tileas-assign-layouts

// The load decides: two registers in a row, then lanes, then warps; what follows has its layout.
// CHECK: func.func @follows
// CHECK-NEXT: "register={{\[\[1\]\]}} lane={{\[\[2\],\[4\],\[8\],\[16\],\[32\]\]}} warp={{\[\[64\],\[128\]\]}} : 256"
// CHECK: %[[X:.*]]:2 = "nv_tileas.load"
// CHECK-SAME: -> (tensor<256xf32, #nv_tileas.layout<"[[LAYOUT:register=[^"]*]]">>, !nv_tileaa.mem_token)
// CHECK: math.absf %[[X]]#0 : tensor<256xf32, #nv_tileas.layout<"[[LAYOUT]]">>
// CHECK-NOT: convert_layout
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
func.func @follows(%p: !ptr) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %b = "nv_tileaa.splat"(%p) : (!ptr) -> tensor<256x!ptr>
  %x:2 = "nv_tileas.load"(%b) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<256x!ptr>) -> (tensor<256xf32>, !nv_tileaa.mem_token)
  %y = math.absf %x#0 : tensor<256xf32>
  return
}
// -----
// A sum along the axis that the broadcast needs whole: one conversion between them.
// CHECK: func.func @converts
// CHECK: %[[R:.*]] = "nv_tileas.reduce"
// CHECK: %[[C:.*]] = "nv_tileas.convert_layout"
// CHECK: "nv_tileaa.broadcast"(%[[C]])
!t = tensor<64x64xf32>
func.func @converts() attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %c = arith.constant dense<1.0> : !t
  %r = "nv_tileas.reduce"(%c) ({
  ^bb0(%a: f32, %b: f32):
    %s = "nv_tileaa.addf"(%a, %b) : (f32, f32) -> f32
    "nv_tileas.yield"(%s) : (f32) -> ()
  }) {axis = 1 : i32, identities = [0.0 : f32]} : (!t) -> tensor<64xf32>
  %v = "nv_tileas.view"(%r) : (tensor<64xf32>) -> tensor<1x64xf32>
  %w = "nv_tileaa.broadcast"(%v) : (tensor<1x64xf32>) -> !t
  %x = arith.mulf %w, %c : !t
  return
}
// -----
// Scalars have no layout.
// CHECK: func.func @scalars(%[[X:.*]]: f32)
// CHECK-NEXT: math.absf %[[X]] : f32
// CHECK-NEXT: return
func.func @scalars(%x: f32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = math.absf %x : f32
  return
}
// -----
// CHECK: loc("tileas-assign-layouts.mlir":[[# @LINE + 5]]:10): error: 'tensor.reshape' op works on tiles, but no layout rule knows it
module {
  func.func @foreign() attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
    %0 = arith.constant dense<1.0> : tensor<64xf32>
    %s = arith.constant dense<64> : tensor<1xi32>
    %1 = tensor.reshape %0(%s) : (tensor<64xf32>, tensor<1xi32>) -> tensor<64xf32>
    return
  }
}
// -----
// CHECK: error: 'nv_tileas.load' op has no access plan; run 'tileas-plan-accesses' before
func.func @unplanned(%p: !nv_tileaa.ptr<f32, 1 : i32>) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %b = "nv_tileaa.splat"(%p) : (!nv_tileaa.ptr<f32, 1 : i32>) -> tensor<256x!nv_tileaa.ptr<f32, 1 : i32>>
  %x:2 = "nv_tileas.load"(%b) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<256x!nv_tileaa.ptr<f32, 1 : i32>>) -> (tensor<256xf32>, !nv_tileaa.mem_token)
  return
}
// -----
// CHECK: loc("tileas-assign-layouts.mlir":[[# @LINE + 1]]:1): error: 'func.func' op has no kernel_spec; run 'convert-tileaa-to-tileas' before
func.func @no_kernel() {
  return
}

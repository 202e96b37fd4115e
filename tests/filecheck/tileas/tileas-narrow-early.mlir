// RUN: tilec opt -p tileas-narrow-early

!ptr = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>>
!tok = !nv_tileaa.mem_token
!wide = tensor<128xf32>
!half = tensor<128xf16>

// The sum is the last to read %e besides its rounding, so that comes before the load, and takes
// with it what only it reads.
// CHECK-LABEL: func.func @frees_registers
// CHECK: %[[E:.*]] = "nv_tileaa.exp2"
// CHECK: %[[S:.*]] = "nv_tileaa.reduce"(%[[E]])
// CHECK: "nv_tileaa.fp_to_fp"(%[[E]])
// CHECK: "nv_tileaa.load"
// CHECK: return
func.func @frees_registers(%p: !ptr, %x: !wide) -> (!half, f32, !wide) {
  %e = "nv_tileaa.exp2"(%x) : (!wide) -> !wide
  %s = "nv_tileaa.reduce"(%e) ({
  ^bb0(%a: f32, %b: f32):
    %t = "nv_tileaa.addf"(%a, %b) : (f32, f32) -> f32
    "nv_tileaa.yield"(%t) : (f32) -> ()
  }) {axis = 0 : i32, identities = [0.0 : f32]} : (!wide) -> f32
  %v:2 = "nv_tileaa.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!ptr) -> (!wide, !tok)
  %h = "nv_tileaa.fp_to_fp"(%e) : (!wide) -> !half
  return %h, %s, %v#0 : !half, f32, !wide
}
// -----
!ptr = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>>
!tok = !nv_tileaa.mem_token
!wide = tensor<128xf32>
!half = tensor<128xf16>

// What waits for a load does not come before the next one, or that one would have to wait, too.
// CHECK-LABEL: func.func @loads_stay_together
// CHECK: "nv_tileaa.load"
// CHECK-NEXT: "nv_tileaa.load"
// CHECK: "nv_tileaa.fp_to_fp"
func.func @loads_stay_together(%p: !ptr, %q: !ptr) -> (!half, !wide) {
  %u:2 = "nv_tileaa.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!ptr) -> (!wide, !tok)
  %v:2 = "nv_tileaa.load"(%q) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!ptr) -> (!wide, !tok)
  %h = "nv_tileaa.fp_to_fp"(%u#0) : (!wide) -> !half
  return %h, %v#0 : !half, !wide
}
// -----
!ptr = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>>
!tok = !nv_tileaa.mem_token
!wide = tensor<128xf32>
!half = tensor<128xf16>

// Nothing is freed: %e is read again after the load, in a branch, or comes from outside of a loop.
// CHECK-LABEL: func.func @still_needed
// CHECK: "nv_tileaa.exp2"
// CHECK: "nv_tileaa.load"
// CHECK-NEXT: "nv_tileaa.fp_to_fp"
// CHECK: scf.for
// CHECK-NEXT: "nv_tileaa.load"
// CHECK-NEXT: "nv_tileaa.fp_to_fp"
func.func @still_needed(%p: !ptr, %x: !wide, %c: i1, %i: i32) -> !half {
  %e = "nv_tileaa.exp2"(%x) : (!wide) -> !wide
  %v:2 = "nv_tileaa.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!ptr) -> (!wide, !tok)
  %h = "nv_tileaa.fp_to_fp"(%e) : (!wide) -> !half
  scf.for %j = %i to %i step %i : i32 {
    %w:2 = "nv_tileaa.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!ptr) -> (!wide, !tok)
    %g = "nv_tileaa.fp_to_fp"(%x) : (!wide) -> !half
    "nv_tileaa.assert"(%c) {message = "a"} : (i1) -> ()
  }
  scf.if %c {
    %k = "nv_tileaa.fp_to_fp"(%e) : (!wide) -> !half
  }
  return %h : !half
}
// -----
// The end of a tile's life is looked for in one block.
// CHECK: loc("tileas-narrow-early.mlir":[[# @LINE + 1]]:1): error: 'func.func' op has branches; control flow must be structured (scf) here
func.func @branches(%x: tensor<128xf32>) {
  cf.br ^bb1
^bb1:
  return
}

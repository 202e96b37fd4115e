// RUN: tilec opt -p "mlir:canonicalize"

// What nobody uses goes, if it has no effect: arithmetic, views, tokens, folds, weak loads.
// CHECK: func.func @unused
// CHECK-NEXT: return
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
!m = !nv_tileaa.memref<f32, array<i64: 64>, array<i64: 1>>
!v = !nv_tileaa.tiled_view<!m, array<i32: 32>, array<i32: 0>, "zero">
!t = tensor<32xf32>
func.func @unused(%p: !p, %x: f32, %i: i32, %u: !tok) {
  %s = "nv_tileaa.splat"(%x) : (f32) -> !t
  %a = "nv_tileaa.addf"(%s, %s) : (!t, !t) -> !t
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
  %v = "nv_tileaa.block_tile"(%m) : (!m) -> !v
  %l:2 = "nv_tileas.tiled_load"(%v, %i, %u) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1>} : (!v, i32, !tok) -> (!t, !tok)
  %k:2 = "nv_tileaa.load"(%p, %l#1) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
  %j = "nv_tileaa.join_mem_token"(%l#1, %k#1) : (!tok, !tok) -> !tok
  %r = "nv_tileas.reduce"(%a) ({
  ^bb0(%e: f32, %f: f32):
    %z = "nv_tileaa.addf"(%e, %f) : (f32, f32) -> f32
    "nv_tileas.yield"(%z) : (f32) -> ()
  }) {axis = 0 : i32, identities = [0.0 : f32]} : (!t) -> f32
  %n = "nv_tileaa.assume"(%i) {predicate = {kind = "div_by", divisor = 16 : i64}} : (i32) -> i32
  return
}
// -----
// What others see stays: stores, atomics, assertions, ordered and volatile loads, system calls.
// CHECK: func.func @seen
// CHECK-NEXT: nv_tileaa.store
// CHECK-NEXT: nv_tileaa.atomic_rmw
// CHECK-NEXT: nv_tileas.atomic_cas
// CHECK-NEXT: nv_tileaa.load
// CHECK-SAME: acquire
// CHECK-NEXT: nv_tileaa.load
// CHECK-SAME: volatile
// CHECK-NEXT: nv_tileaa.assert
// CHECK-NEXT: nv_tileaa.gdc_wait
// CHECK-NEXT: nv_tileaa.alloca
// CHECK-NEXT: return
!p = !nv_tileaa.ptr<i32, 1 : i32>
!tok = !nv_tileaa.mem_token
func.func @seen(%p: !p, %x: i32, %c: i1) {
  %a = "nv_tileaa.store"(%p, %x) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, i32) -> !tok
  %b:2 = "nv_tileaa.atomic_rmw"(%p, %x) {mem_semantic = "relaxed", mem_scope = "gpu", rmw_mode = "add", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, i32) -> (i32, !tok)
  %d:2 = "nv_tileas.atomic_cas"(%p, %x, %x) {mem_semantic = "relaxed", mem_scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!p, i32, i32) -> (i32, !tok)
  %e:2 = "nv_tileaa.load"(%p) {mem_semantic = "acquire", mem_scope = "gpu", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (i32, !tok)
  %f:2 = "nv_tileaa.load"(%p) {mem_semantic = "weak", volatile, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (i32, !tok)
  "nv_tileaa.assert"(%c) {message = "m"} : (i1) -> ()
  %g = "nv_tileaa.gdc_wait"() {operandSegmentSizes = array<i32: 0>} : () -> !tok
  %h:2 = "nv_tileaa.alloca"() {size = 8 : i64, alignment = 16 : i64} : () -> (!p, !p)
  return
}

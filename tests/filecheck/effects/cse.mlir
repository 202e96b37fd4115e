// RUN: tilec opt -p "mlir:cse"

// Two equal loads under one token are one; one under another token is another.
// CHECK: func.func @loads
// CHECK: %[[A:.*]]:2 = "nv_tileaa.load"(%{{.*}}, %[[T:.*]]) {mem_semantic = "weak"
// CHECK-NEXT: %[[B:.*]]:2 = "nv_tileaa.load"(%{{.*}}, %[[A]]#1)
// CHECK-NEXT: return %[[A]]#0, %[[A]]#0, %[[B]]#0
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
func.func @loads(%p: !p, %t: !tok) -> (f32, f32, f32) {
  %a:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
  %b:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
  %c:2 = "nv_tileaa.load"(%p, %b#1) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
  return %a#0, %b#0, %c#0 : f32, f32, f32
}
// -----
// Nothing that writes may stand between, whatever its token.
// CHECK: func.func @store_between
// CHECK-COUNT-2: nv_tileaa.load
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
func.func @store_between(%p: !p, %q: !p, %t: !tok, %x: f32) -> (f32, f32) {
  %a:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
  %s = "nv_tileaa.store"(%q, %x) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, f32) -> !tok
  %b:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
  return %a#0, %b#0 : f32, f32
}
// -----
// CHECK: func.func @atomic_between
// CHECK-COUNT-2: nv_tileaa.load
!p = !nv_tileaa.ptr<i32, 1 : i32>
!tok = !nv_tileaa.mem_token
func.func @atomic_between(%p: !p, %t: !tok, %x: i32) -> (i32, i32) {
  %a:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (i32, !tok)
  %s:2 = "nv_tileaa.atomic_rmw"(%p, %x) {mem_semantic = "relaxed", mem_scope = "gpu", rmw_mode = "add", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, i32) -> (i32, !tok)
  %b:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (i32, !tok)
  return %a#0, %b#0 : i32, i32
}
// -----
// Loads that order, and volatile ones, are all made.
// CHECK: func.func @ordered
// CHECK-COUNT-4: nv_tileaa.load
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
func.func @ordered(%p: !p, %t: !tok) -> (f32, f32, f32, f32) {
  %a:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "relaxed", mem_scope = "gpu", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
  %b:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "relaxed", mem_scope = "gpu", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
  %c:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "weak", volatile, operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
  %d:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "weak", volatile, operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
  return %a#0, %b#0, %c#0, %d#0 : f32, f32, f32, f32
}
// -----
// Loads of views, products and folds; the flags of an operation are part of what it is.
// CHECK: func.func @tiles
// CHECK: %[[L:.*]]:2 = "nv_tileas.tiled_load"
// CHECK-NOT: nv_tileas.tiled_load
// CHECK: %[[A:.*]] = "nv_tileaa.addf"(%[[L]]#0, %[[L]]#0)
// CHECK-NEXT: %[[F:.*]] = "nv_tileaa.addf"(%[[L]]#0, %[[L]]#0) {ftz}
// CHECK: %[[R:.*]] = "nv_tileas.reduce"(%[[A]])
// CHECK-NOT: nv_tileas.reduce
// CHECK: return %[[A]], %[[A]], %[[F]], %[[R]], %[[R]]
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
!m = !nv_tileaa.memref<f32, array<i64: 64>, array<i64: 1>>
!v = !nv_tileaa.tiled_view<!m, array<i32: 32>, array<i32: 0>, "zero">
!t = tensor<32xf32>
func.func @tiles(%p: !p, %i: i32) -> (!t, !t, !t, f32, f32) {
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
  %v = "nv_tileaa.block_tile"(%m) : (!m) -> !v
  %x:2 = "nv_tileas.tiled_load"(%v, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!v, i32) -> (!t, !tok)
  %y:2 = "nv_tileas.tiled_load"(%v, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!v, i32) -> (!t, !tok)
  %a = "nv_tileaa.addf"(%x#0, %y#0) : (!t, !t) -> !t
  %b = "nv_tileaa.addf"(%y#0, %x#0) : (!t, !t) -> !t
  %c = "nv_tileaa.addf"(%x#0, %x#0) {ftz} : (!t, !t) -> !t
  %r = "nv_tileas.reduce"(%a) ({
  ^bb0(%e: f32, %f: f32):
    %s = "nv_tileaa.addf"(%e, %f) : (f32, f32) -> f32
    "nv_tileas.yield"(%s) : (f32) -> ()
  }) {axis = 0 : i32, identities = [0.0 : f32]} : (!t) -> f32
  %q = "nv_tileas.reduce"(%b) ({
  ^bb0(%e: f32, %f: f32):
    %s = "nv_tileaa.addf"(%e, %f) : (f32, f32) -> f32
    "nv_tileas.yield"(%s) : (f32) -> ()
  }) {axis = 0 : i32, identities = [0.0 : f32]} : (!t) -> f32
  return %a, %b, %c, %r, %q : !t, !t, !t, f32, f32
}

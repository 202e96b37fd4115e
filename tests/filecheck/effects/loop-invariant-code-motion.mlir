// RUN: tilec opt -p "mlir:loop-invariant-code-motion"

// Pure operations leave the loop; a load does not pass the store that the loop makes, nor does what
// needs it. A fold leaves if all of its body may run anywhere.
// CHECK: func.func @loop
// CHECK-DAG: nv_tileaa.mulf
// CHECK-DAG: nv_tileaa.addptr
// CHECK-DAG: nv_tileaa.reduce
// CHECK: scf.for
// CHECK-NEXT: nv_tileaa.load
// CHECK-NEXT: nv_tileaa.addf
// CHECK-NEXT: nv_tileaa.store
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
!t = tensor<32xf32>
func.func @loop(%p: !p, %x: f32, %y: !t, %i: i32, %n: index, %t: !tok) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %k = %zero to %n step %one {
    %m = "nv_tileaa.mulf"(%x, %x) : (f32, f32) -> f32
    %q = "nv_tileaa.addptr"(%p, %i) : (!p, i32) -> !p
    %r = "nv_tileaa.reduce"(%y) ({
    ^bb0(%e: f32, %f: f32):
      %s = "nv_tileaa.addf"(%e, %f) : (f32, f32) -> f32
      "nv_tileaa.yield"(%s) : (f32) -> ()
    }) {axis = 0 : i32, identities = [0.0 : f32]} : (!t) -> f32
    %l:2 = "nv_tileaa.load"(%q, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
    %a = "nv_tileaa.addf"(%l#0, %m) : (f32, f32) -> f32
    %w = "nv_tileaa.store"(%q, %a, %l#1) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!p, f32, !tok) -> !tok
    scf.yield
  }
  return
}
// -----
// A loop that may not run at all must not load: the address is good only where it runs.
// CHECK: func.func @alone
// CHECK: scf.for
// CHECK-NEXT: nv_tileaa.load
// CHECK-NEXT: nv_tileaa.print
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
func.func @alone(%p: !p, %n: index, %t: !tok) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %k = %zero to %n step %one {
    %l:2 = "nv_tileaa.load"(%p, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !tok) -> (f32, !tok)
    %u = "nv_tileaa.print"(%l#0, %l#1) {format = "%f", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (f32, !tok) -> !tok
    scf.yield
  }
  return
}
// -----
// A fold whose body may not run anywhere (a division) stays.
// CHECK: func.func @divides
// CHECK: scf.for
// CHECK-NEXT: nv_tileaa.reduce
!t = tensor<32xi32>
func.func @divides(%y: !t, %n: index, %p: !nv_tileaa.ptr<i32, 1 : i32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %k = %zero to %n step %one {
    %r = "nv_tileaa.reduce"(%y) ({
    ^bb0(%e: i32, %f: i32):
      %s = arith.divsi %e, %f : i32
      "nv_tileaa.yield"(%s) : (i32) -> ()
    }) {axis = 0 : i32, identities = [1 : i32]} : (!t) -> i32
    %w = "nv_tileaa.store"(%p, %r) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!nv_tileaa.ptr<i32, 1 : i32>, i32) -> !nv_tileaa.mem_token
    scf.yield
  }
  return
}

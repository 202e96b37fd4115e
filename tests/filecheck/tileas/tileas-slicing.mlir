// RUN: tilec opt -p tileas-slicing

// Ten iterations in three parts of three, and one that is left; the sum goes from one to the next.
// CHECK-LABEL: func.func @thirds
// CHECK-DAG: %[[A:.*]] = arith.constant 8 : i32
// CHECK: %[[R0:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %arg0)
// CHECK: %[[R1:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[R0]])
// CHECK: %[[R2:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[R1]])
// CHECK: %[[R3:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[R2]])
// CHECK-NOT: sliceCount
// CHECK: return %[[R3]]
func.func @thirds(%x: f32) -> f32 {
  %two = arith.constant 2 : i32
  %end = arith.constant 21 : i32
  %r = scf.for %i = %two to %end step %two iter_args(%s = %x) -> (f32) : i32 {
    %t = arith.addf %s, %s : f32
    scf.yield %t : f32
  } {sliceCount = 3 : i32}
  return %r : f32
}
// -----
// More slices than iterations: what is left is all. Without the mark a loop stays.
// CHECK-LABEL: func.func @few
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
func.func @few(%n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %one step %one : i32 {
  } {sliceCount = 4 : i32}
  scf.for %i = %zero to %n step %one : i32 {
  }
  return
}
// -----
// CHECK: error: {{.*}}'scf.for' op The `sliceCount` need to be a `IntegerAttr`
func.func @no_number() {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %one step %one : i32 {
  } {sliceCount = "many"}
  return
}
// -----
// CHECK: error: {{.*}}'scf.for' op unsupported op to be a lower bound in slicing pass
func.func @from_somewhere(%n: i32) {
  %one = arith.constant 1 : i32
  scf.for %i = %n to %one step %one : i32 {
  } {sliceCount = 2 : i32}
  return
}
// -----
// CHECK: error: {{.*}}'scf.if' op unsupported op in Slicing pass
func.func @no_loop(%c: i1) {
  scf.if %c {
  } {sliceCount = 2 : i32}
  return
}

// RUN: tilec opt -p tileas-remove-dead-args

// A count that only counts, a value that nobody takes, and a pair that only feeds each other go; the
// sum stays, and so does what a store needs.
// CHECK-LABEL: func.func @loop
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[PLACE:.*]] = %arg1) -> (f32, !nv_tileaa.ptr<f32, 1 : i32>)
// CHECK: "nv_tileas.store"(%[[PLACE]]
// CHECK: scf.yield %{{.*}}, %{{.*}} : f32, !nv_tileaa.ptr<f32, 1 : i32>
// CHECK: return %[[R]]#0
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
func.func @loop(%n: i32, %p: !ptr, %x: f32) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %f = arith.constant 0.0 : f32
  %r:6 = scf.for %i = %zero to %n step %one iter_args(%count = %zero, %sum = %f, %place = %p, %unused = %x, %a = %zero, %b = %one) -> (i32, f32, !ptr, f32, i32, i32) : i32 {
    %next = arith.addi %count, %one : i32
    %more = arith.addf %sum, %x : f32
    %t = "nv_tileas.store"(%place, %more) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!ptr, f32) -> !nv_tileaa.mem_token
    %on = "nv_tileaa.addptr"(%place, %one) : (!ptr, i32) -> !ptr
    %twice = arith.addi %b, %b : i32
    scf.yield %next, %more, %on, %x, %twice, %a : i32, f32, !ptr, f32, i32, i32
  }
  return %r#1 : f32
}
// -----
// A branch gives what is taken; a loop in it, whose result that was, carries nothing then.
// CHECK-LABEL: func.func @branch
// CHECK: %[[R:.*]] = scf.if %arg0 -> (i32)
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: return %[[R]]
func.func @branch(%c: i1, %n: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.if %c -> (i32, i32) {
    %s = scf.for %i = %zero to %n step %one iter_args(%k = %zero) -> (i32) : i32 {
      %next = arith.addi %k, %one : i32
      scf.yield %next : i32
    }
    scf.yield %s, %one : i32, i32
  } else {
    scf.yield %zero, %zero : i32, i32
  }
  return %r#1 : i32
}
// -----
// All of it is needed: the second argument by the condition of a branch inside.
// CHECK-LABEL: func.func @needed
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %arg1, %{{.*}} = %arg2) -> (f32, i1)
func.func @needed(%n: i32, %x: f32, %c: i1) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %true = arith.constant true
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%v = %x, %flag = %c) -> (f32, i1) : i32 {
    %w = scf.if %flag -> (f32) {
      scf.yield %v : f32
    } else {
      scf.yield %x : f32
    }
    scf.yield %w, %true : f32, i1
  }
  return %r#0 : f32
}
// -----
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
func.func @nothing() {
  return
}
// -----
// CHECK: error: 'scf.for' op different number of inits and region iter_args: 1 != 0
func.func @wrong(%n: i32) {
  %r = "scf.for"(%n, %n, %n, %n) ({
  ^bb0(%i: i32):
    "scf.yield"() : () -> ()
  }) : (i32, i32, i32, i32) -> i32
  return
}

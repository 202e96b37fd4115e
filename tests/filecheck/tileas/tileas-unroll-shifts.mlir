// RUN: tilec opt -p tileas-unroll-shifts

// Each of four iterations reads one element further on.
// CHECK-LABEL: func.func @taps
// CHECK-NOT: scf.for
// CHECK-COUNT-4: "nv_tileas.load"
// CHECK-NOT: "nv_tileas.load"
!p = !nv_tileaa.ptr<f32, 1 : i32>
!ps = tensor<128x!p>
!is = tensor<128xi32>
!x = tensor<128xf32>
!t = !nv_tileaa.mem_token
func.func @taps(%p: !p, %zeros: !x) -> !x {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %r = "nv_tileaa.make_range"() {start = 0 : i32, end = 128 : i32} : () -> !is
  %b = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %s = scf.for %tap = %c0 to %c4 step %c1 iter_args(%sum = %zeros) -> (!x) : i32 {
    %by = "nv_tileaa.splat"(%tap) : (i32) -> !is
    %i = arith.addi %r, %by : !is
    %q = "nv_tileaa.addptr"(%b, %i) : (!ps, !is) -> !ps
    %x:2 = "nv_tileas.load"(%q, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
    %next = arith.addf %sum, %x#0 : !x
    scf.yield %next : !x
  }
  return %s : !x
}
// -----
// A whole tile further on, or as often as somebody says, or twice as far each time: nothing that a
// thread has is read again.
// CHECK-LABEL: func.func @loops
// CHECK-COUNT-3: scf.for
!p = !nv_tileaa.ptr<f32, 1 : i32>
!ps = tensor<128x!p>
!is = tensor<128xi32>
!x = tensor<128xf32>
!t = !nv_tileaa.mem_token
func.func @loops(%p: !p, %zeros: !x, %n: i32) -> !x {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c128 = arith.constant 128 : i32
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %r = "nv_tileaa.make_range"() {start = 0 : i32, end = 128 : i32} : () -> !is
  %b = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %u = scf.for %part = %c0 to %c4 step %c1 iter_args(%sum = %zeros) -> (!x) : i32 {
    %first = arith.muli %part, %c128 : i32
    %by = "nv_tileaa.splat"(%first) : (i32) -> !is
    %i = arith.addi %r, %by : !is
    %q = "nv_tileaa.addptr"(%b, %i) : (!ps, !is) -> !ps
    %x:2 = "nv_tileas.load"(%q, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
    %next = arith.addf %sum, %x#0 : !x
    scf.yield %next : !x
  }
  %v = scf.for %tap = %c0 to %n step %c1 iter_args(%sum = %u) -> (!x) : i32 {
    %by = "nv_tileaa.splat"(%tap) : (i32) -> !is
    %i = arith.addi %r, %by : !is
    %q = "nv_tileaa.addptr"(%b, %i) : (!ps, !is) -> !ps
    %x:2 = "nv_tileas.load"(%q, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
    %next = arith.addf %sum, %x#0 : !x
    scf.yield %next : !x
  }
  %w = scf.for %tap = %c0 to %c4 step %c1 iter_args(%sum = %v) -> (!x) : i32 {
    %times = "nv_tileaa.splat"(%tap) : (i32) -> !is
    %i = arith.muli %r, %times : !is
    %q = "nv_tileaa.addptr"(%b, %i) : (!ps, !is) -> !ps
    %x:2 = "nv_tileas.load"(%q, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
    %next = arith.addf %sum, %x#0 : !x
    scf.yield %next : !x
  }
  return %w : !x
}
// -----
// CHECK: error: 'scf.for' op {{.*}}
func.func @invalid(%n: i32, %f: f32) -> f32 {
  %s = scf.for %i = %n to %n step %n iter_args(%sum = %f) -> (f32) : i32 {
    scf.yield %n : i32
  }
  return %s : f32
}

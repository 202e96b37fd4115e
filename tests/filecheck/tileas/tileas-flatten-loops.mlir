// RUN: tilec opt -p tileas-flatten-loops

// Nine turns of a loop of four steps. Both variables are carried; the outer one goes on where the
// inner one begins anew.
// CHECK-LABEL: func.func @nest
// CHECK: %[[R:.*]]:3 = scf.for %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[TAP:.*]] = %{{.*}}, %[[STEP:.*]] = %{{.*}}) -> (tensor<16x16xf32>, i32, i32) : i32
// CHECK: arith.muli %[[TAP]]
// CHECK-NOT: scf.for
// CHECK: %[[D:.*]] = "nv_tileaa.dot"(%{{.*}}, %{{.*}}, %[[SUM]])
// CHECK: %[[NEXT:.*]] = arith.addi %[[STEP]]
// CHECK: %[[ENDS:.*]] = arith.cmpi sge, %[[NEXT]]
// CHECK: %[[FAR:.*]] = arith.addi %[[TAP]]
// CHECK: %[[O:.*]] = arith.select %[[ENDS]], %[[FAR]], %[[TAP]]
// CHECK: %[[I:.*]] = arith.select %[[ENDS]], %{{.*}}, %[[NEXT]]
// CHECK: scf.yield %[[D]], %[[O]], %[[I]]
// CHECK: return %[[R]]#0
!a = tensor<16x16xf16>
!c = tensor<16x16xf32>
func.func @nest(%x: !a, %y: !a, %c: !c) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %r = scf.for %tap = %c0 to %c9 step %c1 iter_args(%far = %c) -> (!c) : i32 {
    %place = arith.muli %tap, %c4 : i32
    %s = scf.for %step = %c0 to %c4 step %c1 iter_args(%near = %far) -> (!c) : i32 {
      %at = arith.addi %place, %step : i32
      %d = "nv_tileaa.dot"(%x, %y, %near) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !a, !c) -> !c
      scf.yield %d : !c
    }
    scf.yield %s : !c
  }
  return %r : !c
}
// -----
// Numbers of steps whose product may not fit into 32 bits are counted in 64.
// CHECK-LABEL: func.func @wide
// CHECK: %[[N:.*]] = arith.muli %{{.*}}, %{{.*}} : i64
// CHECK: scf.for %{{.*}} to %[[N]] {{.*}} : i64
// CHECK-NOT: scf.for
!a = tensor<16x16xf16>
!c = tensor<16x16xf32>
func.func @wide(%x: !a, %y: !a, %c: !c, %n: i32, %m: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%far = %c) -> (!c) : i32 {
    %s = scf.for %j = %c0 to %m step %c1 iter_args(%near = %far) -> (!c) : i32 {
      %d = "nv_tileaa.dot"(%x, %y, %near) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !a, !c) -> !c
      scf.yield %d : !c
    }
    scf.yield %s : !c
  }
  return %r : !c
}
// -----
// Something is done behind the inner loop; it begins with another sum, or counts to what the outer
// one is at, or has many steps; or nothing is multiplied.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-10: scf.for
!a = tensor<16x16xf16>
!c = tensor<16x16xf32>
func.func @apart(%x: !a, %y: !a, %c: !c, %n: i32) -> (!c, !c, !c, !c, !c) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %c64 = arith.constant 64 : i32
  %r0 = scf.for %i = %c0 to %c9 step %c1 iter_args(%far = %c) -> (!c) : i32 {
    %s = scf.for %j = %c0 to %c9 step %c1 iter_args(%near = %far) -> (!c) : i32 {
      %d = "nv_tileaa.dot"(%x, %y, %near) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !a, !c) -> !c
      scf.yield %d : !c
    }
    %t = arith.addf %s, %c : !c
    scf.yield %t : !c
  }
  %r1 = scf.for %i = %c0 to %c9 step %c1 iter_args(%far = %c) -> (!c) : i32 {
    %s = scf.for %j = %c0 to %c9 step %c1 iter_args(%near = %c) -> (!c) : i32 {
      %d = "nv_tileaa.dot"(%x, %y, %near) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !a, !c) -> !c
      scf.yield %d : !c
    }
    scf.yield %s : !c
  }
  %r2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%far = %c) -> (!c) : i32 {
    %s = scf.for %j = %c0 to %i step %c1 iter_args(%near = %far) -> (!c) : i32 {
      %d = "nv_tileaa.dot"(%x, %y, %near) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !a, !c) -> !c
      scf.yield %d : !c
    }
    scf.yield %s : !c
  }
  %r3 = scf.for %i = %c0 to %c9 step %c1 iter_args(%far = %c) -> (!c) : i32 {
    %s = scf.for %j = %c0 to %c64 step %c1 iter_args(%near = %far) -> (!c) : i32 {
      %d = "nv_tileaa.dot"(%x, %y, %near) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !a, !c) -> !c
      scf.yield %d : !c
    }
    scf.yield %s : !c
  }
  %r4 = scf.for %i = %c0 to %c9 step %c1 iter_args(%far = %c) -> (!c) : i32 {
    %s = scf.for %j = %c0 to %c9 step %c1 iter_args(%near = %far) -> (!c) : i32 {
      %d = arith.addf %near, %c : !c
      scf.yield %d : !c
    }
    scf.yield %s : !c
  }
  return %r0, %r1, %r2, %r3, %r4 : !c, !c, !c, !c, !c
}
// -----
// CHECK: error: 'nv_tileaa.dot' op
func.func @invalid(%x: tensor<16x8xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = "nv_tileaa.dot"(%x, %x, %c) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<16x8xf16>, tensor<16x8xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %d : tensor<16x16xf32>
}

// RUN: tilec opt -p tileas-materialize-schedule

// By start cycle, then by program order; the attributes are gone afterwards.
// CHECK: func.func @moves(%[[X:.*]]: f32) {
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: %[[A:.*]] = math.absf
// CHECK-NEXT: arith.negf %[[A]]
// CHECK-NEXT: math.exp
// CHECK-NEXT: return
// CHECK-NOT: nv_tileas.start
func.func @moves(%x: f32) attributes {nv_tileas.ii = 60 : i32} {
  %0 = math.absf %x {nv_tileas.start = 2 : i32} : f32
  %1 = math.exp %x {nv_tileas.start = 50 : i32} : f32
  %2 = arith.negf %0 {nv_tileas.start = 40 : i32} : f32
  %3 = math.sqrt %x {nv_tileas.start = 0 : i32} : f32
  return {nv_tileas.start = 50 : i32}
}
// -----
// Without a schedule, program order stays.
// CHECK: func.func @stays
// CHECK-NEXT: math.absf
// CHECK-NEXT: math.exp
// CHECK-NEXT: return
func.func @stays(%x: f32) {
  %0 = math.absf %x : f32
  %1 = math.exp %x : f32
  return
}
// -----
// CHECK: loc("tileas-materialize-schedule.mlir":[[# @LINE + 3]]:3): error: 'scf.for' op has a schedule of 3 stages, but only one iteration at a time is supported
// CHECK: hint: choose a scheduler whose starts stay below its initiation interval
func.func @stages(%n: i32, %x: f32) {
  scf.for %i = %n to %n step %n : i32 {
    %0 = math.absf %x {nv_tileas.start = 0 : i32} : f32
    %1 = arith.negf %0 {nv_tileas.start = 5 : i32} : f32
    scf.yield {nv_tileas.start = 5 : i32}
  } {nv_tileas.ii = 2 : i32}
  return
}
// -----
// CHECK: loc("tileas-materialize-schedule.mlir":[[# @LINE + 3]]:8): error: 'arith.negf' op starts before 'math.absf', which it depends on, or less than 20 cycles after it
func.func @too_early(%x: f32) attributes {nv_tileas.ii = 9 : i32} {
  %0 = math.absf %x {nv_tileas.start = 4 : i32} : f32
  %1 = arith.negf %0 {nv_tileas.start = 3 : i32} : f32
  return {nv_tileas.start = 8 : i32}
}
// -----
// In order, but before the result is there.
// CHECK: loc("tileas-materialize-schedule.mlir":[[# @LINE + 3]]:8): error: 'arith.negf' op starts before 'math.absf', which it depends on, or less than 20 cycles after it
func.func @too_soon(%x: f32) attributes {nv_tileas.ii = 30 : i32} {
  %0 = math.absf %x {nv_tileas.start = 0 : i32} : f32
  %1 = arith.negf %0 {nv_tileas.start = 19 : i32} : f32
  return {nv_tileas.start = 20 : i32}
}
// -----
// CHECK: loc("tileas-materialize-schedule.mlir":[[# @LINE + 2]]:8): error: 'math.absf' op has no 'nv_tileas.start', although its block is scheduled
func.func @half(%x: f32) attributes {nv_tileas.ii = 9 : i32} {
  %0 = math.absf %x : f32
  return {nv_tileas.start = 8 : i32}
}

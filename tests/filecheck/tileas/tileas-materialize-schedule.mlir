// RUN: tilec opt -p tileas-materialize-schedule --remarks -

// By start cycle, then by program order; the attributes are gone afterwards.
// CHECK: func.func @moves(%[[X:.*]]: f32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: %[[A:.*]] = math.absf
// CHECK-NEXT: arith.negf %[[A]]
// CHECK-NEXT: math.exp
// CHECK-NEXT: return
// CHECK-NOT: nv_tile
func.func @moves(%x: f32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}, nv_tileas.ii = 60 : i32, nv_tile.aws.stage = array<i64: 0, 0, 0, 0, 0>, nv_tile.aws.order = array<i64: 1, 3, 2, 0, 4>} {
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
// Two stages: the square root of the next iteration beside the sum of this one. An iteration
// is left over at either end; the loop runs once less.
// CHECK: func.func @overlaps(%[[LO:.*]]: i32, %[[HI:.*]]: i32, %[[X:.*]]: f32)
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[LO]], %[[HI]] : i32
// CHECK-NEXT: %[[R:.*]] = scf.if %[[SOME]] -> (f32) {
// CHECK: %[[FIRST:.*]] = math.sqrt %[[X]]
// CHECK: %[[END:.*]] = arith.select %{{.*}}, %{{.*}}, %[[LO]]
// CHECK: %[[K:.*]]:2 = scf.for %{{.*}} = %[[LO]] to %[[END]] step %{{.*}} iter_args(%[[A:.*]] = %[[X]], %[[S:.*]] = %[[FIRST]]) -> (f32, f32)
// CHECK-NEXT: %[[NEXT:.*]] = math.sqrt %[[X]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[A]], %[[S]]
// CHECK-NEXT: scf.yield %[[SUM]], %[[NEXT]]
// CHECK: %[[LAST:.*]] = arith.addf %[[K]]#0, %[[K]]#1
// CHECK-NEXT: scf.yield %[[LAST]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[X]]
// CHECK-NOT: nv_tile.aws
func.func @overlaps(%lo: i32, %hi: i32, %x: f32) -> f32 attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %one = arith.constant 1 : i32
  %r = scf.for %i = %lo to %hi step %one iter_args(%a = %x) -> f32 : i32 {
    %0 = math.sqrt %x {nv_tileas.start = 0 : i32} : f32
    %1 = arith.addf %a, %0 {nv_tileas.start = 1000 : i32} : f32
    scf.yield {nv_tileas.start = 1100 : i32} %1 : f32
  } {nv_tileas.ii = 600 : i32}
  return %r : f32
}
// -----
// Three stages, but two iterations.
// CHECK: runs one iteration after the other: it has 2 iterations, for 3 stages
// CHECK: func.func @short
// CHECK: scf.for
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.addf
func.func @short(%x: f32) -> f32 attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %r = scf.for %i = %zero to %two step %one iter_args(%a = %x) -> f32 : i32 {
    %0 = math.sqrt %x {nv_tileas.start = 0 : i32} : f32
    %1 = math.exp %0 {nv_tileas.start = 600 : i32} : f32
    %2 = arith.addf %a, %1 {nv_tileas.start = 1300 : i32} : f32
    scf.yield {nv_tileas.start = 1320 : i32} %2 : f32
  } {nv_tileas.ii = 600 : i32}
  return %r : f32
}
// -----
// Only the end of an iteration says whether there is another one.
// CHECK: error: 'scf.while' op failed to legalize schedule: its schedule puts 'scf.condition' (#2) into stage 1, but 1 may be in flight
func.func @while(%x: f32, %c: i1) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %r = scf.while (%a = %x) : (f32) -> f32 {
    %b = arith.addf %a, %a {nv_tileas.start = 0 : i32} : f32
    %d = math.sqrt %b {nv_tileas.start = 100 : i32} : f32
    scf.condition(%c) {nv_tileas.start = 700 : i32} %d : f32
  } do {
  ^bb0(%d: f32):
    scf.yield %d : f32
  } attributes {nv_tileas.ii = 650 : i32}
  return
}
// -----
// CHECK: loc("tileas-materialize-schedule.mlir":[[# @LINE + 2]]:1): error: 'func.func' op failed to legalize schedule: its schedule starts 'arith.negf' (#1) in cycle 3, before 'math.absf' (#0) in cycle 4: data edge 0 -> 1, latency {{[0-9]+}}, distance 0
// CHECK: hint: every schedule is checked, whoever made it; nothing was changed
func.func @too_early(%x: f32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}, nv_tileas.ii = 9 : i32} {
  %0 = math.absf %x {nv_tileas.start = 4 : i32} : f32
  %1 = arith.negf %0 {nv_tileas.start = 3 : i32} : f32
  return {nv_tileas.start = 8 : i32}
}
// -----
// In order, but before the result is there.
// CHECK: loc("tileas-materialize-schedule.mlir":[[# @LINE + 1]]:1): error: 'func.func' op failed to legalize schedule: its schedule starts 'arith.negf' (#1) in cycle 1, less than its latency after 'math.absf' (#0) in cycle 0: data edge 0 -> 1
func.func @too_soon(%x: f32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}, nv_tileas.ii = 30 : i32} {
  %0 = math.absf %x {nv_tileas.start = 0 : i32} : f32
  %1 = arith.negf %0 {nv_tileas.start = 1 : i32} : f32
  return {nv_tileas.start = 20 : i32}
}
// -----
// Two tiles in the transcendental unit at once.
// CHECK: error: 'func.func' op failed to legalize schedule: its schedule starts 'math.exp2' (#1) in cycle 10, but 'xu' is taken in cycle 10 of the interval of 9000: 1 of 1 in use, 1 more wanted for {{[0-9]+}} cycles
func.func @crowded(%x: tensor<64x64xf32>) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}, nv_tileas.ii = 9000 : i32} {
  %0 = math.exp2 %x {nv_tileas.start = 0 : i32} : tensor<64x64xf32>
  %1 = math.exp2 %x {nv_tileas.start = 10 : i32} : tensor<64x64xf32>
  return {nv_tileas.start = 8000 : i32}
}
// -----
// CHECK: loc("tileas-materialize-schedule.mlir":[[# @LINE + 3]]:8): error: 'math.absf' op has no 'nv_tileas.start', although its block is scheduled
// CHECK: hint: cleanup pass invalidated ScheduleAnalysis; rerun constraint generation or remove the pass
func.func @half(%x: f32) attributes {nv_tileas.ii = 9 : i32} {
  %0 = math.absf %x : f32
  return {nv_tileas.start = 8 : i32}
}
// -----
// CHECK: error: 'func.func' op has an invalid schedule: 'nv_tile.aws.stage' has 1 entries for 2 operations
func.func @short(%x: f32) attributes {nv_tileas.ii = 9 : i32, nv_tile.aws.stage = array<i64: 0>} {
  %0 = math.absf %x {nv_tileas.start = 0 : i32} : f32
  return {nv_tileas.start = 8 : i32}
}
// -----
// CHECK: error: 'func.func' op has an invalid schedule: 'nv_tile.aws.order' is no array of i64
func.func @wrong_type(%x: f32) attributes {nv_tileas.ii = 9 : i32, nv_tile.aws.order = "0, 1"} {
  %0 = math.absf %x {nv_tileas.start = 0 : i32} : f32
  return {nv_tileas.start = 8 : i32}
}
// -----
// Starts were edited, stages were not.
// CHECK: error: 'math.absf' op has 'nv_tileas.start' for a 'nv_tile.aws.stage' of 0, but that says 1
func.func @disagrees(%x: f32) attributes {nv_tileas.ii = 9 : i32} {
  %0 = math.absf %x {nv_tileas.start = 0 : i32, nv_tile.aws.stage = 1 : i32} : f32
  return {nv_tileas.start = 8 : i32, nv_tile.aws.stage = 0 : i32}
}

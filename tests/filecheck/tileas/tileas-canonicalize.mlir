// RUN: tilec opt -p tileas-canonicalize{coalesce-loops=true}

// What was put in is taken out; beside it, what was there before.
// CHECK: func.func @slices(%[[T:.*]]: tensor<8xf32>, %[[P:.*]]: tensor<2xf32>, %[[I:.*]]: i32)
// CHECK: %[[Q:.*]] = "nv_tileas.extract_slice"(%[[T]], %c1_i32)
// CHECK: return %[[P]], %[[P]], %[[Q]]
func.func @slices(%t: tensor<8xf32>, %p: tensor<2xf32>, %i: i32) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %six = arith.constant 6 : i32
  %0 = "nv_tileas.insert_slice"(%p, %t, %i) : (tensor<2xf32>, tensor<8xf32>, i32) -> tensor<8xf32>
  %1 = "nv_tileas.extract_slice"(%0, %i) : (tensor<8xf32>, i32) -> tensor<2xf32>
  %2 = "nv_tileas.insert_slice"(%p, %t, %two) : (tensor<2xf32>, tensor<8xf32>, i32) -> tensor<8xf32>
  %3 = "nv_tileas.extract_slice"(%2, %six) : (tensor<8xf32>, i32) -> tensor<2xf32>
  %4 = "nv_tileas.extract_slice"(%2, %one) : (tensor<8xf32>, i32) -> tensor<2xf32>
  return %1, %3, %4 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
// -----
// Places that may or may not be the same, and parts of another shape.
// CHECK: func.func @stays
// CHECK: nv_tileas.insert_slice
// CHECK: nv_tileas.extract_slice
// CHECK: nv_tileas.extract_slice
func.func @stays(%t: tensor<8xf32>, %p: tensor<2xf32>, %i: i32, %j: i32) -> (tensor<2xf32>, tensor<4xf32>) {
  %0 = "nv_tileas.insert_slice"(%p, %t, %i) : (tensor<2xf32>, tensor<8xf32>, i32) -> tensor<8xf32>
  %1 = "nv_tileas.extract_slice"(%0, %j) : (tensor<8xf32>, i32) -> tensor<2xf32>
  %2 = "nv_tileas.extract_slice"(%0, %i) : (tensor<8xf32>, i32) -> tensor<4xf32>
  return %1, %2 : tensor<2xf32>, tensor<4xf32>
}
// -----
// CHECK: func.func @views(%[[T:.*]]: tensor<4x8xf32>, %[[I:.*]]: i32, %[[J:.*]]: i32)
// CHECK: %[[S:.*]] = "nv_tileas.extract_slice"(%[[T]], %[[I]], %[[J]]) : (tensor<4x8xf32>, i32, i32) -> tensor<2x2xf32>
// CHECK: %[[V:.*]] = "nv_tileas.view"(%[[S]]) : (tensor<2x2xf32>) -> tensor<2x1x2xf32>
// CHECK: return %[[V]]
func.func @views(%t: tensor<4x8xf32>, %i: i32, %j: i32) -> tensor<2x1x2xf32> {
  %0 = "nv_tileas.view"(%t) : (tensor<4x8xf32>) -> tensor<4x1x8xf32>
  %1 = "nv_tileas.extract_slice"(%0, %i, %i, %j) : (tensor<4x1x8xf32>, i32, i32, i32) -> tensor<2x1x2xf32>
  return %1 : tensor<2x1x2xf32>
}
// -----
// Both branches put something into the same place: it is put there once, afterwards.
// CHECK: func.func @branches(%[[C:.*]]: i1, %[[T:.*]]: tensor<8xf32>, %[[P:.*]]: tensor<2xf32>, %[[Q:.*]]: tensor<2xf32>, %[[I:.*]]: i32)
// CHECK: %[[R:.*]]:2 = scf.if %[[C]] -> (tensor<2xf32>, i32)
// CHECK: scf.yield %[[P]], %[[I]]
// CHECK: scf.yield %[[Q]], %[[I]]
// CHECK: %[[N:.*]] = "nv_tileas.insert_slice"(%[[R]]#0, %[[T]], %[[I]])
// CHECK: return %[[N]], %[[R]]#1
func.func @branches(%c: i1, %t: tensor<8xf32>, %p: tensor<2xf32>, %q: tensor<2xf32>, %i: i32) -> (tensor<8xf32>, i32) {
  %r:2 = scf.if %c -> (tensor<8xf32>, i32) {
    %0 = "nv_tileas.insert_slice"(%p, %t, %i) : (tensor<2xf32>, tensor<8xf32>, i32) -> tensor<8xf32>
    scf.yield %0, %i : tensor<8xf32>, i32
  } else {
    %1 = "nv_tileas.insert_slice"(%q, %t, %i) : (tensor<2xf32>, tensor<8xf32>, i32) -> tensor<8xf32>
    scf.yield %1, %i : tensor<8xf32>, i32
  }
  return %r#0, %r#1 : tensor<8xf32>, i32
}
// -----
// Different places, or a place that only the branch knows: nothing moves.
// CHECK: func.func @apart
// CHECK: scf.if {{.*}} -> (tensor<8xf32>)
// CHECK: scf.if {{.*}} -> (tensor<8xf32>)
func.func @apart(%c: i1, %t: tensor<8xf32>, %p: tensor<2xf32>, %i: i32, %j: i32) -> (tensor<8xf32>, tensor<8xf32>) {
  %r = scf.if %c -> (tensor<8xf32>) {
    %0 = "nv_tileas.insert_slice"(%p, %t, %i) : (tensor<2xf32>, tensor<8xf32>, i32) -> tensor<8xf32>
    scf.yield %0 : tensor<8xf32>
  } else {
    %1 = "nv_tileas.insert_slice"(%p, %t, %j) : (tensor<2xf32>, tensor<8xf32>, i32) -> tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  }
  %s = scf.if %c -> (tensor<8xf32>) {
    %k = arith.addi %i, %j : i32
    %0 = "nv_tileas.insert_slice"(%p, %t, %k) : (tensor<2xf32>, tensor<8xf32>, i32) -> tensor<8xf32>
    scf.yield %0 : tensor<8xf32>
  } else {
    scf.yield %t : tensor<8xf32>
  }
  return %r, %s : tensor<8xf32>, tensor<8xf32>
}
// -----
// CHECK: func.func @nest
// CHECK: scf.for %[[T:.*]] = %c0_i32{{.*}} to %c12_i32
// CHECK-NOT: scf.for
// CHECK-DAG: arith.divsi %[[T]]
// CHECK-DAG: arith.remsi %[[T]]
// CHECK: nv_tileaa.assert
func.func @nest(%b: i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %eight = arith.constant 8 : i32
  %two = arith.constant 2 : i32
  scf.for %i = %one to %four step %one : i32 {
    scf.for %j = %zero to %eight step %two : i32 {
      %k = arith.addi %i, %j : i32
      %c = arith.cmpi slt, %k, %eight : i32
      "nv_tileaa.assert"(%c) {message = "m"} : (i1) -> ()
    }
  }
  return
}
// -----
// Something else in the outer loop, bounds that are not known, too many iterations.
// CHECK: func.func @loops_stay
// CHECK-COUNT-6: scf.for
func.func @loops_stay(%b: i1, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %big = arith.constant 100000 : i32
  scf.for %i = %zero to %big step %one : i32 {
    "nv_tileaa.assert"(%b) {message = "m"} : (i1) -> ()
    scf.for %j = %zero to %one step %one : i32 {
      "nv_tileaa.assert"(%b) {message = "m"} : (i1) -> ()
    }
  }
  scf.for %i = %zero to %n step %one : i32 {
    scf.for %j = %zero to %big step %one : i32 {
      "nv_tileaa.assert"(%b) {message = "m"} : (i1) -> ()
    }
  }
  scf.for %i = %zero to %big step %one : i32 {
    scf.for %j = %zero to %big step %one : i32 {
      "nv_tileaa.assert"(%b) {message = "m"} : (i1) -> ()
    }
  }
  return
}
// -----
// CHECK: loc("tileas-canonicalize.mlir":[[# @LINE + 2]]:8): error: 'nv_tileas.extract_slice' op cannot cut [8] into tiles of [3]
func.func @invalid(%t: tensor<8xf32>, %i: i32) {
  %0 = "nv_tileas.extract_slice"(%t, %i) : (tensor<8xf32>, i32) -> tensor<3xf32>
  return
}

// RUN: tilec opt -p tileas-order-blocks --gpu-name sm_90

// Loops run longer along y: the last of them begin first, and x and z stay.
// CHECK: func.func @along_y
// CHECK: %[[Y:.*]] = "nv_tileaa.get_program_id"() {axis = 1 : i32}
// CHECK: %[[N:.*]] = "nv_tileaa.get_num_programs"() {axis = 1 : i32}
// CHECK: %[[LAST:.*]] = arith.addi %[[N]], %{{.*}} : i32
// CHECK: %[[TURNED:.*]] = arith.subi %[[LAST]], %[[Y]] : i32
// CHECK: %[[NEW:.*]] = "nv_tileaa.assume"(%[[TURNED]])
// CHECK: %[[X:.*]] = "nv_tileaa.get_program_id"() {axis = 0 : i32}
// CHECK: arith.muli %[[NEW]]
// CHECK: arith.addi %[[X]], %[[NEW]]
!half = tensor<16x16xf16>
!sums = tensor<16x16xf32>
func.func @along_y(%n: i32, %c: !sums) {
  %x = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
  %y = "nv_tileaa.get_program_id"() {axis = 1 : i32} : () -> i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ones = arith.constant dense<1.0> : !half
  %rows = arith.constant 128 : i32
  %row = arith.muli %y, %rows : i32
  %end = arith.minsi %row, %n : i32
  %tiles = arith.ceildivsi %end, %rows : i32
  %place = arith.addi %x, %y : i32
  %d = scf.for %j = %zero to %tiles step %one iter_args(%s = %c) -> (!sums) : i32 {
    %t = "nv_tileaa.dot"(%ones, %ones, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!half, !half, !sums) -> !sums
    scf.yield %t : !sums
  }
  return
}
// -----
// Along x eight y are gone through together, if there are as many: l = (y and 7) * n + x.
// CHECK: func.func @along_x
// CHECK: %[[X:.*]] = "nv_tileaa.get_program_id"() {axis = 0 : i32}
// CHECK: %[[N:.*]] = "nv_tileaa.get_num_programs"() {axis = 0 : i32}
// CHECK: %[[Y:.*]] = "nv_tileaa.get_program_id"() {axis = 1 : i32}
// CHECK: %[[IN:.*]] = arith.andi %[[Y]], %{{.*}} : i32
// CHECK: %[[FIRST:.*]] = arith.subi %[[Y]], %[[IN]] : i32
// CHECK: %[[BEFORE:.*]] = arith.muli %[[IN]], %[[N]] : i32
// CHECK: %[[L:.*]] = arith.addi %[[BEFORE]], %[[X]] : i32
// CHECK: %[[PART:.*]] = arith.shrui %[[L]], %{{.*}} : i32
// CHECK: %[[PLACE:.*]] = arith.select %{{.*}}, %[[PART]], %[[X]] : i32
// CHECK: %[[LOW:.*]] = arith.andi %[[L]], %{{.*}} : i32
// CHECK: %[[ROW:.*]] = arith.select %{{.*}}, %[[LOW]], %[[IN]] : i32
// CHECK: arith.subi %{{.*}}, %[[PLACE]] : i32
// CHECK: arith.addi %[[FIRST]], %[[ROW]] : i32
!half = tensor<16x16xf16>
!sums = tensor<16x16xf32>
func.func @along_x(%c: !sums) {
  %x = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ones = arith.constant dense<1.0> : !half
  %d = scf.for %j = %zero to %x step %one iter_args(%s = %c) -> (!sums) : i32 {
    %t = "nv_tileaa.dot"(%ones, %ones, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!half, !half, !sums) -> !sums
    scf.yield %t : !sums
  }
  return
}
// -----
// Blocks of a loop that begins later have less to do; those that take turns over tiles begin and end
// elsewhere. Neither is turned round.
// CHECK: func.func @shorter
// CHECK-NOT: get_num_programs"() {axis = 1
// CHECK: return
!half = tensor<16x16xf16>
!sums = tensor<16x16xf32>
func.func @shorter(%n: i32, %c: !sums) {
  %x = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
  %one = arith.constant 1 : i32
  %ones = arith.constant dense<1.0> : !half
  %count = "nv_tileaa.get_num_programs"() {axis = 0 : i32} : () -> i32
  %d = scf.for %j = %x to %n step %count iter_args(%s = %c) -> (!sums) : i32 {
    %t = "nv_tileaa.dot"(%ones, %ones, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!half, !half, !sums) -> !sums
    scf.yield %t : !sums
  }
  return
}
// -----
// A block may wait here for what one with a smaller number writes.
// CHECK: func.func @ordered
// CHECK-NOT: get_num_programs
// CHECK: return
!half = tensor<16x16xf16>
!sums = tensor<16x16xf32>
!ptr = !nv_tileaa.ptr<i32, 1 : i32>
func.func @ordered(%p: !ptr, %c: !sums) {
  %x = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ones = arith.constant dense<1.0> : !half
  %f:2 = "nv_tileaa.load"(%p) {mem_semantic = "acquire", mem_scope = "gpu", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!ptr) -> (i32, !nv_tileaa.mem_token)
  %d = scf.for %j = %zero to %x step %one iter_args(%s = %c) -> (!sums) : i32 {
    %t = "nv_tileaa.dot"(%ones, %ones, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!half, !half, !sums) -> !sums
    scf.yield %t : !sums
  }
  return
}
// -----
// CHECK: loc("tileas-order-blocks.mlir":[[# @LINE + 1]]:1): error: 'func.func' op has branches; control flow must be structured (scf) here
func.func @branches() {
  cf.br ^bb1
^bb1:
  return
}

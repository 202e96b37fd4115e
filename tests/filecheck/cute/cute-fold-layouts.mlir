// RUN: tilec opt -p cute-fold-layouts

// What the types know becomes a constant, and nothing of the way there is left.
// CHECK: func.func @folds
// CHECK-NEXT: arith.constant 32 : index
// CHECK-NEXT: return
!view = !cute.memref<f16, "smem", "(8,16):(16,1)">
func.func @folds(%t: !view) -> index {
  %l = "cute.get_layout"(%t) : (!view) -> !cute.layout<"(8,16):(16,1)">
  %tile = "cute.static"() : () -> !cute.tile<"<4:1,8:1>">
  %d = "cute.zipped_divide"(%l, %tile) : (!cute.layout<"(8,16):(16,1)">, !cute.tile<"<4:1,8:1>">) -> !cute.layout<"((4,8),(2,2)):((16,1),(64,8))">
  %n = "cute.size"(%d) {mode = array<i32: 0>} : (!cute.layout<"((4,8),(2,2)):((16,1),(64,8))">) -> index
  return %n : index
}
// -----
// Numbers known at run time only: the tile's size folds, the number of tiles stays.
// CHECK: func.func @some
// CHECK: "cute.zipped_divide"
// CHECK-DAG: arith.constant 128 : index
// CHECK-DAG: "cute.size"
// CHECK-NOT: "cute.size"
// CHECK: return
!l = !cute.layout<"(?,?):(1,?{div=8})">
!d = !cute.layout<"((8,16),(?,?)):((1,?{div=8}),(8,?{div=128}))">
!t = !cute.tile<"<8:1,16:1>">
func.func @some(%a: !l, %t: !t) -> (index, index) {
  %0 = "cute.zipped_divide"(%a, %t) : (!l, !t) -> !d
  %1 = "cute.size"(%0) {mode = array<i32: 0>} : (!d) -> index
  %2 = "cute.size"(%0) {mode = array<i32: 1>} : (!d) -> index
  return %1, %2 : index, index
}
// -----
// Effects stay.
// CHECK: func.func @loads
// CHECK-NEXT: "cute.memref_load"
func.func @loads(%t: !cute.memref<f16, "smem", "(8,16):(16,1)">, %i: index) -> f16 {
  %v = "cute.memref_load"(%t, %i, %i) : (!cute.memref<f16, "smem", "(8,16):(16,1)">, index, index) -> f16
  return %v : f16
}
// -----
// CHECK: error: 'cute.zipped_divide' op failed to perform a valid division of
func.func @wrong(%l: !cute.layout<"(8,16):(16,1)">, %t: !cute.tile<"<4:1>">) {
  %d = "cute.zipped_divide"(%l, %t) : (!cute.layout<"(8,16):(16,1)">, !cute.tile<"<4:1>">) -> !cute.layout<"(8,16):(16,1)">
  return
}

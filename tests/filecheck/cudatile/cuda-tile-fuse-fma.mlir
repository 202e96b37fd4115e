// RUN: tilec opt -p cuda-tile-fuse-fma

// The product's only use is a sum.
// CHECK: ^bb0(%[[A:.*]]: !cuda_tile.tile<array<i64>, f32>, %[[B:.*]]: !cuda_tile.tile<array<i64>, f32>):
// CHECK-NEXT: %[[N:.*]] = "cuda_tile.negf"(%[[B]])
// CHECK-NEXT: "cuda_tile.fma"(%[[A]], %[[B]], %[[N]]) {rounding_mode = "nearest_even"}
// CHECK-NOT: "cuda_tile.mulf"
!f = !cuda_tile.tile<array<i64>, f32>
!token = !cuda_tile.token
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !f, %arg1: !f):
    %0 = "cuda_tile.mulf"(%arg0, %arg1) {rounding_mode = "nearest_even"} : (!f, !f) -> !f
    %1 = "cuda_tile.subf"(%0, %arg1) {rounding_mode = "nearest_even"} : (!f, !f) -> !f
    %2 = "cuda_tile.print_tko"(%1) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%f"} : (!f) -> !token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!f, !f) -> (), sym_name = "fused"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// The product is rounded in another way than the sum.
// CHECK: "cuda_tile.mulf"
// CHECK-NEXT: "cuda_tile.addf"
// CHECK-NOT: "cuda_tile.fma"
!f = !cuda_tile.tile<array<i64>, f32>
!token = !cuda_tile.token
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !f, %arg1: !f):
    %0 = "cuda_tile.mulf"(%arg0, %arg1) {rounding_mode = "zero"} : (!f, !f) -> !f
    %1 = "cuda_tile.addf"(%0, %arg1) {rounding_mode = "nearest_even"} : (!f, !f) -> !f
    %2 = "cuda_tile.print_tko"(%1) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%f"} : (!f) -> !token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!f, !f) -> (), sym_name = "kept"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// Operations of other dialects have no place in a program.
// CHECK: error: 'arith.constant' op has no form in CUDA Tile IR
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    %0 = arith.constant 1 : i32
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()

// RUN: tilec opt -p cuda-tile-simplify

// Offsets are merged, promises about overflow kept where they still hold; what a branch computes
// again is used from outside; a selection by order is an extremum.
// CHECK: "cuda_tile.entry"() ({
// CHECK-NEXT: ^bb0(%[[X:[a-z0-9]+]]: !cuda_tile.tile<array<i64>, i32>, %[[Y:[a-z0-9]+]]: !cuda_tile.tile<array<i64>, i32>, %[[C:[a-z0-9]+]]: !cuda_tile.tile<array<i64>, i1>
// CHECK-NEXT: %[[N:.*]] = "cuda_tile.constant"() {value = dense<7> : tensor<i32>}
// CHECK-NEXT: %[[S:.*]] = "cuda_tile.addi"(%[[X]], %[[N]]) {overflow = "no_signed_wrap"}
// CHECK-NEXT: %[[M:.*]] = "cuda_tile.maxi"(%[[S]], %[[Y]]) {signedness = "signed"}
// CHECK-NEXT: "cuda_tile.if"(%[[C]]) ({
// CHECK-NEXT: "cuda_tile.print_tko"(%[[M]])
// CHECK-NOT: "cuda_tile.select"
!i = !cuda_tile.tile<array<i64>, i32>
!f = !cuda_tile.tile<array<i64>, f32>
!b = !cuda_tile.tile<array<i64>, i1>
!token = !cuda_tile.token
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !i, %arg1: !i, %arg2: !b, %arg3: !f):
    %0 = "cuda_tile.constant"() {value = dense<3> : tensor<i32>} : () -> !i
    %1 = "cuda_tile.constant"() {value = dense<4> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.addi"(%arg0, %0) {overflow = "no_signed_wrap"} : (!i, !i) -> !i
    %3 = "cuda_tile.addi"(%2, %1) {overflow = "no_signed_wrap"} : (!i, !i) -> !i
    %4 = "cuda_tile.cmpi"(%3, %arg1) {comparison_predicate = "less_than", signedness = "signed"} : (!i, !i) -> !b
    %5 = "cuda_tile.select"(%4, %arg1, %3) : (!b, !i, !i) -> !i
    "cuda_tile.if"(%arg2) ({
      %7 = "cuda_tile.select"(%4, %arg1, %3) : (!b, !i, !i) -> !i
      %8 = "cuda_tile.print_tko"(%7) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d"} : (!i) -> !token
      "cuda_tile.yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }, {
    }) {resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!b) -> ()
    %6 = "cuda_tile.print_tko"(%5) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d"} : (!i) -> !token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!i, !i, !b, !f) -> (), sym_name = "simpler"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// Nothing is simpler: the product may overflow, the sum of floats is no integer, and `or` has a
// part that is not the other's inverse.
// CHECK: %[[P:.*]] = "cuda_tile.muli"(%[[X:.*]], %[[Y:.*]]) {overflow = "none"}
// CHECK-NEXT: %[[Q:.*]] = "cuda_tile.divi"(%[[P]], %[[Y]])
// CHECK-NEXT: %[[Z:.*]] = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<f32>}
// CHECK-NEXT: "cuda_tile.addf"(%{{.*}}, %[[Z]])
!i = !cuda_tile.tile<array<i64>, i32>
!f = !cuda_tile.tile<array<i64>, f32>
!b = !cuda_tile.tile<array<i64>, i1>
!token = !cuda_tile.token
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !i, %arg1: !i, %arg2: !b, %arg3: !f):
    %0 = "cuda_tile.muli"(%arg0, %arg1) {overflow = "none"} : (!i, !i) -> !i
    %1 = "cuda_tile.divi"(%0, %arg1) {rounding = "zero", signedness = "signed"} : (!i, !i) -> !i
    %2 = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<f32>} : () -> !f
    %3 = "cuda_tile.addf"(%arg3, %2) {rounding_mode = "nearest_even"} : (!f, !f) -> !f
    %4 = "cuda_tile.print_tko"(%1) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d"} : (!i) -> !token
    %5 = "cuda_tile.print_tko"(%3) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%f"} : (!f) -> !token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!i, !i, !b, !f) -> (), sym_name = "kept"} : () -> ()
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

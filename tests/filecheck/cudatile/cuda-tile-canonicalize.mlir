// RUN: tilec opt -p cuda-tile-canonicalize

// Nested branches are one; dead operations are gone.
// CHECK: %[[B:.*]] = "cuda_tile.andi"(%[[C:.*]], %[[D:.*]])
// CHECK-NEXT: "cuda_tile.if"(%[[B]]) ({
// CHECK-NEXT: "cuda_tile.print_tko"
// CHECK-NEXT: "cuda_tile.yield"
// CHECK-NOT: "cuda_tile.if"
// CHECK-NOT: "cuda_tile.muli"
!i = !cuda_tile.tile<array<i64>, i32>
!b = !cuda_tile.tile<array<i64>, i1>
!token = !cuda_tile.token
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !i, %arg1: !b, %arg2: !b):
    %0 = "cuda_tile.muli"(%arg0, %arg0) {overflow = "none"} : (!i, !i) -> !i
    "cuda_tile.if"(%arg1) ({
      "cuda_tile.if"(%arg2) ({
        %1 = "cuda_tile.print_tko"(%arg0) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d"} : (!i) -> !token
        "cuda_tile.yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
      }, {
      }) {resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!b) -> ()
      "cuda_tile.yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }, {
    }) {resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!b) -> ()
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!i, !b, !b) -> (), sym_name = "nested"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// The inner branch has an else of its own: nothing is joined.
// CHECK: "cuda_tile.if"(%[[C:.*]]) ({
// CHECK-NEXT: "cuda_tile.if"(%[[D:.*]]) ({
// CHECK-NOT: "cuda_tile.andi"
!i = !cuda_tile.tile<array<i64>, i32>
!b = !cuda_tile.tile<array<i64>, i1>
!token = !cuda_tile.token
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !i, %arg1: !b, %arg2: !b):
    "cuda_tile.if"(%arg1) ({
      "cuda_tile.if"(%arg2) ({
        %0 = "cuda_tile.print_tko"(%arg0) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d"} : (!i) -> !token
        "cuda_tile.yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
      }, {
        %0 = "cuda_tile.print_tko"(%arg1) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d"} : (!b) -> !token
        "cuda_tile.yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
      }) {resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!b) -> ()
      "cuda_tile.yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }, {
    }) {resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!b) -> ()
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!i, !b, !b) -> (), sym_name = "kept"} : () -> ()
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

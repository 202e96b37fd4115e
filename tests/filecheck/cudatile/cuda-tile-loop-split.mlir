// RUN: tilec opt -p cuda-tile-loop-split

// Up to the bound the branch is taken, from there on it is not, and the rest is empty.
// CHECK: ^bb0(%[[LO:.*]]: !cuda_tile.tile<array<i64>, i32>, %[[HI:.*]]: !cuda_tile.tile<array<i64>, i32>, %[[M:.*]]: !cuda_tile.tile<array<i64>, i32>):
// CHECK: %[[END:.*]] = "cuda_tile.mini"(%[[M]], %[[HI]]) {signedness = "signed"}
// CHECK: "cuda_tile.for"(%[[LO]], %[[END]], %{{.*}}) ({
// CHECK-NEXT: ^bb0(%[[I:.*]]: !cuda_tile.tile<array<i64>, i32>):
// CHECK-NEXT: "cuda_tile.print_tko"(%[[I]])
// CHECK-NOT: "cuda_tile.if"
!i = !cuda_tile.tile<array<i64>, i32>
!b = !cuda_tile.tile<array<i64>, i1>
!token = !cuda_tile.token
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !i, %arg1: !i, %arg2: !i):
    %0 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
    "cuda_tile.for"(%arg0, %arg1, %0) ({
    ^bb0(%arg3: !i):
      %1 = "cuda_tile.cmpi"(%arg3, %arg2) {comparison_predicate = "less_than", signedness = "signed"} : (!i, !i) -> !b
      "cuda_tile.if"(%1) ({
        %2 = "cuda_tile.print_tko"(%arg3) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d"} : (!i) -> !token
        "cuda_tile.yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
      }, {
      }) {resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!b) -> ()
      "cuda_tile.continue"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i) -> ()
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!i, !i, !i) -> (), sym_name = "split"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// Equality turns twice.
// CHECK: "cuda_tile.for"
// CHECK: "cuda_tile.if"
// CHECK-NOT: "cuda_tile.for"
!i = !cuda_tile.tile<array<i64>, i32>
!b = !cuda_tile.tile<array<i64>, i1>
!token = !cuda_tile.token
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !i, %arg1: !i, %arg2: !i):
    %0 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
    "cuda_tile.for"(%arg0, %arg1, %0) ({
    ^bb0(%arg3: !i):
      %1 = "cuda_tile.cmpi"(%arg3, %arg2) {comparison_predicate = "equal", signedness = "signed"} : (!i, !i) -> !b
      "cuda_tile.if"(%1) ({
        %2 = "cuda_tile.print_tko"(%arg3) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d"} : (!i) -> !token
        "cuda_tile.yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
      }, {
      }) {resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!b) -> ()
      "cuda_tile.continue"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i) -> ()
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!i, !i, !i) -> (), sym_name = "kept"} : () -> ()
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

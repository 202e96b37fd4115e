// RUN: tilec opt -p cuda-tile-loop-join --remarks -

// The second one begins where the first one ends: a branch gives what only its iterations see.
// CHECK: remark[passed]: joined with the loop before it
// CHECK: ^bb0(%{{.*}}, %[[LO:.*]]: !cuda_tile.tile<array<i64>, i32>, %[[M:.*]]: !cuda_tile.tile<array<i64>, i32>, %[[HI:.*]]: !cuda_tile.tile<array<i64>, i32>):
// CHECK: "cuda_tile.for"(%[[LO]], %[[HI]], %{{.*}}) ({
// CHECK-NEXT: ^bb0(%[[I:.*]]: !cuda_tile.tile<array<i64>, i32>, %{{.*}}):
// CHECK: %[[X:.*]] = "cuda_tile.muli"
// CHECK: %[[C:.*]] = "cuda_tile.cmpi"(%[[I]], %[[M]]) {comparison_predicate = "greater_than_or_equal", signedness = "signed"}
// CHECK: %[[SEEN:.*]] = "cuda_tile.if"(%[[C]]) ({
// CHECK: "cuda_tile.xori"(%[[X]], %[[I]])
// CHECK: "cuda_tile.subi"
// CHECK: "cuda_tile.yield"
// CHECK: }, {
// CHECK-NEXT: "cuda_tile.yield"(%[[X]])
// CHECK: "cuda_tile.print_tko"(%[[SEEN]])
// CHECK-NOT: "cuda_tile.for"
!i = !cuda_tile.tile<array<i64>, i32>
!f = !cuda_tile.tile<array<i64: 1, 1>, f32>
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<i32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !p, %arg1: !i, %arg2: !i, %arg3: !i):
    %0 = "cuda_tile.constant"() {value = dense<3> : tensor<i32>} : () -> !i
    %1 = "cuda_tile.constant"() {value = dense<5> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
    %3 = "cuda_tile.mini"(%arg3, %arg2) {signedness = "signed"} : (!i, !i) -> !i
    %4 = "cuda_tile.maxi"(%arg1, %arg2) {signedness = "signed"} : (!i, !i) -> !i
    %5 = "cuda_tile.for"(%arg1, %3, %2, %1) ({
    ^bb0(%arg4: !i, %arg5: !i):
      %8 = "cuda_tile.constant"() {value = dense<1.000000e+00> : tensor<1x1xf32>} : () -> !f
      %9 = "cuda_tile.mmaf"(%8, %8, %8) : (!f, !f, !f) -> !f
      %10 = "cuda_tile.muli"(%arg5, %0) {overflow = "none"} : (!i, !i) -> !i
      %11 = "cuda_tile.print_tko"(%10) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d "} : (!i) -> !cuda_tile.token
      %12 = "cuda_tile.addi"(%10, %arg4) {overflow = "none"} : (!i, !i) -> !i
      %13 = "cuda_tile.xori"(%12, %0) : (!i, !i) -> !i
      "cuda_tile.continue"(%13) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !i) -> !i
    %6 = "cuda_tile.for"(%4, %arg3, %2, %5) ({
    ^bb0(%arg4: !i, %arg5: !i):
      %8 = "cuda_tile.constant"() {value = dense<1.000000e+00> : tensor<1x1xf32>} : () -> !f
      %9 = "cuda_tile.mmaf"(%8, %8, %8) : (!f, !f, !f) -> !f
      %10 = "cuda_tile.muli"(%arg5, %0) {overflow = "none"} : (!i, !i) -> !i
      %11 = "cuda_tile.xori"(%10, %arg4) : (!i, !i) -> !i
      %12 = "cuda_tile.subi"(%11, %arg2) {overflow = "none"} : (!i, !i) -> !i
      %13 = "cuda_tile.print_tko"(%12) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d "} : (!i) -> !cuda_tile.token
      %14 = "cuda_tile.addi"(%12, %arg4) {overflow = "none"} : (!i, !i) -> !i
      %15 = "cuda_tile.xori"(%14, %0) : (!i, !i) -> !i
      "cuda_tile.continue"(%15) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !i) -> !i
    %7 = "cuda_tile.store_ptr_tko"(%arg0, %6) {memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, !i) -> !cuda_tile.token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!p, !i, !i, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// In steps of two, the second one may go on with other numbers.
// CHECK: remark[missed]: not joined with the loop before it: the second one is not known to begin where
// CHECK: "cuda_tile.for"
// CHECK: "cuda_tile.for"
!i = !cuda_tile.tile<array<i64>, i32>
!f = !cuda_tile.tile<array<i64: 1, 1>, f32>
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<i32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !p, %arg1: !i, %arg2: !i, %arg3: !i):
    %0 = "cuda_tile.constant"() {value = dense<3> : tensor<i32>} : () -> !i
    %1 = "cuda_tile.constant"() {value = dense<5> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.constant"() {value = dense<2> : tensor<i32>} : () -> !i
    %3 = "cuda_tile.mini"(%arg3, %arg2) {signedness = "signed"} : (!i, !i) -> !i
    %4 = "cuda_tile.maxi"(%arg1, %arg2) {signedness = "signed"} : (!i, !i) -> !i
    %5 = "cuda_tile.for"(%arg1, %3, %2, %1) ({
    ^bb0(%arg4: !i, %arg5: !i):
      %8 = "cuda_tile.constant"() {value = dense<1.000000e+00> : tensor<1x1xf32>} : () -> !f
      %9 = "cuda_tile.mmaf"(%8, %8, %8) : (!f, !f, !f) -> !f
      %10 = "cuda_tile.muli"(%arg5, %0) {overflow = "none"} : (!i, !i) -> !i
      %11 = "cuda_tile.print_tko"(%10) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d "} : (!i) -> !cuda_tile.token
      %12 = "cuda_tile.addi"(%10, %arg4) {overflow = "none"} : (!i, !i) -> !i
      %13 = "cuda_tile.xori"(%12, %0) : (!i, !i) -> !i
      "cuda_tile.continue"(%13) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !i) -> !i
    %6 = "cuda_tile.for"(%4, %arg3, %2, %5) ({
    ^bb0(%arg4: !i, %arg5: !i):
      %8 = "cuda_tile.constant"() {value = dense<1.000000e+00> : tensor<1x1xf32>} : () -> !f
      %9 = "cuda_tile.mmaf"(%8, %8, %8) : (!f, !f, !f) -> !f
      %10 = "cuda_tile.muli"(%arg5, %0) {overflow = "none"} : (!i, !i) -> !i
      %11 = "cuda_tile.xori"(%10, %arg4) : (!i, !i) -> !i
      %12 = "cuda_tile.subi"(%11, %arg2) {overflow = "none"} : (!i, !i) -> !i
      %13 = "cuda_tile.print_tko"(%12) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d "} : (!i) -> !cuda_tile.token
      %14 = "cuda_tile.addi"(%12, %arg4) {overflow = "none"} : (!i, !i) -> !i
      %15 = "cuda_tile.xori"(%14, %0) : (!i, !i) -> !i
      "cuda_tile.continue"(%15) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !i) -> !i
    %7 = "cuda_tile.store_ptr_tko"(%arg0, %6) {memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, !i) -> !cuda_tile.token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!p, !i, !i, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// Operations of other dialects have no place in a program.
// CHECK: error: 'arith.constant' op has no form in CUDA Tile IR
!i = !cuda_tile.tile<array<i64>, i32>
!f = !cuda_tile.tile<array<i64: 1, 1>, f32>
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<i32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !p, %arg1: !i, %arg2: !i, %arg3: !i):
    %other = arith.constant 1 : i32
    %0 = "cuda_tile.constant"() {value = dense<3> : tensor<i32>} : () -> !i
    %1 = "cuda_tile.constant"() {value = dense<5> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
    %3 = "cuda_tile.mini"(%arg3, %arg2) {signedness = "signed"} : (!i, !i) -> !i
    %4 = "cuda_tile.maxi"(%arg1, %arg2) {signedness = "signed"} : (!i, !i) -> !i
    %5 = "cuda_tile.for"(%arg1, %3, %2, %1) ({
    ^bb0(%arg4: !i, %arg5: !i):
      %8 = "cuda_tile.constant"() {value = dense<1.000000e+00> : tensor<1x1xf32>} : () -> !f
      %9 = "cuda_tile.mmaf"(%8, %8, %8) : (!f, !f, !f) -> !f
      %10 = "cuda_tile.muli"(%arg5, %0) {overflow = "none"} : (!i, !i) -> !i
      %11 = "cuda_tile.print_tko"(%10) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d "} : (!i) -> !cuda_tile.token
      %12 = "cuda_tile.addi"(%10, %arg4) {overflow = "none"} : (!i, !i) -> !i
      %13 = "cuda_tile.xori"(%12, %0) : (!i, !i) -> !i
      "cuda_tile.continue"(%13) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !i) -> !i
    %6 = "cuda_tile.for"(%4, %arg3, %2, %5) ({
    ^bb0(%arg4: !i, %arg5: !i):
      %8 = "cuda_tile.constant"() {value = dense<1.000000e+00> : tensor<1x1xf32>} : () -> !f
      %9 = "cuda_tile.mmaf"(%8, %8, %8) : (!f, !f, !f) -> !f
      %10 = "cuda_tile.muli"(%arg5, %0) {overflow = "none"} : (!i, !i) -> !i
      %11 = "cuda_tile.xori"(%10, %arg4) : (!i, !i) -> !i
      %12 = "cuda_tile.subi"(%11, %arg2) {overflow = "none"} : (!i, !i) -> !i
      %13 = "cuda_tile.print_tko"(%12) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d "} : (!i) -> !cuda_tile.token
      %14 = "cuda_tile.addi"(%12, %arg4) {overflow = "none"} : (!i, !i) -> !i
      %15 = "cuda_tile.xori"(%14, %0) : (!i, !i) -> !i
      "cuda_tile.continue"(%15) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !i) -> !i
    %7 = "cuda_tile.store_ptr_tko"(%arg0, %6) {memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, !i) -> !cuda_tile.token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!p, !i, !i, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()

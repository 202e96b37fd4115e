// RUN: tilec opt -p cuda-tile-derive-counters

// It begins with a part of the first index, which is a multiple: it always is that part of the index.
// CHECK: %[[FOR:.*]] = "cuda_tile.for"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) ({
// CHECK-NEXT: ^bb0(%[[I:.*]]: !cuda_tile.tile<array<i64>, i32>, %{{[^,]*}}: !cuda_tile.tile<array<i64>, i32>):
// CHECK: %[[N:.*]] = "cuda_tile.divi"(%[[I]], %{{.*}}) {rounding = "negative_inf", signedness = "signed"}
// CHECK: "cuda_tile.print_tko"(%[[N]])
// CHECK: "cuda_tile.continue"(%{{[^,]*}})
!i = !cuda_tile.tile<array<i64>, i32>
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<i32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !p, %arg1: !i, %arg2: !i, %arg3: !i):
    %0 = "cuda_tile.constant"() {value = dense<3> : tensor<i32>} : () -> !i
    %1 = "cuda_tile.constant"() {value = dense<0> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.constant"() {value = dense<64> : tensor<i32>} : () -> !i
    %3 = "cuda_tile.constant"() {value = dense<32> : tensor<i32>} : () -> !i
    %4 = "cuda_tile.muli"(%arg1, %2) {overflow = "none"} : (!i, !i) -> !i
    %5 = "cuda_tile.addi"(%4, %arg2) {overflow = "none"} : (!i, !i) -> !i
    %6 = "cuda_tile.divi"(%4, %3) {rounding = "negative_inf", signedness = "signed"} : (!i, !i) -> !i
    %7:2 = "cuda_tile.for"(%4, %5, %3, %0, %6) ({
    ^bb0(%arg4: !i, %arg5: !i, %arg6: !i):
      %9 = "cuda_tile.print_tko"(%arg6) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d "} : (!i) -> !cuda_tile.token
      %10 = "cuda_tile.muli"(%arg6, %0) {overflow = "none"} : (!i, !i) -> !i
      %11 = "cuda_tile.addi"(%arg5, %10) {overflow = "none"} : (!i, !i) -> !i
      %12 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
      %13 = "cuda_tile.addi"(%arg6, %12) {overflow = "none"} : (!i, !i) -> !i
      "cuda_tile.continue"(%11, %13) {operandSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !i, !i) -> (!i, !i)
    %8 = "cuda_tile.store_ptr_tko"(%arg0, %7#0) {memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, !i) -> !cuda_tile.token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!p, !i, !i, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// Where the first index is none, iterations are counted from there on.
// CHECK: %[[FIRST:.*]] = "cuda_tile.divi"
// CHECK: "cuda_tile.for"(%[[LO:.*]], %{{.*}}, %{{.*}}, %{{.*}}) ({
// CHECK-NEXT: ^bb0(%[[I:.*]]: !cuda_tile.tile<array<i64>, i32>, %{{[^,]*}}: !cuda_tile.tile<array<i64>, i32>):
// CHECK: %[[GONE:.*]] = "cuda_tile.subi"(%[[I]], %[[LO]])
// CHECK: %[[TURNS:.*]] = "cuda_tile.divi"(%[[GONE]], %{{.*}}) {rounding = "zero", signedness = "unsigned"}
// CHECK: %[[N:.*]] = "cuda_tile.addi"(%[[TURNS]], %[[FIRST]])
// CHECK: "cuda_tile.print_tko"(%[[N]])
!i = !cuda_tile.tile<array<i64>, i32>
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<i32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !p, %arg1: !i, %arg2: !i, %arg3: !i):
    %0 = "cuda_tile.constant"() {value = dense<3> : tensor<i32>} : () -> !i
    %1 = "cuda_tile.constant"() {value = dense<0> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.constant"() {value = dense<48> : tensor<i32>} : () -> !i
    %3 = "cuda_tile.constant"() {value = dense<32> : tensor<i32>} : () -> !i
    %4 = "cuda_tile.muli"(%arg1, %2) {overflow = "none"} : (!i, !i) -> !i
    %5 = "cuda_tile.addi"(%4, %arg2) {overflow = "none"} : (!i, !i) -> !i
    %6 = "cuda_tile.divi"(%4, %3) {rounding = "negative_inf", signedness = "signed"} : (!i, !i) -> !i
    %7:2 = "cuda_tile.for"(%4, %5, %3, %0, %6) ({
    ^bb0(%arg4: !i, %arg5: !i, %arg6: !i):
      %9 = "cuda_tile.print_tko"(%arg6) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d "} : (!i) -> !cuda_tile.token
      %10 = "cuda_tile.muli"(%arg6, %0) {overflow = "none"} : (!i, !i) -> !i
      %11 = "cuda_tile.addi"(%arg5, %10) {overflow = "none"} : (!i, !i) -> !i
      %12 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
      %13 = "cuda_tile.addi"(%arg6, %12) {overflow = "none"} : (!i, !i) -> !i
      "cuda_tile.continue"(%11, %13) {operandSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !i, !i) -> (!i, !i)
    %8 = "cuda_tile.store_ptr_tko"(%arg0, %7#0) {memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, !i) -> !cuda_tile.token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!p, !i, !i, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// What is used behind the loop is carried on.
// CHECK: "cuda_tile.for"
// CHECK: "cuda_tile.continue"(%{{.*}})
// CHECK: "cuda_tile.store_ptr_tko"
!i = !cuda_tile.tile<array<i64>, i32>
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<i32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !p, %arg1: !i, %arg2: !i, %arg3: !i):
    %0 = "cuda_tile.constant"() {value = dense<3> : tensor<i32>} : () -> !i
    %1 = "cuda_tile.constant"() {value = dense<0> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.constant"() {value = dense<64> : tensor<i32>} : () -> !i
    %3 = "cuda_tile.constant"() {value = dense<32> : tensor<i32>} : () -> !i
    %4 = "cuda_tile.muli"(%arg1, %2) {overflow = "none"} : (!i, !i) -> !i
    %5 = "cuda_tile.addi"(%4, %arg2) {overflow = "none"} : (!i, !i) -> !i
    %6 = "cuda_tile.divi"(%4, %3) {rounding = "negative_inf", signedness = "signed"} : (!i, !i) -> !i
    %7:2 = "cuda_tile.for"(%4, %5, %3, %0, %6) ({
    ^bb0(%arg4: !i, %arg5: !i, %arg6: !i):
      %9 = "cuda_tile.print_tko"(%arg6) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d "} : (!i) -> !cuda_tile.token
      %10 = "cuda_tile.muli"(%arg6, %0) {overflow = "none"} : (!i, !i) -> !i
      %11 = "cuda_tile.addi"(%arg5, %10) {overflow = "none"} : (!i, !i) -> !i
      %12 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
      %13 = "cuda_tile.addi"(%arg6, %12) {overflow = "none"} : (!i, !i) -> !i
      "cuda_tile.continue"(%11, %13) {operandSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !i, !i) -> (!i, !i)
    %8 = "cuda_tile.store_ptr_tko"(%arg0, %7#1) {memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, !i) -> !cuda_tile.token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!p, !i, !i, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// Operations of other dialects have no place in a program.
// CHECK: error: 'arith.constant' op has no form in CUDA Tile IR
!i = !cuda_tile.tile<array<i64>, i32>
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<i32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !p, %arg1: !i, %arg2: !i, %arg3: !i):
    %0 = "cuda_tile.constant"() {value = dense<3> : tensor<i32>} : () -> !i
      %x = arith.constant 1 : i32
    %1 = "cuda_tile.constant"() {value = dense<0> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.constant"() {value = dense<64> : tensor<i32>} : () -> !i
    %3 = "cuda_tile.constant"() {value = dense<32> : tensor<i32>} : () -> !i
    %4 = "cuda_tile.muli"(%arg1, %2) {overflow = "none"} : (!i, !i) -> !i
    %5 = "cuda_tile.addi"(%4, %arg2) {overflow = "none"} : (!i, !i) -> !i
    %6 = "cuda_tile.divi"(%4, %3) {rounding = "negative_inf", signedness = "signed"} : (!i, !i) -> !i
    %7:2 = "cuda_tile.for"(%4, %5, %3, %0, %6) ({
    ^bb0(%arg4: !i, %arg5: !i, %arg6: !i):
      %9 = "cuda_tile.print_tko"(%arg6) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, str = "%d "} : (!i) -> !cuda_tile.token
      %10 = "cuda_tile.muli"(%arg6, %0) {overflow = "none"} : (!i, !i) -> !i
      %11 = "cuda_tile.addi"(%arg5, %10) {overflow = "none"} : (!i, !i) -> !i
      %12 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
      %13 = "cuda_tile.addi"(%arg6, %12) {overflow = "none"} : (!i, !i) -> !i
      "cuda_tile.continue"(%11, %13) {operandSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !i, !i) -> (!i, !i)
    %8 = "cuda_tile.store_ptr_tko"(%arg0, %7#0) {memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, !i) -> !cuda_tile.token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!p, !i, !i, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()

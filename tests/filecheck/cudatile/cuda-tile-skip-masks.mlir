// RUN: tilec opt -p cuda-tile-skip-masks

// Rows from %r on, columns from a number of the loop on: the least row is as large as the largest
// column, or elements are compared.
// CHECK: ^bb0(%{{.*}}, %{{.*}}, %[[R:.*]]: !cuda_tile.tile<array<i64>, i32>, %{{.*}}):
// CHECK: %[[ONES:.*]] = "cuda_tile.constant"() {value = dense<1.000000e+00>
// CHECK: "cuda_tile.for"
// CHECK: "cuda_tile.exti"(%[[R]])
// CHECK: "cuda_tile.cmpi"({{.*}}) {comparison_predicate = "less_than", signedness = "signed"}
// CHECK: %[[X:.*]] = "cuda_tile.if"
// CHECK: "cuda_tile.cmpi"({{.*}}) {comparison_predicate = "greater_than_or_equal"
// CHECK: "cuda_tile.select"
// CHECK: }, {
// CHECK-NEXT: "cuda_tile.yield"(%[[ONES]])
// CHECK: "cuda_tile.addf"(%{{.*}}, %[[X]])
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<f32>>
!i = !cuda_tile.tile<array<i64>, i32>
!whole = !cuda_tile.tile<array<i64: 32, 32>, i32>
!flags = !cuda_tile.tile<array<i64: 32, 32>, i1>
!f = !cuda_tile.tile<array<i64: 32, 32>, f32>
!ps = !cuda_tile.tile<array<i64: 32, 32>, !cuda_tile.ptr<f32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !p, %arg1: !i, %arg2: !i, %arg3: !i):
    %0 = "cuda_tile.constant"() {value = dense<0> : tensor<i32>} : () -> !i
    %1 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.constant"() {value = dense<32> : tensor<i32>} : () -> !i
    %3 = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<32x8xf32>} : () -> !cuda_tile.tile<array<i64: 32, 8>, f32>
    %4 = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<8x32xf32>} : () -> !cuda_tile.tile<array<i64: 8, 32>, f32>
    %5 = "cuda_tile.constant"() {value = dense<1.000000e+00> : tensor<32x32xf32>} : () -> !f
    %6 = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<32x32xf32>} : () -> !f
    %7 = "cuda_tile.iota"() : () -> !cuda_tile.tile<array<i64: 32>, i32>
    %8 = "cuda_tile.reshape"(%7) : (!cuda_tile.tile<array<i64: 32>, i32>) -> !cuda_tile.tile<array<i64: 32, 1>, i32>
    %9 = "cuda_tile.broadcast"(%8) : (!cuda_tile.tile<array<i64: 32, 1>, i32>) -> !whole
    %10 = "cuda_tile.reshape"(%arg2) : (!i) -> !cuda_tile.tile<array<i64: 1, 1>, i32>
    %11 = "cuda_tile.broadcast"(%10) : (!cuda_tile.tile<array<i64: 1, 1>, i32>) -> !whole
    %12 = "cuda_tile.addi"(%9, %11) {overflow = "none"} : (!whole, !whole) -> !whole
    %13 = "cuda_tile.iota"() : () -> !cuda_tile.tile<array<i64: 32>, i32>
    %14 = "cuda_tile.reshape"(%13) : (!cuda_tile.tile<array<i64: 32>, i32>) -> !cuda_tile.tile<array<i64: 1, 32>, i32>
    %15 = "cuda_tile.broadcast"(%14) : (!cuda_tile.tile<array<i64: 1, 32>, i32>) -> !whole
    %16 = "cuda_tile.for"(%0, %arg1, %1, %6) ({
    ^bb0(%arg4: !i, %arg5: !f):
      %24 = "cuda_tile.muli"(%arg4, %2) {overflow = "none"} : (!i, !i) -> !i
      %25 = "cuda_tile.addi"(%24, %arg3) {overflow = "none"} : (!i, !i) -> !i
      %26 = "cuda_tile.reshape"(%25) : (!i) -> !cuda_tile.tile<array<i64: 1, 1>, i32>
      %27 = "cuda_tile.broadcast"(%26) : (!cuda_tile.tile<array<i64: 1, 1>, i32>) -> !whole
      %28 = "cuda_tile.addi"(%15, %27) {overflow = "none"} : (!whole, !whole) -> !whole
      %29 = "cuda_tile.cmpi"(%12, %28) {comparison_predicate = "greater_than_or_equal", signedness = "signed"} : (!whole, !whole) -> !flags
      %30 = "cuda_tile.select"(%29, %5, %6) : (!flags, !f, !f) -> !f
      %31 = "cuda_tile.mmaf"(%3, %4, %30) : (!cuda_tile.tile<array<i64: 32, 8>, f32>, !cuda_tile.tile<array<i64: 8, 32>, f32>, !f) -> !f
      %32 = "cuda_tile.addf"(%arg5, %30) {rounding_mode = "nearest_even"} : (!f, !f) -> !f
      "cuda_tile.continue"(%32) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!f) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !f) -> !f
    %17 = "cuda_tile.constant"() {value = dense<32> : tensor<32x32xi32>} : () -> !whole
    %18 = "cuda_tile.muli"(%9, %17) {overflow = "none"} : (!whole, !whole) -> !whole
    %19 = "cuda_tile.addi"(%18, %15) {overflow = "none"} : (!whole, !whole) -> !whole
    %20 = "cuda_tile.reshape"(%arg0) : (!p) -> !cuda_tile.tile<array<i64: 1, 1>, !cuda_tile.ptr<f32>>
    %21 = "cuda_tile.broadcast"(%20) : (!cuda_tile.tile<array<i64: 1, 1>, !cuda_tile.ptr<f32>>) -> !ps
    %22 = "cuda_tile.offset"(%21, %19) : (!ps, !whole) -> !ps
    %23 = "cuda_tile.store_ptr_tko"(%22, %16) {memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!ps, !f) -> !cuda_tile.token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!p, !i, !i, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// The same in each iteration: it stays.
// CHECK: "cuda_tile.for"
// CHECK-NOT: "cuda_tile.if"
// CHECK: "cuda_tile.select"
// CHECK-NOT: "cuda_tile.if"
// CHECK: "cuda_tile.return"
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<f32>>
!i = !cuda_tile.tile<array<i64>, i32>
!whole = !cuda_tile.tile<array<i64: 32, 32>, i32>
!flags = !cuda_tile.tile<array<i64: 32, 32>, i1>
!f = !cuda_tile.tile<array<i64: 32, 32>, f32>
!ps = !cuda_tile.tile<array<i64: 32, 32>, !cuda_tile.ptr<f32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !p, %arg1: !i, %arg2: !i, %arg3: !i):
    %0 = "cuda_tile.constant"() {value = dense<0> : tensor<i32>} : () -> !i
    %1 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.constant"() {value = dense<32> : tensor<i32>} : () -> !i
    %3 = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<32x8xf32>} : () -> !cuda_tile.tile<array<i64: 32, 8>, f32>
    %4 = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<8x32xf32>} : () -> !cuda_tile.tile<array<i64: 8, 32>, f32>
    %5 = "cuda_tile.constant"() {value = dense<1.000000e+00> : tensor<32x32xf32>} : () -> !f
    %6 = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<32x32xf32>} : () -> !f
    %7 = "cuda_tile.iota"() : () -> !cuda_tile.tile<array<i64: 32>, i32>
    %8 = "cuda_tile.reshape"(%7) : (!cuda_tile.tile<array<i64: 32>, i32>) -> !cuda_tile.tile<array<i64: 32, 1>, i32>
    %9 = "cuda_tile.broadcast"(%8) : (!cuda_tile.tile<array<i64: 32, 1>, i32>) -> !whole
    %10 = "cuda_tile.reshape"(%arg2) : (!i) -> !cuda_tile.tile<array<i64: 1, 1>, i32>
    %11 = "cuda_tile.broadcast"(%10) : (!cuda_tile.tile<array<i64: 1, 1>, i32>) -> !whole
    %12 = "cuda_tile.addi"(%9, %11) {overflow = "none"} : (!whole, !whole) -> !whole
    %13 = "cuda_tile.iota"() : () -> !cuda_tile.tile<array<i64: 32>, i32>
    %14 = "cuda_tile.reshape"(%13) : (!cuda_tile.tile<array<i64: 32>, i32>) -> !cuda_tile.tile<array<i64: 1, 32>, i32>
    %15 = "cuda_tile.broadcast"(%14) : (!cuda_tile.tile<array<i64: 1, 32>, i32>) -> !whole
    %16 = "cuda_tile.for"(%0, %arg1, %1, %6) ({
    ^bb0(%arg4: !i, %arg5: !f):
      %24 = "cuda_tile.muli"(%arg4, %2) {overflow = "none"} : (!i, !i) -> !i
      %25 = "cuda_tile.addi"(%24, %arg3) {overflow = "none"} : (!i, !i) -> !i
      %26 = "cuda_tile.reshape"(%25) : (!i) -> !cuda_tile.tile<array<i64: 1, 1>, i32>
      %27 = "cuda_tile.broadcast"(%26) : (!cuda_tile.tile<array<i64: 1, 1>, i32>) -> !whole
      %28 = "cuda_tile.addi"(%15, %27) {overflow = "none"} : (!whole, !whole) -> !whole
      %29 = "cuda_tile.cmpi"(%9, %15) {comparison_predicate = "less_than", signedness = "signed"} : (!whole, !whole) -> !flags
      %30 = "cuda_tile.select"(%29, %5, %6) : (!flags, !f, !f) -> !f
      %31 = "cuda_tile.mmaf"(%3, %4, %30) : (!cuda_tile.tile<array<i64: 32, 8>, f32>, !cuda_tile.tile<array<i64: 8, 32>, f32>, !f) -> !f
      %32 = "cuda_tile.addf"(%arg5, %30) {rounding_mode = "nearest_even"} : (!f, !f) -> !f
      "cuda_tile.continue"(%32) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!f) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !f) -> !f
    %17 = "cuda_tile.constant"() {value = dense<32> : tensor<32x32xi32>} : () -> !whole
    %18 = "cuda_tile.muli"(%9, %17) {overflow = "none"} : (!whole, !whole) -> !whole
    %19 = "cuda_tile.addi"(%18, %15) {overflow = "none"} : (!whole, !whole) -> !whole
    %20 = "cuda_tile.reshape"(%arg0) : (!p) -> !cuda_tile.tile<array<i64: 1, 1>, !cuda_tile.ptr<f32>>
    %21 = "cuda_tile.broadcast"(%20) : (!cuda_tile.tile<array<i64: 1, 1>, !cuda_tile.ptr<f32>>) -> !ps
    %22 = "cuda_tile.offset"(%21, %19) : (!ps, !whole) -> !ps
    %23 = "cuda_tile.store_ptr_tko"(%22, %16) {memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!ps, !f) -> !cuda_tile.token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!p, !i, !i, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// Operations of other dialects have no place in a program.
// CHECK: error: 'arith.constant' op has no form in CUDA Tile IR
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<f32>>
!i = !cuda_tile.tile<array<i64>, i32>
!whole = !cuda_tile.tile<array<i64: 32, 32>, i32>
!flags = !cuda_tile.tile<array<i64: 32, 32>, i1>
!f = !cuda_tile.tile<array<i64: 32, 32>, f32>
!ps = !cuda_tile.tile<array<i64: 32, 32>, !cuda_tile.ptr<f32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%arg0: !p, %arg1: !i, %arg2: !i, %arg3: !i):
    %other = arith.constant 1 : i32
    %0 = "cuda_tile.constant"() {value = dense<0> : tensor<i32>} : () -> !i
    %1 = "cuda_tile.constant"() {value = dense<1> : tensor<i32>} : () -> !i
    %2 = "cuda_tile.constant"() {value = dense<32> : tensor<i32>} : () -> !i
    %3 = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<32x8xf32>} : () -> !cuda_tile.tile<array<i64: 32, 8>, f32>
    %4 = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<8x32xf32>} : () -> !cuda_tile.tile<array<i64: 8, 32>, f32>
    %5 = "cuda_tile.constant"() {value = dense<1.000000e+00> : tensor<32x32xf32>} : () -> !f
    %6 = "cuda_tile.constant"() {value = dense<0.000000e+00> : tensor<32x32xf32>} : () -> !f
    %7 = "cuda_tile.iota"() : () -> !cuda_tile.tile<array<i64: 32>, i32>
    %8 = "cuda_tile.reshape"(%7) : (!cuda_tile.tile<array<i64: 32>, i32>) -> !cuda_tile.tile<array<i64: 32, 1>, i32>
    %9 = "cuda_tile.broadcast"(%8) : (!cuda_tile.tile<array<i64: 32, 1>, i32>) -> !whole
    %10 = "cuda_tile.reshape"(%arg2) : (!i) -> !cuda_tile.tile<array<i64: 1, 1>, i32>
    %11 = "cuda_tile.broadcast"(%10) : (!cuda_tile.tile<array<i64: 1, 1>, i32>) -> !whole
    %12 = "cuda_tile.addi"(%9, %11) {overflow = "none"} : (!whole, !whole) -> !whole
    %13 = "cuda_tile.iota"() : () -> !cuda_tile.tile<array<i64: 32>, i32>
    %14 = "cuda_tile.reshape"(%13) : (!cuda_tile.tile<array<i64: 32>, i32>) -> !cuda_tile.tile<array<i64: 1, 32>, i32>
    %15 = "cuda_tile.broadcast"(%14) : (!cuda_tile.tile<array<i64: 1, 32>, i32>) -> !whole
    %16 = "cuda_tile.for"(%0, %arg1, %1, %6) ({
    ^bb0(%arg4: !i, %arg5: !f):
      %24 = "cuda_tile.muli"(%arg4, %2) {overflow = "none"} : (!i, !i) -> !i
      %25 = "cuda_tile.addi"(%24, %arg3) {overflow = "none"} : (!i, !i) -> !i
      %26 = "cuda_tile.reshape"(%25) : (!i) -> !cuda_tile.tile<array<i64: 1, 1>, i32>
      %27 = "cuda_tile.broadcast"(%26) : (!cuda_tile.tile<array<i64: 1, 1>, i32>) -> !whole
      %28 = "cuda_tile.addi"(%15, %27) {overflow = "none"} : (!whole, !whole) -> !whole
      %29 = "cuda_tile.cmpi"(%12, %28) {comparison_predicate = "greater_than_or_equal", signedness = "signed"} : (!whole, !whole) -> !flags
      %30 = "cuda_tile.select"(%29, %5, %6) : (!flags, !f, !f) -> !f
      %31 = "cuda_tile.mmaf"(%3, %4, %30) : (!cuda_tile.tile<array<i64: 32, 8>, f32>, !cuda_tile.tile<array<i64: 8, 32>, f32>, !f) -> !f
      %32 = "cuda_tile.addf"(%arg5, %30) {rounding_mode = "nearest_even"} : (!f, !f) -> !f
      "cuda_tile.continue"(%32) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!f) -> ()
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!i, !i, !i, !f) -> !f
    %17 = "cuda_tile.constant"() {value = dense<32> : tensor<32x32xi32>} : () -> !whole
    %18 = "cuda_tile.muli"(%9, %17) {overflow = "none"} : (!whole, !whole) -> !whole
    %19 = "cuda_tile.addi"(%18, %15) {overflow = "none"} : (!whole, !whole) -> !whole
    %20 = "cuda_tile.reshape"(%arg0) : (!p) -> !cuda_tile.tile<array<i64: 1, 1>, !cuda_tile.ptr<f32>>
    %21 = "cuda_tile.broadcast"(%20) : (!cuda_tile.tile<array<i64: 1, 1>, !cuda_tile.ptr<f32>>) -> !ps
    %22 = "cuda_tile.offset"(%21, %19) : (!ps, !whole) -> !ps
    %23 = "cuda_tile.store_ptr_tko"(%22, %16) {memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!ps, !f) -> !cuda_tile.token
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = (!p, !i, !i, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()

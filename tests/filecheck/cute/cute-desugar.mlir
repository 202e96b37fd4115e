// RUN: tilec opt -p cute-desugar

// Shapes and strides are tuples of their kind; a default stride is worked out.
// CHECK: func.func @layouts
// CHECK-NEXT: "cute.make_int_tuple"(%arg0, %arg1) : (index, index) -> !cute.shape<"(?,4,?)">
// CHECK-NEXT: "cute.make_int_tuple"(%arg1) : (index) -> !cute.stride<"(1,8,?)">
// CHECK-NEXT: "cute.make_layout_raw"(%0, %1)
// CHECK-NEXT: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-NEXT: %[[STEP:.*]] = arith.muli %arg0, %[[FOUR]]
// CHECK-NEXT: "cute.make_int_tuple"(%arg0, %[[STEP]]) : (index, index) -> !cute.stride<"(1,?,?{div=4})">
// CHECK-NEXT: "cute.make_layout_raw"
!shape = !cute.shape<"(?,4,?)">
!given = !cute.layout<"(?,4,?):(1,8,?)">
!own = !cute.layout<"(?,4,?):(1,?,?{div=4})">
func.func @layouts(%m: index, %n: index) -> (!given, !own) {
  %s = "cute.make_shape"(%m, %n) : (index, index) -> !shape
  %d = "cute.make_stride"(%n) : (index) -> !cute.stride<"(1,8,?)">
  %l = "cute.make_layout"(%s, %d) {operandSegmentSizes = array<i32: 1, 1>} : (!shape, !cute.stride<"(1,8,?)">) -> !given
  %c = "cute.make_layout"(%s) {operandSegmentSizes = array<i32: 1, 0>} : (!shape) -> !own
  return %l, %c : !given, !own
}
// -----
// Equal tuples of known numbers are one.
// CHECK: func.func @unified
// CHECK-NEXT: %[[T:.*]] = "cute.make_int_tuple"() : () -> !cute.coord<"(1,2)">
// CHECK-NEXT: return %[[T]], %[[T]]
func.func @unified() -> (!cute.coord<"(1,2)">, !cute.coord<"(1,2)">) {
  %0 = "cute.make_coord"() : () -> !cute.coord<"(1,2)">
  %1 = "cute.make_coord"() : () -> !cute.coord<"(1,2)">
  return %0, %1 : !cute.coord<"(1,2)">, !cute.coord<"(1,2)">
}
// -----
// Comparisons by shape and stride; what is known is a constant.
// CHECK: func.func @compared
// CHECK-NEXT: %[[A:.*]] = "cute.get_shape"(%arg0)
// CHECK-NEXT: %[[B:.*]] = "cute.get_shape"(%arg1)
// CHECK-NEXT: %[[S:.*]] = "cute.tuple_eq"(%[[A]], %[[B]])
// CHECK-NEXT: "cute.get_stride"(%arg0)
// CHECK-NEXT: "cute.get_stride"(%arg1)
// CHECK-NEXT: %[[D:.*]] = arith.constant true
// CHECK-NEXT: arith.andi %[[S]], %[[D]]
!a = !cute.layout<"(?,8):(8,1)">
!b = !cute.layout<"(4,8):(8,1)">
func.func @compared(%a: !a, %b: !b) -> i1 {
  %0 = "cute.equal"(%a, %b) : (!a, !b) -> i1
  return %0 : i1
}
// -----
// Swizzled layouts, views, and the elements of a view one by one.
// CHECK: func.func @views
// CHECK-NEXT: "cute.make_composed_layout_raw"(%arg3, %arg1, %arg2)
// CHECK-NEXT: %[[L:.*]] = "cute.get_layout"(%arg0)
// CHECK-NEXT: %[[P:.*]] = "cute.get_iter"(%arg0)
// CHECK-NEXT: "cute.make_view"(%[[P]], %[[L]])
// CHECK: scf.for
// CHECK: arith.remui
// CHECK: "cute.memref_load"
// CHECK-NEXT: "cute.print"(%{{.*}}) : (f32) -> ()
!v = !cute.memref<f32, "rmem", "(4,2):(1,4)">
!c = !cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">
func.func @views(%v: !v, %s: !cute.swizzle<"S<3,4,3>">, %o: !cute.int_tuple<"0">, %l: !cute.layout<"(8,64):(64,1)">) -> (!c, !v) {
  %0 = "cute.make_composed_layout"(%s, %o, %l) : (!cute.swizzle<"S<3,4,3>">, !cute.int_tuple<"0">, !cute.layout<"(8,64):(64,1)">) -> !c
  %1 = "cute.tensor"(%v) : (!v) -> !v
  "cute.print"(%v) : (!v) -> ()
  return %0, %1 : !c, !v
}
// -----
// Nothing to spell out.
// CHECK: func.func @plain
// CHECK-NEXT: "cute.size"
func.func @plain(%l: !cute.layout<"(4,8):(8,1)">) -> index {
  %n = "cute.size"(%l) : (!cute.layout<"(4,8):(8,1)">) -> index
  return %n : index
}
// -----
// The numbers of an argument are out of reach.
// CHECK: error: 'cute.make_layout' op needs the numbers of !cute.shape<(?,4)> for its stride
func.func @unknown(%s: !cute.shape<"(?,4)">) -> !cute.layout<"(?,4):(1,?)"> {
  %l = "cute.make_layout"(%s) {operandSegmentSizes = array<i32: 1, 0>} : (!cute.shape<"(?,4)">) -> !cute.layout<"(?,4):(1,?)">
  return %l : !cute.layout<"(?,4):(1,?)">
}
// -----
// CHECK: error: 'cute.make_shape' op expects 1 numbers for !cute.shape<(?,4)>, but got 0
func.func @missing() {
  %s = "cute.make_shape"() : () -> !cute.shape<"(?,4)">
  return
}

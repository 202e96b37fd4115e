// RUN: tilec opt -p tileas-remove-layout-conversions

// convert_layout(convert_layout(x)) => convert_layout(x); back where it came from => x
// CHECK: func.func @chains(%[[X:.*]]: tensor<128xf32, #nv_tileas.layout<"lane=
// CHECK-NEXT: %[[C:.*]] = "nv_tileas.convert_layout"(%[[X]])
// CHECK-SAME: -> tensor<128xf32, #nv_tileas.layout<"warp={{.*}}">>
// CHECK-NEXT: math.absf %[[X]] :
// CHECK-NEXT: math.absf %[[C]] :
// CHECK-NEXT: return
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
#b = #nv_tileas.layout<"warp=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
#c = #nv_tileas.layout<"lane=[[2],[1],[4],[8],[16]] warp=[[32],[64]] : 128">
func.func @chains(%x: tensor<128xf32, #a>) {
  %0 = "nv_tileas.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #c>
  %1 = "nv_tileas.convert_layout"(%0) : (tensor<128xf32, #c>) -> tensor<128xf32, #b>
  %2 = "nv_tileas.convert_layout"(%0) : (tensor<128xf32, #c>) -> tensor<128xf32, #a>
  %3 = math.absf %2 : tensor<128xf32, #a>
  %4 = math.absf %1 : tensor<128xf32, #b>
  return
}
// -----
// convert_layout(extf(a)) => extf(convert_layout(a)): half the bytes travel; the
// wide one is left for dead code elimination
// CHECK: func.func @narrows(%[[A:.*]]: tensor<128xf16
// CHECK: %[[C:.*]] = "nv_tileas.convert_layout"(%[[A]])
// CHECK-NEXT: %[[E:.*]] = arith.extf %[[C]]
// CHECK-NEXT: math.absf %[[E]]
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
#b = #nv_tileas.layout<"lane=[[2],[1],[4],[8],[16]] warp=[[32],[64]] : 128">
func.func @narrows(%a: tensor<128xf16, #a>) {
  %0 = arith.extf %a : tensor<128xf16, #a> to tensor<128xf32, #a>
  %1 = "nv_tileas.convert_layout"(%0) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  %2 = math.absf %1 : tensor<128xf32, #b>
  return
}
// -----
// One conversion that is needed stays; a wider operand is not converted instead.
// CHECK: func.func @stays(%[[A:.*]]: tensor<128xf32
// CHECK-NEXT: %[[T:.*]] = arith.truncf %[[A]]
// CHECK-NEXT: %[[C:.*]] = "nv_tileas.convert_layout"(%[[T]])
// CHECK-NEXT: math.absf %[[C]]
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
#b = #nv_tileas.layout<"lane=[[2],[1],[4],[8],[16]] warp=[[32],[64]] : 128">
func.func @stays(%a: tensor<128xf32, #a>) {
  %0 = arith.truncf %a : tensor<128xf32, #a> to tensor<128xf16, #a>
  %1 = "nv_tileas.convert_layout"(%0) : (tensor<128xf16, #a>) -> tensor<128xf16, #b>
  %2 = math.absf %1 : tensor<128xf16, #b>
  return
}
// -----
// CHECK: loc("tileas-remove-layout-conversions.mlir":[[# @LINE + 4]]:8): error: 'nv_tileas.convert_layout' op cannot convert tensor<128xf32{{.*}}> to tensor<64xf32
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
#b = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[0]] : 64">
func.func @shapes(%a: tensor<128xf32, #a>) {
  %0 = "nv_tileas.convert_layout"(%a) : (tensor<128xf32, #a>) -> tensor<64xf32, #b>
  return
}

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
// convert_layout(extf(a)) => extf(convert_layout(a)): half the words travel; the
// wide one is left for dead code elimination
// CHECK: func.func @narrows(%[[A:.*]]: tensor<256xf16
// CHECK: %[[C:.*]] = "nv_tileas.convert_layout"(%[[A]])
// CHECK-NEXT: %[[E:.*]] = arith.extf %[[C]]
// CHECK-NEXT: math.absf %[[E]]
#a = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[64],[128]] : 256">
#b = #nv_tileas.layout<"register=[[1]] lane=[[4],[2],[8],[16],[32]] warp=[[64],[128]] : 256">
func.func @narrows(%a: tensor<256xf16, #a>) {
  %0 = arith.extf %a : tensor<256xf16, #a> to tensor<256xf32, #a>
  %1 = "nv_tileas.convert_layout"(%0) : (tensor<256xf32, #a>) -> tensor<256xf32, #b>
  %2 = math.absf %1 : tensor<256xf32, #b>
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
// -----
// f(convert(a), convert(b), constant) => convert(f(a, b, constant)): one conversion instead of two
// CHECK: func.func @sinks(%[[A:[a-z0-9]+]]: tensor<128xf32, #nv_tileas.layout<"lane={{[^>]*}}">>, %[[B:[a-z0-9]+]]: tensor
// CHECK: %[[K:.*]] = arith.constant dense<2.0{{.*}}> : tensor<128xf32, #nv_tileas.layout<"lane=
// CHECK-NEXT: %[[F:.*]] = math.fma %[[A]], %[[B]], %[[K]]
// CHECK-NEXT: %[[C:.*]] = "nv_tileas.convert_layout"(%[[F]])
// CHECK-NOT: convert_layout
// CHECK: return %[[C]]
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
#b = #nv_tileas.layout<"warp=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
func.func @sinks(%a: tensor<128xf32, #a>, %b: tensor<128xf32, #a>) -> tensor<128xf32, #b> {
  %k = arith.constant dense<2.0> : tensor<128xf32, #b>
  %0 = "nv_tileas.convert_layout"(%a) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  %1 = "nv_tileas.convert_layout"(%b) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  %2 = math.fma %0, %1, %k : tensor<128xf32, #b>
  return %2 : tensor<128xf32, #b>
}
// -----
// What comes from ranges and constants alone is computed again, through views and broadcasts.
// CHECK: func.func @recomputes
// CHECK-NOT: convert_layout
// CHECK: return
#v = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[0],[0]] : 32">
#w = #nv_tileas.layout<"lane=[[0,1],[0,2],[0,4],[0,8],[0,16]] warp=[[0,0],[0,0]] : 1x32">
#s = #nv_tileas.layout<"register=[[1,0],[2,0]] lane=[[0,1],[0,2],[0,4],[0,8],[0,16]] warp=[[0,0],[0,0]] : 4x32">
#t = #nv_tileas.layout<"register=[[0,1],[0,2]] lane=[[0,4],[0,8],[0,16],[1,0],[2,0]] warp=[[0,0],[0,0]] : 4x32">
func.func @recomputes() -> tensor<4x32xi32, #t> {
  %r = "nv_tileaa.make_range"() {start = 0 : i32, end = 32 : i32} : () -> tensor<32xi32, #v>
  %d = arith.addi %r, %r : tensor<32xi32, #v>
  %0 = "nv_tileas.view"(%d) : (tensor<32xi32, #v>) -> tensor<1x32xi32, #w>
  %1 = "nv_tileaa.broadcast"(%0) : (tensor<1x32xi32, #w>) -> tensor<4x32xi32, #s>
  %2 = "nv_tileas.convert_layout"(%1) : (tensor<4x32xi32, #s>) -> tensor<4x32xi32, #t>
  return %2 : tensor<4x32xi32, #t>
}
// -----
// A value of which others need the old layout too: long computations are not repeated.
// CHECK: func.func @keeps
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: "nv_tileas.convert_layout"
#a = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[0],[0]] : 128">
#b = #nv_tileas.layout<"register=[[2],[1]] lane=[[4],[8],[16],[32],[64]] warp=[[0],[0]] : 128">
func.func @keeps(%x: tensor<128xf32, #a>) -> (tensor<128xf32, #a>, tensor<128xf32, #b>) {
  %0 = math.exp %x : tensor<128xf32, #a>
  %1 = "nv_tileas.convert_layout"(%0) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  return %0, %1 : tensor<128xf32, #a>, tensor<128xf32, #b>
}
// -----
// A tile that no turn of the loop changes is converted before the loop.
// CHECK: func.func @hoists(%[[X:[a-z0-9]+]]: tensor<128xf32
// CHECK: %[[C:.*]] = "nv_tileas.convert_layout"(%[[X]])
// CHECK: scf.for
// CHECK-NOT: convert_layout
// CHECK: arith.addf %{{.*}}, %[[C]]
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
#b = #nv_tileas.layout<"warp=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
func.func @hoists(%x: tensor<128xf32, #a>, %y: tensor<128xf32, #b>, %n: index) -> tensor<128xf32, #b> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %y) -> tensor<128xf32, #b> {
    %0 = "nv_tileas.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
    %1 = arith.addf %acc, %0 : tensor<128xf32, #b>
    scf.yield %1 : tensor<128xf32, #b>
  }
  return %r : tensor<128xf32, #b>
}
// -----
// What a loop adds up is carried in the layout in which it comes, through views, and converted
// behind the loop; constants of other steps are as easily made there.
// CHECK: func.func @carries(%[[Y:[a-z0-9]+]]: tensor<128x1xf32
// CHECK: %[[F:.*]] = "nv_tileas.convert_layout"(%[[Y]])
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[F]])
// CHECK-NOT: convert_layout
// CHECK: %[[S:.*]] = math.absf
// CHECK: %[[V:.*]] = "nv_tileas.view"(%[[S]])
// CHECK: arith.addf
// CHECK-NOT: convert_layout
// CHECK: scf.yield
// CHECK: "nv_tileas.convert_layout"(%[[R]])
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
#b = #nv_tileas.layout<"warp=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
#w = #nv_tileas.layout<"warp=[[1,0],[2,0]] lane=[[4,0],[8,0],[16,0],[32,0],[64,0]] : 128x1">
func.func @carries(%y: tensor<128x1xf32, #w>, %p: tensor<128xf32, #a>, %n: index) -> tensor<128x1xf32, #w> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant dense<2.0> : tensor<128x1xf32, #w>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %y) -> tensor<128x1xf32, #w> {
    %0 = math.absf %p : tensor<128xf32, #a>
    %1 = "nv_tileas.convert_layout"(%0) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
    %2 = "nv_tileas.view"(%1) : (tensor<128xf32, #b>) -> tensor<128x1xf32, #w>
    %3 = arith.mulf %acc, %two : tensor<128x1xf32, #w>
    %4 = arith.addf %3, %2 : tensor<128x1xf32, #w>
    scf.yield %4 : tensor<128x1xf32, #w>
  }
  return %r : tensor<128x1xf32, #w>
}
// -----
// Where the loop uses it for something else, too, it stays as it is.
// CHECK: func.func @is_used(%[[Y:[a-z0-9]+]]: tensor<128xf32
// CHECK-NOT: convert_layout
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[Y]])
// CHECK: "nv_tileas.convert_layout"
// CHECK: scf.yield
// CHECK-NOT: convert_layout
// CHECK: return
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
#b = #nv_tileas.layout<"warp=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
func.func @is_used(%y: tensor<128xf32, #b>, %p: tensor<128xf32, #a>, %n: index) -> (tensor<128xf32, #b>, tensor<128xf32, #b>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %y, %most = %y) -> (tensor<128xf32, #b>, tensor<128xf32, #b>) {
    %0 = math.absf %p : tensor<128xf32, #a>
    %1 = "nv_tileas.convert_layout"(%0) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
    %2 = arith.addf %acc, %1 : tensor<128xf32, #b>
    %3 = arith.maximumf %most, %2 : tensor<128xf32, #b>
    scf.yield %2, %3 : tensor<128xf32, #b>, tensor<128xf32, #b>
  }
  return %r#0, %r#1 : tensor<128xf32, #b>, tensor<128xf32, #b>
}

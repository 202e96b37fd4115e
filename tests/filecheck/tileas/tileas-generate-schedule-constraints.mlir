// RUN: tilec opt -p tileas-generate-schedule-constraints{scheduler=list}

// The load starts first, as everything waits for it; its user starts when its data is there.
// CHECK: func.func @latencies
// CHECK-SAME: nv_tile.aws.order = array<i64: 0, 1, 2, 3>, nv_tile.aws.stage = array<i64: 0, 0, 0, 0>
// CHECK-SAME: nv_tileas.ii = {{[0-9]+}} : i32
// CHECK: arith.mulf {{.*}} {nv_tileas.start = 0 : i32}
// CHECK: "nv_tileas.load"
// CHECK-SAME: nv_tileas.start = 0 : i32
// CHECK: math.absf {{.*}} {nv_tileas.start = {{[1-9][0-9][0-9]}} : i32}
// CHECK: return {nv_tileas.start = {{[1-9][0-9][0-9]}} : i32}
#l = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
func.func @latencies(%p: tensor<128x!nv_tileaa.ptr<f32, 1 : i32>, #l>, %f: f32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.mulf %f, %f : f32
  %x:2 = "nv_tileas.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<128x!nv_tileaa.ptr<f32, 1 : i32>, #l>) -> (tensor<128xf32, #l>, !nv_tileaa.mem_token)
  %y = math.absf %x#0 : tensor<128xf32, #l>
  return
}
// -----
// Loops have a schedule of their own, branches inside of them have none.
// CHECK: func.func @loops
// CHECK-SAME: nv_tileas.ii
// CHECK: scf.for
// CHECK: scf.if
// CHECK-NEXT: math.absf
// CHECK-NOT: nv_tileas.start
// CHECK: }
// CHECK: } {nv_tile.aws.order = array<i64: 0, 1>, nv_tile.aws.stage = array<i64: 0, 0>, nv_tileas.ii = {{[0-9]+}} : i32, nv_tileas.start = {{[0-9]+}} : i32}
func.func @loops(%n: i32, %c: i1, %x: f32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  scf.for %i = %0 to %n step %1 : i32 {
    scf.if %c {
      %2 = math.absf %x : f32
    }
  }
  return
}
// -----
// An empty kernel: the terminator alone.
// CHECK: func.func @empty() attributes {{.*}}nv_tileas.ii = 1 : i32} {
// CHECK-NEXT: return {nv_tileas.start = 0 : i32}
func.func @empty() attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  return
}
// -----
// CHECK: loc("tileas-generate-schedule-constraints.mlir":[[# @LINE + 1]]:1): error: 'func.func' op has no kernel_spec; run 'convert-tileaa-to-tileas' before
func.func @no_kernel() {
  return
}

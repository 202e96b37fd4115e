// RUN: tilec opt -p convert-tileaa-to-tileas --gpu-name sm_90

// Memory, shape and reduction operations change their dialect; the launch record is written.
// CHECK: func.func @converts
// CHECK-SAME: nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 8 : i32, occupancy = 2 : i32}
// CHECK: %[[L:.*]]:2 = "nv_tileas.load"
// CHECK-SAME: mem_semantic = "weak"
// CHECK: %[[V:.*]] = "nv_tileas.view"(%[[L]]#0) : (tensor<128xf32>) -> tensor<1x128xf32>
// CHECK: "nv_tileas.reduce"(%[[V]])
// CHECK: %[[S:.*]] = "nv_tileaa.addf"
// CHECK: "nv_tileas.yield"(%[[S]]) : (f32) -> ()
// CHECK: axis = 1 : i32
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
gpu.module @m attributes {tt.num_warps = 4 : i32, tt.num_ctas = 1 : i32} {
  func.func @converts(%p: tensor<128x!ptr>) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {default = {occupancy = 2 : i32}, sm_90 = {num_worker_warps_per_cta = 16 : i32}, sm_80 = {occupancy = 3 : i32}}} {
    %0:2 = "nv_tileaa.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<128x!ptr>) -> (tensor<128xf32>, !tok)
    %1 = "nv_tileaa.expand_dims"(%0#0) {axis = 0 : i32} : (tensor<128xf32>) -> tensor<1x128xf32>
    %2 = "nv_tileaa.reduce"(%1) ({
    ^bb0(%a: f32, %b: f32):
      %s = "nv_tileaa.addf"(%a, %b) : (f32, f32) -> f32
      "nv_tileaa.yield"(%s) : (f32) -> ()
    }) {axis = 1 : i32, identities = [0.0 : f32]} : (tensor<1x128xf32>) -> tensor<1xf32>
    return
  }
}
// -----
// A tile of 32 registers: nine blocks leave 56 to a thread, of which it is less than three fifths.
// CHECK: func.func @as_many_blocks_as_fit
// CHECK-SAME: num_warps = 4 : i32, occupancy = 9 : i32}
// CHECK: func.func @few_registers
// CHECK-SAME: num_warps = 4 : i32, occupancy = 16 : i32}
gpu.module @m attributes {tt.num_warps = 4 : i32, tt.num_ctas = 1 : i32} {
  func.func @as_many_blocks_as_fit(%x: tensor<64x64xf32>) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {default = {occupancy = 16 : i32}}} {
    %0 = math.absf %x : tensor<64x64xf32>
    return
  }
  func.func @few_registers(%x: f32) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {default = {occupancy = 32 : i32}}} {
    return
  }
}
// -----
// Elementwise operations and views of memory have no other form here; a helper is no kernel.
// CHECK: func.func private @stays(%[[X:.*]]: tensor<16xf32>) -> tensor<16xf32> {
// CHECK-NEXT: %[[A:.*]] = "nv_tileaa.addf"(%[[X]], %[[X]]) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
// CHECK-NEXT: %[[B:.*]] = math.absf %[[A]] : tensor<16xf32>
// CHECK-NEXT: return %[[B]] : tensor<16xf32>
// CHECK-NOT: kernel_spec
gpu.module @m attributes {tt.num_warps = 4 : i32, tt.num_ctas = 1 : i32} {
  func.func private @stays(%x: tensor<16xf32>) -> tensor<16xf32> {
    %0 = "nv_tileaa.addf"(%x, %x) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %1 = math.absf %0 : tensor<16xf32>
    return %1 : tensor<16xf32>
  }
}
// -----
// Nobody has said how many warps: four, and eight where the tiles of four would fill the registers.
// CHECK: func.func @small
// CHECK-SAME: num_warps = 4 : i32
// CHECK: func.func @large
// CHECK-SAME: num_warps = 8 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32} {
  func.func @small(%x: tensor<16384xf32>) attributes {nv_tileaa.kernel} {
    %0 = math.absf %x : tensor<16384xf32>
    return
  }
  func.func @large(%x: tensor<32768xf32>) attributes {nv_tileaa.kernel} {
    %0 = math.absf %x : tensor<32768xf32>
    return
  }
}
// -----
// A cluster is what tileas-plan-cta has cut the tiles for, whatever was asked for.
// CHECK: func.func @clusters
// CHECK-SAME: num_ctas = 1 : i32
// CHECK: func.func @cut
// CHECK-SAME: num_ctas = 4 : i32
gpu.module @m attributes {tt.num_warps = 4 : i32, tt.num_ctas = 2 : i32} {
  func.func @clusters() attributes {nv_tileaa.kernel} {
    return
  }
  func.func @cut() attributes {nv_tileaa.kernel, nv_tileas.num_ctas = 4 : i32} {
    return
  }
}
// -----
// CHECK: loc("convert-tileaa-to-tileas.mlir":[[# @LINE + 1]]:1): error: 'gpu.module' op has no 'tt.num_warps', which its kernels are launched with
gpu.module @m {
  func.func @k() attributes {nv_tileaa.kernel} {
    return
  }
}
// -----
// Block scales that bf16 holds are multiplied in before; the product itself has none.
// CHECK: func.func private @scaled
// CHECK: %[[B:.*]] = "nv_tileaa.broadcast"
// CHECK-NEXT: %[[V:.*]] = "nv_tileas.view"(%[[B]]) : (tensor<16x2x16xbf16>) -> tensor<16x32xbf16>
// CHECK: "nv_tileaa.mulf"(%{{.*}}, %[[V]]) : (tensor<16x32xbf16>, tensor<16x32xbf16>) -> tensor<16x32xbf16>
// CHECK: "nv_tileas.dot"(%{{.*}}, %{{.*}}, %arg2) {atom = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
gpu.module @m attributes {tt.num_warps = 4 : i32, tt.num_ctas = 1 : i32} {
  func.func private @scaled(%a: tensor<16x32xf4E2M1FN>, %b: tensor<32x8xf4E2M1FN>, %c: tensor<16x8xf32>, %s: tensor<16x2xf8E4M3FN>, %t: tensor<2x8xf8E4M3FN>) -> tensor<16x8xf32> {
    %0 = "nv_tileaa.dot"(%a, %b, %c, %s, %t) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>} : (tensor<16x32xf4E2M1FN>, tensor<32x8xf4E2M1FN>, tensor<16x8xf32>, tensor<16x2xf8E4M3FN>, tensor<2x8xf8E4M3FN>) -> tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
// -----
// A volatile access is one that the whole system sees made.
// CHECK: func.func @volatile
// CHECK: "nv_tileas.load"
// CHECK-SAME: mem_scope = "sys", mem_semantic = "relaxed"
// CHECK: "nv_tileas.store"
// CHECK-SAME: mem_scope = "gpu", mem_semantic = "release"
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
func.func @volatile(%p: !p, %x: f32) {
  %0:2 = "nv_tileaa.load"(%p) {mem_semantic = "weak", volatile, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (f32, !tok)
  %1 = "nv_tileaa.store"(%p, %x) {mem_semantic = "release", mem_scope = "gpu", volatile, operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, f32) -> !tok
  return
}
// -----
// An update of a tile goes through pointers, masked where the tile leaves the memref.
// CHECK: func.func @update
// CHECK: nv_tileas.view
// CHECK: %[[I:.*]] = arith.andi
// CHECK: "nv_tileas.atomic_rmw"(%{{.*}}, %{{.*}}, %[[I]])
// CHECK-SAME: rmw_mode = "addf"
// CHECK: math.absf
!p = !nv_tileaa.ptr<f32, 1 : i32>
!m = !nv_tileaa.memref<f32, array<i64: 60, 20>, array<i64: 20, 1>>
!v = !nv_tileaa.tiled_view<!m, array<i32: 8, 4>, array<i32: 0, 1>, "">
func.func @update(%p: !p, %i: i32, %t: tensor<8x4xf32>) {
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
  %v = "nv_tileaa.block_tile"(%m) : (!m) -> !v
  %r:2 = "nv_tileaa.tiled_atomic_rmw"(%v, %t, %i, %i) {mem_semantic = "relaxed", mem_scope = "gpu", rmw_mode = "add", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!v, tensor<8x4xf32>, i32, i32) -> (tensor<8x4xf32>, !nv_tileaa.mem_token)
  %a = math.absf %r#0 : tensor<8x4xf32>
  return
}
// -----
// CHECK: func.func @clamps(%[[X:.*]]: f32, %[[L:.*]]: f32, %[[H:.*]]: f32)
// CHECK: %[[A:.*]] = arith.maxnumf %[[X]], %[[L]]
// CHECK: arith.minnumf %[[A]], %[[H]]
// CHECK: %[[B:.*]] = arith.maximumf %[[X]], %[[L]]
// CHECK: arith.minimumf %[[B]], %[[H]]
func.func @clamps(%x: f32, %l: f32, %h: f32) {
  %0 = "nv_tileaa.clampf"(%x, %l, %h) : (f32, f32, f32) -> f32
  %1 = "nv_tileaa.clampf"(%x, %l, %h) {propagate_nan} : (f32, f32, f32) -> f32
  return
}
// -----
// CHECK: loc("convert-tileaa-to-tileas.mlir":[[# @LINE + 2]]:8): error: 'nv_tileaa.conv_dot' op is not supported by 'convert-tileaa-to-tileas': the specification describes no conversion of it
func.func @not_compiled(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  %0 = "nv_tileaa.conv_dot"(%a, %a, %c) {conv_params = {}} : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}
// -----
// CHECK: loc("convert-tileaa-to-tileas.mlir":[[# @LINE + 5]]:8): error: 'nv_tileaa.conv_tile' op is not supported by 'convert-tileaa-to-tileas': the specification describes no conversion of it
!p = !nv_tileaa.ptr<f32, 1 : i32>
!m = !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>>
!v = !nv_tileaa.tiled_view<!m, array<i32: 8, 4>, array<i32: 0, 1>, "">
func.func @not_cut(%m: !m) {
  %0 = "nv_tileaa.conv_tile"(%m) {filter_sizes = array<i32: 3>, conv_params = {}, dim_groups = [array<i32: 0>, array<i32: 1>], channel_axis = 1 : i32} : (!m) -> !v
  return
}
// -----
// CHECK: error: 'nv_tileaa.dot' op requires attribute 'operandSegmentSizes'
func.func @unsized(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = "nv_tileaa.dot"(%a, %a, %c) : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

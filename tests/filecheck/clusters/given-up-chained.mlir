// RUN: tilec opt -p tileas-plan-cta --gpu-name sm_90

// One block makes what products hand on without waiting for others.
// CHECK-LABEL: func.func @chained
// CHECK-SAME: nv_tileas.num_ctas = 1 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32} {
  func.func @chained(%q: tensor<128x64xf16>, %k: tensor<64x128xf16>, %v: tensor<128x64xf16>) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {sm_90 = {num_cta_in_cga = 2 : i32}}} {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %none = arith.constant dense<0.0> : tensor<128x64xf32>
    %s = "nv_tileaa.dot"(%q, %k, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<128x64xf16>, tensor<64x128xf16>, tensor<128x128xf32>) -> tensor<128x128xf32>
    %w = "nv_tileaa.fp_to_fp"(%s) : (tensor<128x128xf32>) -> tensor<128x128xf16>
    %o = "nv_tileaa.dot"(%w, %v, %none) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<128x128xf16>, tensor<128x64xf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
    return
  }
}
// -----
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!q = !nv_tileaa.tiled_view<!m, array<i32: 256, 128>, array<i32: 0, 1>, "zero">

// Threads of one block cannot hold two sums of 256 x 128: two blocks have half of each.
// CHECK-LABEL: func.func @large
// CHECK-SAME: nv_tileas.num_ctas = 2 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32} {
  func.func @large(%p: !p, %at: i32, %k: tensor<128x128xf16>, %v: tensor<128x128xf16>, %n: index) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {sm_90 = {num_cta_in_cga = 2 : i32}}} {
    %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
    %qv = "nv_tileaa.block_tile"(%m) : (!m) -> !q
    %q:2 = "nv_tileaa.tiled_load"(%qv, %at, %at) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!q, i32, i32) -> (tensor<256x128xf16>, !nv_tileaa.mem_token)
    %zero = arith.constant dense<0.0> : tensor<256x128xf32>
    %lo = arith.constant 0 : index
    %one = arith.constant 1 : index
    %d = scf.for %i = %lo to %n step %one iter_args(%sum = %zero) -> (tensor<256x128xf32>) {
      %s = "nv_tileaa.dot"(%q#0, %k, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<256x128xf16>, tensor<128x128xf16>, tensor<256x128xf32>) -> tensor<256x128xf32>
      %w = "nv_tileaa.fp_to_fp"(%s) : (tensor<256x128xf32>) -> tensor<256x128xf16>
      %o = "nv_tileaa.dot"(%w, %v, %sum) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<256x128xf16>, tensor<128x128xf16>, tensor<256x128xf32>) -> tensor<256x128xf32>
      scf.yield %o : tensor<256x128xf32>
    }
    return
  }
}

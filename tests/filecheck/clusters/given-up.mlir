// RUN: tilec opt -p tileas-plan-cta --gpu-name sm_100

!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!short = !nv_tileaa.tiled_view<!m, array<i32: 128, 64>, array<i32: 0, 1>, "zero">
!b = !nv_tileaa.tiled_view<!m, array<i32: 64, 64>, array<i32: 0, 1>, "zero">

// Half of 128 x 64 is less than instructions are fast for.
// CHECK-LABEL: func.func @small
// CHECK-SAME: nv_tileas.num_ctas = 1 : i32
// CHECK-NOT: cta_rank
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32} {
  func.func @small(%p: !p, %i: i32, %n: index) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {sm_100 = {num_cta_in_cga = 2 : i32}}} {
    %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
    %av = "nv_tileaa.block_tile"(%m) : (!m) -> !short
    %bv = "nv_tileaa.block_tile"(%m) : (!m) -> !b
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %lo = arith.constant 0 : index
    %one = arith.constant 1 : index
    %d = scf.for %k = %lo to %n step %one iter_args(%sum = %zero) -> (tensor<128x64xf32>) {
      %a:2 = "nv_tileaa.tiled_load"(%av, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!short, i32, i32) -> (tensor<128x64xf16>, !tok)
      %b:2 = "nv_tileaa.tiled_load"(%bv, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!b, i32, i32) -> (tensor<64x64xf16>, !tok)
      %s = "nv_tileaa.dot"(%a#0, %b#0, %sum) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<128x64xf16>, tensor<64x64xf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
      scf.yield %s : tensor<128x64xf32>
    }
    %h = "nv_tileaa.fp_to_fp"(%d) : (tensor<128x64xf32>) -> tensor<128x64xf16>
    %t = "nv_tileaa.tiled_store"(%av, %h, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!short, tensor<128x64xf16>, i32, i32) -> !tok
    return
  }
}
// -----
!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!long = !nv_tileaa.tiled_view<!m, array<i32: 256, 64>, array<i32: 0, 1>, "zero">
!b = !nv_tileaa.tiled_view<!m, array<i32: 64, 64>, array<i32: 0, 1>, "zero">

// A hint of four keeps two, which are large enough, and make products together.
// CHECK-LABEL: func.func @fewer
// CHECK-SAME: nv_tileas.num_ctas = 2 : i32
// CHECK: "nv_tileaa.tiled_load"{{.*}} -> (tensor<128x64xf16>
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32} {
  func.func @fewer(%p: !p, %i: i32, %n: index) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {sm_100 = {num_cta_in_cga = 4 : i32}}} {
    %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
    %av = "nv_tileaa.block_tile"(%m) : (!m) -> !long
    %bv = "nv_tileaa.block_tile"(%m) : (!m) -> !b
    %zero = arith.constant dense<0.0> : tensor<256x64xf32>
    %lo = arith.constant 0 : index
    %one = arith.constant 1 : index
    %d = scf.for %k = %lo to %n step %one iter_args(%sum = %zero) -> (tensor<256x64xf32>) {
      %a:2 = "nv_tileaa.tiled_load"(%av, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!long, i32, i32) -> (tensor<256x64xf16>, !tok)
      %b:2 = "nv_tileaa.tiled_load"(%bv, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!b, i32, i32) -> (tensor<64x64xf16>, !tok)
      %s = "nv_tileaa.dot"(%a#0, %b#0, %sum) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<256x64xf16>, tensor<64x64xf16>, tensor<256x64xf32>) -> tensor<256x64xf32>
      scf.yield %s : tensor<256x64xf32>
    }
    %h = "nv_tileaa.fp_to_fp"(%d) : (tensor<256x64xf32>) -> tensor<256x64xf16>
    %t = "nv_tileaa.tiled_store"(%av, %h, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!long, tensor<256x64xf16>, i32, i32) -> !tok
    return
  }
}
// -----
!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!short = !nv_tileaa.tiled_view<!m, array<i32: 128, 64>, array<i32: 0, 1>, "zero">

// What the module asks for is made, small or not.
// CHECK-LABEL: func.func @told
// CHECK-SAME: nv_tileas.num_ctas = 2 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 2 : i32} {
  func.func @told(%p: !p, %i: i32, %b: tensor<64x64xf16>) attributes {nv_tileaa.kernel} {
    %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
    %av = "nv_tileaa.block_tile"(%m) : (!m) -> !short
    %a:2 = "nv_tileaa.tiled_load"(%av, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!short, i32, i32) -> (tensor<128x64xf16>, !tok)
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %d = "nv_tileaa.dot"(%a#0, %b, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<128x64xf16>, tensor<64x64xf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
    return
  }
}
// -----
// Each block alone would multiply 64 rows by instructions of 128.
// CHECK-LABEL: func.func @few_rows
// CHECK-SAME: nv_tileas.num_ctas = 1 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32} {
  func.func @few_rows(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {default = {num_cta_in_cga = 2 : i32}}} {
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %d = "nv_tileaa.dot"(%a, %b, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<128x64xf16>, tensor<64x256xf16>, tensor<128x256xf32>) -> tensor<128x256xf32>
    return
  }
}
// -----
// Sums of 512 rows take more columns than one block has, chained or not.
!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!tall = !nv_tileaa.tiled_view<!m, array<i32: 512, 64>, array<i32: 0, 1>, "zero">

// CHECK-LABEL: func.func @tall
// CHECK-SAME: nv_tileas.num_ctas = 2 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32} {
  func.func @tall(%p: !p, %i: i32, %k: tensor<64x128xf16>, %v: tensor<128x64xf16>, %n: index) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {default = {num_cta_in_cga = 2 : i32}}} {
    %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
    %qv = "nv_tileaa.block_tile"(%m) : (!m) -> !tall
    %q:2 = "nv_tileaa.tiled_load"(%qv, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!tall, i32, i32) -> (tensor<512x64xf16>, !tok)
    %none = arith.constant dense<0.0> : tensor<512x128xf32>
    %zero = arith.constant dense<0.0> : tensor<512x64xf32>
    %lo = arith.constant 0 : index
    %one = arith.constant 1 : index
    %r = scf.for %j = %lo to %n step %one iter_args(%sum = %zero) -> (tensor<512x64xf32>) {
      %s = "nv_tileaa.dot"(%q#0, %k, %none) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<512x64xf16>, tensor<64x128xf16>, tensor<512x128xf32>) -> tensor<512x128xf32>
      %w = "nv_tileaa.fp_to_fp"(%s) : (tensor<512x128xf32>) -> tensor<512x128xf16>
      %o = "nv_tileaa.dot"(%w, %v, %sum) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<512x128xf16>, tensor<128x64xf16>, tensor<512x64xf32>) -> tensor<512x64xf32>
      scf.yield %o : tensor<512x64xf32>
    }
    %h = "nv_tileaa.fp_to_fp"(%r) : (tensor<512x64xf32>) -> tensor<512x64xf16>
    %t = "nv_tileaa.tiled_store"(%qv, %h, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!tall, tensor<512x64xf16>, i32, i32) -> !tok
    return
  }
}
// -----
// A hint of none leaves it to the compiler.
// CHECK-LABEL: func.func @open
// CHECK-SAME: nv_tileas.num_ctas = 1 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32} {
  func.func @open(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {default = {num_cta_in_cga = 0 : i32}}} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = "nv_tileaa.dot"(%a, %b, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return
  }
}

// RUN: tilec opt -p tileas-unspecialized-pipeline{num-stages=3} --gpu-name sm_80

// Both operands of the product are loaded two iterations ahead, into the third stage.
// CHECK: func.func @matmul_f16
// CHECK: %[[A:.*]] = "nv_tileas.alloc_tensor"() {{.*}}pipelined{{.*}}, "shared", 3 : i32>
// CHECK: %[[B:.*]] = "nv_tileas.alloc_tensor"() {{.*}}pipelined{{.*}}, "shared", 3 : i32>
// CHECK: scf.if
// CHECK: "nv_tileas.async_tiled_load"
// CHECK: "nv_tileas.async_tiled_load"
// CHECK: "nv_tileas.async_commit_group"
// CHECK: scf.if
// CHECK: "nv_tileas.async_commit_group"
// CHECK: scf.for
// CHECK: "nv_tileas.async_wait"() {group = "cp.async", pending = 1 : i32}
// CHECK-NEXT: "nv_tileas.sync"
// CHECK: "nv_tileas.async_tiled_load"
// CHECK: "nv_tileas.async_commit_group"
// CHECK: "nv_tileas.buffer_view"(%[[A]]
// CHECK: "nv_tileas.buffer_view"(%[[B]]
// CHECK-NOT: "nv_tileas.tiled_load"
// CHECK: "nv_tileas.dot"
#l0 = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,32],[32,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[0,16]] : 64x64">
#l1 = #nv_tileas.layout<"register=[[0,1],[0,2],[0,4],[32,0]] lane=[[0,8],[0,16],[1,0],[2,0],[4,0]] warp=[[8,0],[16,0]] : 64x32">
#l2 = #nv_tileas.layout<"register=[[0,1],[0,2],[0,4],[16,0]] lane=[[0,8],[0,16],[0,32],[1,0],[2,0]] warp=[[4,0],[8,0]] : 32x64">
#l3 = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[1,0],[2,8],[4,16],[8,0],[16,0],[32,0]] : 64x32">
#l4 = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32],[1,8],[2,16],[4,32],[8,0],[16,0]] : 32x64">
#l5 = #nv_tileas.layout<"offset=[[0,1],[32,0],[0,2],[0,8],[0,16],[0,32],[4,0],[8,0],[16,0],[0,12],[1,16],[2,32]] : 64x64">
#l6 = #nv_tileas.layout<"register=[[0,1],[0,2],[0,4],[16,0],[32,0]] lane=[[0,8],[0,16],[0,32],[1,0],[2,0]] warp=[[4,0],[8,0]] : 64x64">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!memref = !nv_tileaa.memref<f16, array<i64: -9223372036854775808, -9223372036854775808>, array<i64: -9223372036854775808, 1>>
!view0 = !nv_tileaa.tiled_view<!memref, array<i32: 32, 64>, array<i32: 0, 1>, "zero">
!view1 = !nv_tileaa.tiled_view<!memref, array<i32: 64, 32>, array<i32: 0, 1>, "zero">
!view2 = !nv_tileaa.tiled_view<!memref, array<i32: 64, 64>, array<i32: 0, 1>, "">
func.func @matmul_f16(%arg0: !ptr, %arg1: i32, %arg2: i32, %arg3: i32, %arg4: i32, %arg5: !ptr, %arg6: i32, %arg7: i32, %arg8: i32, %arg9: i32, %arg10: !ptr, %arg11: i32, %arg12: i32, %arg13: i32, %arg14: i32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}, nv_tileaa.optimization_hints = {sm_80 = {}}} {
  %c0_i32 = arith.constant 0 : i32
  %c32_i32 = arith.constant 32 : i32
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #l0>
  %c1_i32 = arith.constant 1 : i32
  %0 = "nv_tileaa.create_mem_token"() : () -> !tok
  %1 = "nv_tileaa.assume"(%arg0) {predicate = {divisor = 16 : i64, kind = "div_by"}} : (!ptr) -> !ptr
  %2 = "nv_tileaa.assume"(%arg3) {predicate = {divisor = 8 : i64, kind = "div_by"}} : (i32) -> i32
  %3 = "nv_tileaa.assume"(%arg5) {predicate = {divisor = 16 : i64, kind = "div_by"}} : (!ptr) -> !ptr
  %4 = "nv_tileaa.assume"(%arg8) {predicate = {divisor = 8 : i64, kind = "div_by"}} : (i32) -> i32
  %5 = "nv_tileaa.assume"(%arg10) {predicate = {divisor = 16 : i64, kind = "div_by"}} : (!ptr) -> !ptr
  %6 = "nv_tileaa.assume"(%arg13) {predicate = {divisor = 8 : i64, kind = "div_by"}} : (i32) -> i32
  %7 = "nv_tileaa.assume"(%arg1) {predicate = {kind = "bounded", lb = 0 : i64}} : (i32) -> i32
  %8 = "nv_tileaa.assume"(%arg2) {predicate = {kind = "bounded", lb = 0 : i64}} : (i32) -> i32
  %9 = "nv_tileaa.assume"(%2) {predicate = {kind = "bounded", lb = 0 : i64}} : (i32) -> i32
  %10 = "nv_tileaa.assume"(%9) {predicate = {divisor = 8 : i64, kind = "div_by"}} : (i32) -> i32
  %11 = "nv_tileaa.make_memref"(%1, %7, %8, %10) {operandSegmentSizes = array<i32: 1, 2, 1>} : (!ptr, i32, i32, i32) -> !memref
  %12 = "nv_tileaa.assume"(%arg6) {predicate = {kind = "bounded", lb = 0 : i64}} : (i32) -> i32
  %13 = "nv_tileaa.assume"(%arg7) {predicate = {kind = "bounded", lb = 0 : i64}} : (i32) -> i32
  %14 = "nv_tileaa.assume"(%4) {predicate = {kind = "bounded", lb = 0 : i64}} : (i32) -> i32
  %15 = "nv_tileaa.assume"(%14) {predicate = {divisor = 8 : i64, kind = "div_by"}} : (i32) -> i32
  %16 = "nv_tileaa.make_memref"(%3, %12, %13, %15) {operandSegmentSizes = array<i32: 1, 2, 1>} : (!ptr, i32, i32, i32) -> !memref
  %17 = "nv_tileaa.assume"(%arg11) {predicate = {kind = "bounded", lb = 0 : i64}} : (i32) -> i32
  %18 = "nv_tileaa.assume"(%arg12) {predicate = {kind = "bounded", lb = 0 : i64}} : (i32) -> i32
  %19 = "nv_tileaa.assume"(%6) {predicate = {kind = "bounded", lb = 0 : i64}} : (i32) -> i32
  %20 = "nv_tileaa.assume"(%19) {predicate = {divisor = 8 : i64, kind = "div_by"}} : (i32) -> i32
  %21 = "nv_tileaa.make_memref"(%5, %17, %18, %20) {operandSegmentSizes = array<i32: 1, 2, 1>} : (!ptr, i32, i32, i32) -> !memref
  %22 = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
  %23 = "nv_tileaa.get_program_id"() {axis = 1 : i32} : () -> i32
  %24 = "nv_tileaa.get_dim_size"(%11) {dim = 1 : i32} : (!memref) -> i32
  %25 = arith.ceildivui %24, %c32_i32 : i32
  %26 = scf.for %arg15 = %c0_i32 to %25 step %c1_i32 iter_args(%arg16 = %cst) -> (tensor<64x64xf32, #l0>)  : i32 {
    %32 = "nv_tileaa.block_tile"(%11) : (!memref) -> !view1
    %33:2 = "nv_tileas.tiled_load"(%32, %22, %arg15, %0) {access = {checked = array<i32: 0, 1>, order = array<i32: 1, 0>, vector = 8 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!view1, i32, i32, !tok) -> (tensor<64x32xf16, #l1>, !tok)
    %34 = "nv_tileaa.block_tile"(%16) : (!memref) -> !view0
    %35:2 = "nv_tileas.tiled_load"(%34, %arg15, %23, %0) {access = {checked = array<i32: 0, 1>, order = array<i32: 1, 0>, vector = 8 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!view0, i32, i32, !tok) -> (tensor<32x64xf16, #l2>, !tok)
    %36 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !nv_tileas.buffer<tensor<64x32xf16, #l3>, "shared", 1 : i32>
    "nv_tileas.copy"(%33#0, %36) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<64x32xf16, #l1>, !nv_tileas.buffer<tensor<64x32xf16, #l3>, "shared", 1 : i32>) -> ()
    %37 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !nv_tileas.buffer<tensor<32x64xf16, #l4>, "shared", 1 : i32>
    "nv_tileas.copy"(%35#0, %37) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<32x64xf16, #l2>, !nv_tileas.buffer<tensor<32x64xf16, #l4>, "shared", 1 : i32>) -> ()
    %38 = "nv_tileas.dot"(%36, %37, %arg16) {atom = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!nv_tileas.buffer<tensor<64x32xf16, #l3>, "shared", 1 : i32>, !nv_tileas.buffer<tensor<32x64xf16, #l4>, "shared", 1 : i32>, tensor<64x64xf32, #l0>) -> tensor<64x64xf32, #l0>
    scf.yield %38 : tensor<64x64xf32, #l0>
  }
  %27 = "nv_tileaa.fp_to_fp"(%26) : (tensor<64x64xf32, #l0>) -> tensor<64x64xf16, #l0>
  %28 = "nv_tileaa.block_tile"(%21) : (!memref) -> !view2
  %29 = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !nv_tileas.buffer<tensor<64x64xf16, #l5>, "shared", 1 : i32>
  "nv_tileas.copy"(%27, %29) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<64x64xf16, #l0>, !nv_tileas.buffer<tensor<64x64xf16, #l5>, "shared", 1 : i32>) -> ()
  %30 = "nv_tileas.copy"(%29) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!nv_tileas.buffer<tensor<64x64xf16, #l5>, "shared", 1 : i32>) -> tensor<64x64xf16, #l6>
  %31 = "nv_tileas.tiled_store"(%28, %30, %22, %23, %0) {access = {checked = array<i32: 0, 1>, order = array<i32: 1, 0>, vector = 8 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!view2, tensor<64x64xf16, #l6>, i32, i32, !tok) -> !tok
  return
}
// -----
// A loop without a product is left alone.
// CHECK: func.func @counts
// CHECK-NEXT: scf.for
// CHECK-NEXT: arith.addi
func.func @counts(%n: i32) -> i32 {
  %r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (i32) : i32 {
    %y = arith.addi %x, %i : i32
    scf.yield %y : i32
  }
  return %r : i32
}
// -----
// CHECK: error: {{.*}}expects one stage to copy, but got 2
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
!m = !nv_tileas.buffer<tensor<128xf32>, "shared", 2 : i32>
func.func @stages(%x: tensor<128xf32, #a>, %b: !m) {
  "nv_tileas.copy"(%x, %b) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<128xf32, #a>, !m) -> ()
  return
}

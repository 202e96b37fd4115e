// RUN: tilec opt -p tileas-plan-cta{follow-hints=true} --gpu-name sm_100

!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!a = !nv_tileaa.tiled_view<!m, array<i32: 128, 64>, array<i32: 0, 1>, "zero">

// A cluster that the hint asks for, though blocks have half of 128 x 64 each.
// CHECK-LABEL: func.func @small
// CHECK-SAME: nv_tileas.num_ctas = 2 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32} {
  func.func @small(%p: !p, %i: i32, %b: tensor<64x64xf16>) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {sm_100 = {num_cta_in_cga = 2 : i32}}} {
    %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
    %av = "nv_tileaa.block_tile"(%m) : (!m) -> !a
    %a:2 = "nv_tileaa.tiled_load"(%av, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!a, i32, i32) -> (tensor<128x64xf16>, !tok)
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %d = "nv_tileaa.dot"(%a#0, %b, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<128x64xf16>, tensor<64x64xf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
    return
  }
}

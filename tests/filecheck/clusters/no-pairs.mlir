// RUN: tilec opt -p tileas-plan-cta{mma=mma.sync} --gpu-name sm_100

!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!a = !nv_tileaa.tiled_view<!m, array<i32: 256, 64>, array<i32: 0, 1>, "zero">
!b = !nv_tileaa.tiled_view<!m, array<i32: 64, 256>, array<i32: 0, 1>, "zero">

// Where tcgen05 may not be used, each block has all of B.
// CHECK-LABEL: func.func @pairs
// CHECK: "nv_tileaa.tiled_load"{{.*}}in_all_ctas{{.*}} -> (tensor<64x256xf16>
// CHECK-NOT: blocks = 2
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 2 : i32} {
  func.func @pairs(%p: !p, %i: i32) attributes {nv_tileaa.kernel} {
    %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
    %av = "nv_tileaa.block_tile"(%m) : (!m) -> !a
    %bv = "nv_tileaa.block_tile"(%m) : (!m) -> !b
    %zero = arith.constant dense<0.0> : tensor<256x256xf32>
    %none = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r = scf.for %k = %none to %i step %one iter_args(%acc = %zero) -> (tensor<256x256xf32>) : i32 {
      %a:2 = "nv_tileaa.tiled_load"(%av, %i, %k) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!a, i32, i32) -> (tensor<256x64xf16>, !tok)
      %b:2 = "nv_tileaa.tiled_load"(%bv, %k, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!b, i32, i32) -> (tensor<64x256xf16>, !tok)
      %d = "nv_tileaa.dot"(%a#0, %b#0, %acc) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<256x64xf16>, tensor<64x256xf16>, tensor<256x256xf32>) -> tensor<256x256xf32>
      scf.yield %d : tensor<256x256xf32>
    }
    return
  }
}

// RUN: tilec opt -p tileas-plan-cta --gpu-name sm_80

!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!a = !nv_tileaa.tiled_view<!m, array<i32: 256, 64>, array<i32: 0, 1>, "zero">
!b = !nv_tileaa.tiled_view<!m, array<i32: 64, 256>, array<i32: 0, 1>, "zero">
!c = !nv_tileaa.tiled_view<!m, array<i32: 256, 256>, array<i32: 0, 1>, "">

// Sums of 256 x 256 fill all registers, and there are no clusters: one block makes the upper half,
// then the lower one. What it does once, it does in the first turn.
// CHECK-LABEL: func.func @halves
// CHECK-SAME: nv_tileas.num_ctas = 1 : i32
// CHECK: "nv_tileaa.make_memref"
// CHECK: scf.for %[[TURN:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i32
// CHECK-NOT: cta_rank
// CHECK: "nv_tileaa.tiled_load"{{.*}} -> (tensor<128x64xf16>
// CHECK: "nv_tileaa.tiled_load"{{.*}} -> (tensor<64x256xf16>
// CHECK: "nv_tileaa.dot"{{.*}} -> tensor<128x256xf32>
// CHECK: "nv_tileaa.tiled_store"{{.*}}tensor<128x256xf16>
// CHECK: arith.cmpi eq, %[[TURN]]
// CHECK: scf.if
// CHECK: "nv_tileaa.print"
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 0 : i32} {
  func.func @halves(%p: !p, %i: i32) attributes {nv_tileaa.kernel} {
    %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
    %av = "nv_tileaa.block_tile"(%m) : (!m) -> !a
    %bv = "nv_tileaa.block_tile"(%m) : (!m) -> !b
    %cv = "nv_tileaa.block_tile"(%m) : (!m) -> !c
    %zero = arith.constant dense<0.0> : tensor<256x256xf32>
    %a:2 = "nv_tileaa.tiled_load"(%av, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!a, i32, i32) -> (tensor<256x64xf16>, !tok)
    %b:2 = "nv_tileaa.tiled_load"(%bv, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!b, i32, i32) -> (tensor<64x256xf16>, !tok)
    %d = "nv_tileaa.dot"(%a#0, %b#0, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<256x64xf16>, tensor<64x256xf16>, tensor<256x256xf32>) -> tensor<256x256xf32>
    %h = "nv_tileaa.fp_to_fp"(%d) : (tensor<256x256xf32>) -> tensor<256x256xf16>
    %t = "nv_tileaa.tiled_store"(%cv, %h, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} : (!c, tensor<256x256xf16>, i32, i32) -> !tok
    %said = "nv_tileaa.print"(%i) {format = "once %d\0A", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (i32) -> !tok
    return
  }
}
// -----

!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!b = !nv_tileaa.tiled_view<!m, array<i32: 64, 256>, array<i32: 0, 1>, "zero">
!c = !nv_tileaa.tiled_view<!m, array<i32: 256, 256>, array<i32: 0, 1>, "">

// The store waits for a load of what all turns read: a later one would read what it wrote.
// CHECK-LABEL: func.func @ordered
// CHECK-NOT: scf.for
// CHECK: "nv_tileaa.dot"{{.*}} -> tensor<256x256xf32>
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 0 : i32} {
  func.func @ordered(%p: !p, %i: i32, %a: tensor<256x64xf16>) attributes {nv_tileaa.kernel} {
    %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
    %bv = "nv_tileaa.block_tile"(%m) : (!m) -> !b
    %cv = "nv_tileaa.block_tile"(%m) : (!m) -> !c
    %zero = arith.constant dense<0.0> : tensor<256x256xf32>
    %b:2 = "nv_tileaa.tiled_load"(%bv, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!b, i32, i32) -> (tensor<64x256xf16>, !tok)
    %d = "nv_tileaa.dot"(%a, %b#0, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<256x64xf16>, tensor<64x256xf16>, tensor<256x256xf32>) -> tensor<256x256xf32>
    %h = "nv_tileaa.fp_to_fp"(%d) : (tensor<256x256xf32>) -> tensor<256x256xf16>
    %t = "nv_tileaa.tiled_store"(%cv, %h, %i, %i, %b#1) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!c, tensor<256x256xf16>, i32, i32, !tok) -> !tok
    return
  }
}

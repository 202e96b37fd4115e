// RUN: tilec opt -p tileas-plan-cta --gpu-name sm_120

!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!a = !nv_tileaa.tiled_view<!m, array<i32: 256, 64>, array<i32: 0, 1>, "zero">
!b = !nv_tileaa.tiled_view<!m, array<i32: 64, 256>, array<i32: 0, 1>, "zero">
!c = !nv_tileaa.tiled_view<!m, array<i32: 256, 256>, array<i32: 0, 1>, "">

// Sums of 256 x 256 are too many for one block. Blocks copy nothing to one another here, so that
// each has a square of them: half of the rows by the first bit of its rank, of the columns by the
// second.
// CHECK-LABEL: func.func @squares
// CHECK-SAME: nv_tileas.num_ctas = 4 : i32
// CHECK-NOT: in_all_ctas
// CHECK-DAG: "nv_tileaa.tiled_load"{{.*}} -> (tensor<128x64xf16>
// CHECK-DAG: "nv_tileaa.tiled_load"{{.*}} -> (tensor<64x128xf16>
// CHECK: "nv_tileaa.dot"{{.*}} -> tensor<128x128xf32>
// CHECK: "nv_tileaa.tiled_store"{{.*}}tensor<128x128xf16>
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 0 : i32} {
  func.func @squares(%p: !p, %i: i32) attributes {nv_tileaa.kernel} {
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
    return
  }
}
// -----
// What is longer is cut first: columns here.
// CHECK-LABEL: func.func @columns
// CHECK-SAME: nv_tileas.num_ctas = 2 : i32
// CHECK: "nv_tileaa.dot"{{.*}} -> tensor<128x128xf32>
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 0 : i32} {
  func.func @columns() attributes {nv_tileaa.kernel} {
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %a = arith.constant dense<1.0> : tensor<128x64xf16>
    %b = arith.constant dense<1.0> : tensor<64x256xf16>
    %d = "nv_tileaa.dot"(%a, %b, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<128x64xf16>, tensor<64x256xf16>, tensor<128x256xf32>) -> tensor<128x256xf32>
    return
  }
}
// -----
// Bytes are multiplied in less time than smaller tiles of them are loaded.
// CHECK-LABEL: func.func @bytes
// CHECK-SAME: nv_tileas.num_ctas = 1 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 0 : i32} {
  func.func @bytes() attributes {nv_tileaa.kernel} {
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %a = arith.constant dense<1.0> : tensor<128x128xf8E4M3FN>
    %b = arith.constant dense<1.0> : tensor<128x256xf8E4M3FN>
    %d = "nv_tileaa.dot"(%a, %b, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<128x128xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<128x256xf32>) -> tensor<128x256xf32>
    return
  }
}
// -----
// But sums that threads cannot hold beside anything else are cut, of bytes too.
// CHECK-LABEL: func.func @many_sums_of_bytes
// CHECK-SAME: nv_tileas.num_ctas = 2 : i32
// CHECK: "nv_tileaa.dot"{{.*}} -> tensor<128x256xf32>
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 0 : i32} {
  func.func @many_sums_of_bytes() attributes {nv_tileaa.kernel} {
    %zero = arith.constant dense<0.0> : tensor<256x256xf32>
    %a = arith.constant dense<1.0> : tensor<256x128xf8E4M3FN>
    %b = arith.constant dense<1.0> : tensor<128x256xf8E4M3FN>
    %d = "nv_tileaa.dot"(%a, %b, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<256x128xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<256x256xf32>) -> tensor<256x256xf32>
    return
  }
}

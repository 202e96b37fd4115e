// RUN: tilec opt -p tileas-plan-cta --gpu-name sm_90

!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f16, 1 : i32>
!m = !nv_tileaa.memref<f16, array<i64: 512, 512>, array<i64: 512, 1>>
!a = !nv_tileaa.tiled_view<!m, array<i32: 256, 64>, array<i32: 0, 1>, "zero">
!b = !nv_tileaa.tiled_view<!m, array<i32: 64, 256>, array<i32: 0, 1>, "zero">
!c = !nv_tileaa.tiled_view<!m, array<i32: 256, 256>, array<i32: 0, 1>, "">

// Sums of 256 x 256 are too many for one block: two have half of the rows each, and B whole.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: nv_tileas.num_ctas = 2 : i32
// CHECK: %[[RANK:.*]] = "nv_tileas.cta_rank"
// CHECK: %[[TWICE:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// CHECK: %[[PLACE:.*]] = arith.addi %[[TWICE]], %[[RANK]] : i32
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult
// CHECK: %[[MINE:.*]] = arith.select %[[INSIDE]], %[[PLACE]]
// CHECK: "nv_tileaa.tiled_load"(%{{.*}}, %[[MINE]], %{{.*}}) {{.*}} -> (tensor<128x64xf16>
// CHECK: "nv_tileaa.tiled_load"{{.*}}in_all_ctas{{.*}} -> (tensor<64x256xf16>
// CHECK: "nv_tileaa.dot"{{.*}} -> tensor<128x256xf32>
// CHECK: "nv_tileaa.tiled_store"{{.*}}tensor<128x256xf16>
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 0 : i32} {
  func.func @rows(%p: !p, %i: i32) attributes {nv_tileaa.kernel} {
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
// What one block is large enough for stays in one.
// CHECK-LABEL: func.func @small
// CHECK-SAME: nv_tileas.num_ctas = 1 : i32
// CHECK-NOT: cta_rank
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 0 : i32} {
  func.func @small(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) attributes {nv_tileaa.kernel} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = "nv_tileaa.dot"(%a, %b, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return
  }
}
// -----
// Sums along rows and along columns: neither can be cut.
// CHECK-LABEL: func.func @both_sums
// CHECK-SAME: nv_tileas.num_ctas = 1 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 2 : i32} {
  func.func @both_sums(%a: tensor<128x64xf16>, %b: tensor<64x64xf16>) attributes {nv_tileaa.kernel} {
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %d = "nv_tileaa.dot"(%a, %b, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<128x64xf16>, tensor<64x64xf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
    %s = "nv_tileaa.reduce"(%d) ({
    ^bb0(%x: f32, %y: f32):
      %t = arith.addf %x, %y : f32
      "nv_tileaa.yield"(%t) : (f32) -> ()
    }) {axis = 0 : i32, identities = [0.0 : f32]} : (tensor<128x64xf32>) -> tensor<64xf32>
    %u = "nv_tileaa.reduce"(%d) ({
    ^bb0(%x: f32, %y: f32):
      %t = arith.addf %x, %y : f32
      "nv_tileaa.yield"(%t) : (f32) -> ()
    }) {axis = 1 : i32, identities = [0.0 : f32]} : (tensor<128x64xf32>) -> tensor<128xf32>
    return
  }
}
// -----
// Two sums of 32 x 1024 would fill the registers of a block: four blocks have 256 columns each, as
// the rows are added up.
// CHECK-LABEL: func.func @carried
// CHECK-SAME: nv_tileas.num_ctas = 4 : i32
// CHECK: "nv_tileas.cta_rank"
// CHECK: scf.for {{.*}} -> (tensor<32x256xf32>, tensor<32x256xf32>)
// CHECK: "nv_tileaa.reduce"
// CHECK: (tensor<32x256xf32>) -> tensor<256xf32>
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 0 : i32} {
  func.func @carried(%n: i32, %x: f32) attributes {nv_tileaa.kernel} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<32x1024xf32>
    %s = "nv_tileaa.splat"(%x) : (f32) -> tensor<32x1024xf32>
    %r:2 = scf.for %i = %zero to %n step %one iter_args(%u = %none, %v = %none) -> (tensor<32x1024xf32>, tensor<32x1024xf32>) : i32 {
      %p = arith.addf %u, %s : tensor<32x1024xf32>
      %q = arith.mulf %v, %s : tensor<32x1024xf32>
      scf.yield %p, %q : tensor<32x1024xf32>, tensor<32x1024xf32>
    }
    %d = arith.addf %r#0, %r#1 : tensor<32x1024xf32>
    %t = "nv_tileaa.reduce"(%d) ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      "nv_tileaa.yield"(%c) : (f32) -> ()
    }) {axis = 0 : i32, identities = [0.0 : f32]} : (tensor<32x1024xf32>) -> tensor<1024xf32>
    return
  }
}
// -----
// One sum of that size fits.
// CHECK-LABEL: func.func @carried_by_one
// CHECK-SAME: nv_tileas.num_ctas = 1 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 0 : i32} {
  func.func @carried_by_one(%n: i32, %x: f32) attributes {nv_tileaa.kernel} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<32x1024xf32>
    %s = "nv_tileaa.splat"(%x) : (f32) -> tensor<32x1024xf32>
    %r = scf.for %i = %zero to %n step %one iter_args(%u = %none) -> (tensor<32x1024xf32>) : i32 {
      %p = arith.addf %u, %s : tensor<32x1024xf32>
      scf.yield %p : tensor<32x1024xf32>
    }
    return
  }
}
// -----
// Added up along both axes: no cut is possible.
// CHECK-LABEL: func.func @carried_and_summed
// CHECK-SAME: nv_tileas.num_ctas = 1 : i32
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 2 : i32} {
  func.func @carried_and_summed(%n: i32, %x: f32) attributes {nv_tileaa.kernel} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<64xf32>
    %s = "nv_tileaa.splat"(%x) : (f32) -> tensor<64xf32>
    %r = scf.for %i = %zero to %n step %one iter_args(%u = %none) -> (tensor<64xf32>) : i32 {
      %p = arith.addf %u, %s : tensor<64xf32>
      scf.yield %p : tensor<64xf32>
    }
    %t = "nv_tileaa.reduce"(%r) ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      "nv_tileaa.yield"(%c) : (f32) -> ()
    }) {axis = 0 : i32, identities = [0.0 : f32]} : (tensor<64xf32>) -> f32
    return
  }
}
// -----
// CHECK: error: 'func.func' op asks for a cluster of 3 blocks, which is no power of two
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 3 : i32} {
  func.func @three() attributes {nv_tileaa.kernel} {
    return
  }
}

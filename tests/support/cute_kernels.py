"""Kernels written with cute, as MLIR text."""

from __future__ import annotations

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"

#: C = A B^T for A (32, K) and B (16, K), both row-major f16, C (32, 16) f32: one block of 2 x 2
#: warps. Threads copy tiles of 16 along K into padded shared memory, and each warp multiplies its
#: part with `mma.sync`.
GEMM = """
!pa = !cute.ptr<f16, "gmem", 16 : i64>
!pc = !cute.ptr<f32, "gmem", 16 : i64>
!ga = !cute.memref<f16, "gmem", "(32,16):(K,1)">
!gb = !cute.memref<f16, "gmem", "(16,16):(K,1)">
!gc = !cute.memref<f32, "gmem", "(32,16):(16,1)">
!sa = !cute.memref<f16, "smem", "(32,16):(24,1)">
!sb = !cute.memref<f16, "smem", "(16,16):(24,1)">
!la = !cute.layout<"(32,16):(K,1)">
!lb = !cute.layout<"(16,16):(K,1)">
!lc = !cute.layout<"(32,16):(16,1)">
!ta = !cute.layout<"(32,4):(4,1)">
!tb = !cute.layout<"(16,8):(8,1)">
!mma = !cute.tiled_mma<"MMA", "(2,2,1):(1,2,4)", "(32,16,16)">
!atom = !cute_nvgpu.atom<"MMA">
!own_ga = !cute.memref<f16, "gmem", "(1,4):(0,4)">
!own_sa = !cute.memref<f16, "smem", "(1,4):(0,4)">
!own_gb = !cute.memref<f16, "gmem", "(1,2):(0,8)">
!own_sb = !cute.memref<f16, "smem", "(1,2):(0,8)">
!frag_a = !cute.memref<f16, "smem", "((2,2,2),1,1):((1,192,8),0,0)">
!frag_b = !cute.memref<f16, "smem", "((2,2),1,1):((1,8),0,0)">
!frag_c = !cute.memref<f32, "gmem", "((2,2),1,1):((1,128),0,0)">
gpu.module @m {
  func.func @gemm(%a: !pa, %b: !pa, %c: !pc, %n: i32) attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = arith.constant 0 : i32
    %step = arith.constant 16 : i32
    %none = arith.constant dense<0.0> : vector<4xf32>
    %la = "cute.static"() : () -> !la
    %lb = "cute.static"() : () -> !lb
    %lc = "cute.static"() : () -> !lc
    %ta = "cute.static"() : () -> !ta
    %tb = "cute.static"() : () -> !tb
    %atom = "cute.make_atom"() : () -> !atom
    %mma = "cute.make_tiled_mma"(%atom) : (!atom) -> !mma
    %sa = "cute.memref_alloc_smem"() : () -> !sa
    %sb = "cute.memref_alloc_smem"() : () -> !sb
    %osa = "cute.local_partition"(%sa, %ta, %t) : (!sa, !ta, i32) -> !own_sa
    %osb = "cute.local_partition"(%sb, %tb, %t) : (!sb, !tb, i32) -> !own_sb
    %fa = "cute.tiled_mma_partition"(%mma, %sa, %t) {operand = "A"} : (!mma, !sa, i32) -> !frag_a
    %fb = "cute.tiled_mma_partition"(%mma, %sb, %t) {operand = "B"} : (!mma, !sb, i32) -> !frag_b
    %sum = scf.for %k = %zero to %n step %step iter_args(%acc = %none) -> vector<4xf32> : i32 {
      %pa = "cute.add_offset"(%a, %k) : (!pa, i32) -> !pa
      %pb = "cute.add_offset"(%b, %k) : (!pa, i32) -> !pa
      %ga = "cute.make_view"(%pa, %la) : (!pa, !la) -> !ga
      %gb = "cute.make_view"(%pb, %lb) : (!pa, !lb) -> !gb
      %oga = "cute.local_partition"(%ga, %ta, %t) : (!ga, !ta, i32) -> !own_ga
      %ogb = "cute.local_partition"(%gb, %tb, %t) : (!gb, !tb, i32) -> !own_gb
      %va = "cute.memref_load_vec"(%oga) : (!own_ga) -> vector<4xf16>
      %vb = "cute.memref_load_vec"(%ogb) : (!own_gb) -> vector<2xf16>
      nvvm.barrier
      "cute.memref_store_vec"(%va, %osa) : (vector<4xf16>, !own_sa) -> ()
      "cute.memref_store_vec"(%vb, %osb) : (vector<2xf16>, !own_sb) -> ()
      nvvm.barrier
      %xa = "cute.memref_load_vec"(%fa) : (!frag_a) -> vector<8xf16>
      %xb = "cute.memref_load_vec"(%fb) : (!frag_b) -> vector<4xf16>
      %new = "cute_nvgpu.arch_mma_sm80"(%xa, %xb, %acc) {atom = "MMA"} : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
      scf.yield %new : vector<4xf32>
    }
    %gc = "cute.make_view"(%c, %lc) : (!pc, !lc) -> !gc
    %fc = "cute.tiled_mma_partition"(%mma, %gc, %t) {operand = "C"} : (!mma, !gc, i32) -> !frag_c
    "cute.memref_store_vec"(%sum, %fc) : (vector<4xf32>, !frag_c) -> ()
    return
  }
}
""".replace("MMA", MMA)  # noqa: E501

#: y[i, j] = x[j, i] of 32 x 32 f32 through swizzled shared memory, for 128 threads.
TRANSPOSE = """
!p = !cute.ptr<f32, "gmem", 16 : i64>
!g = !cute.memref<f32, "gmem", "(32,32):(32,1)">
!s = !cute.memref<f32, "smem", "S<5,0,5> o 0 o (32,32):(32,1)">
!l = !cute.layout<"(32,32):(32,1)">
gpu.module @m {
  func.func @transpose(%x: !p, %y: !p) attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %eight = arith.constant 8 : index
    %four = arith.constant 4 : i32
    %lanes = arith.constant 32 : i32
    %l = "cute.static"() : () -> !l
    %gx = "cute.make_view"(%x, %l) : (!p, !l) -> !g
    %gy = "cute.make_view"(%y, %l) : (!p, !l) -> !g
    %s = "cute.memref_alloc_smem"() : () -> !s
    %lane = arith.remui %t, %lanes : i32
    %warp = arith.divui %t, %lanes : i32
    scf.for %i = %zero to %eight step %one {
      %n = arith.index_cast %i : index to i32
      %m = arith.muli %n, %four : i32
      %row = arith.addi %m, %warp : i32
      %v = "cute.memref_load"(%gx, %row, %lane) : (!g, i32, i32) -> f32
      "cute.memref_store"(%v, %s, %row, %lane) : (f32, !s, i32, i32) -> ()
    }
    nvvm.barrier
    scf.for %i = %zero to %eight step %one {
      %n = arith.index_cast %i : index to i32
      %m = arith.muli %n, %four : i32
      %row = arith.addi %m, %warp : i32
      %v = "cute.memref_load"(%s, %lane, %row) : (!s, i32, i32) -> f32
      "cute.memref_store"(%v, %gy, %row, %lane) : (f32, !g, i32, i32) -> ()
    }
    return
  }
}
"""

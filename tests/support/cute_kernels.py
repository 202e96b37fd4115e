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

#: The same product with instructions of sm_80: `cp.async` copies 8 and 4 bytes a thread into padded
#: shared memory, `ldmatrix` reads the fragments of both operands.
STAGED = """
!pa = !cute.ptr<f16, "gmem", 16 : i64>
!ps = !cute.ptr<f16, "smem", 16 : i64>
!pc = !cute.ptr<f32, "gmem", 16 : i64>
!gc = !cute.memref<f32, "gmem", "(32,16):(16,1)">
!sa = !cute.memref<f16, "smem", "(32,16):(24,1)">
!sb = !cute.memref<f16, "smem", "(16,16):(24,1)">
!g4 = !cute.memref<f16, "gmem", "4:1">
!s4 = !cute.memref<f16, "smem", "4:1">
!g2 = !cute.memref<f16, "gmem", "2:1">
!s2 = !cute.memref<f16, "smem", "2:1">
!lc = !cute.layout<"(32,16):(16,1)">
!l4 = !cute.layout<"4:1">
!l2 = !cute.layout<"2:1">
!mma = !cute.tiled_mma<"MMA", "(2,2,1):(1,2,4)", "(32,16,16)">
!atom = !cute_nvgpu.atom<"MMA">
!frag_c = !cute.memref<f32, "gmem", "((2,2),1,1):((1,128),0,0)">
gpu.module @m {
  func.func @gemm(%a: !pa, %b: !pa, %c: !pc, %n: i32) attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = arith.constant 0 : i32
    %two = arith.constant 2 : i32
    %four = arith.constant 4 : i32
    %eight = arith.constant 8 : i32
    %sixteen = arith.constant 16 : i32
    %row_of_smem = arith.constant 24 : i32
    %lanes = arith.constant 32 : i32
    %none = arith.constant dense<0.0> : vector<4xf32>
    %lc = "cute.static"() : () -> !lc
    %l4 = "cute.static"() : () -> !l4
    %l2 = "cute.static"() : () -> !l2
    %atom = "cute.make_atom"() : () -> !atom
    %mma = "cute.make_tiled_mma"(%atom) : (!atom) -> !mma
    %sa = "cute.memref_alloc_smem"() : () -> !sa
    %sb = "cute.memref_alloc_smem"() : () -> !sb
    %qa = "cute.get_iter"(%sa) : (!sa) -> !ps
    %qb = "cute.get_iter"(%sb) : (!sb) -> !ps

    %ra = arith.divui %t, %four : i32
    %ta = arith.remui %t, %four : i32
    %ca = arith.muli %ta, %four : i32
    %ga0 = arith.muli %ra, %n : i32
    %ga = arith.addi %ga0, %ca : i32
    %wa0 = arith.muli %ra, %row_of_smem : i32
    %wa = arith.addi %wa0, %ca : i32
    %rb = arith.divui %t, %eight : i32
    %tb = arith.remui %t, %eight : i32
    %cb = arith.muli %tb, %two : i32
    %gb0 = arith.muli %rb, %n : i32
    %gb = arith.addi %gb0, %cb : i32
    %wb0 = arith.muli %rb, %row_of_smem : i32
    %wb = arith.addi %wb0, %cb : i32

    %lane = arith.remui %t, %lanes : i32
    %warp = arith.divui %t, %lanes : i32
    %wm = arith.remui %warp, %two : i32
    %wn = arith.divui %warp, %two : i32
    %ma0 = arith.muli %wm, %sixteen : i32
    %ma1 = arith.remui %lane, %sixteen : i32
    %ma2 = arith.addi %ma0, %ma1 : i32
    %ma3 = arith.muli %ma2, %row_of_smem : i32
    %ka0 = arith.divui %lane, %sixteen : i32
    %ka = arith.muli %ka0, %eight : i32
    %fa = arith.addi %ma3, %ka : i32
    %nb0 = arith.muli %wn, %eight : i32
    %nb1 = arith.remui %lane, %eight : i32
    %nb2 = arith.addi %nb0, %nb1 : i32
    %nb3 = arith.muli %nb2, %row_of_smem : i32
    %kb0 = arith.divui %lane, %eight : i32
    %kb1 = arith.remui %kb0, %two : i32
    %kb = arith.muli %kb1, %eight : i32
    %fb = arith.addi %nb3, %kb : i32
    %pfa = "cute.add_offset"(%qa, %fa) : (!ps, i32) -> !ps
    %pfb = "cute.add_offset"(%qb, %fb) : (!ps, i32) -> !ps
    %pwa = "cute.add_offset"(%qa, %wa) : (!ps, i32) -> !ps
    %pwb = "cute.add_offset"(%qb, %wb) : (!ps, i32) -> !ps
    %da = "cute.make_view"(%pwa, %l4) : (!ps, !l4) -> !s4
    %db = "cute.make_view"(%pwb, %l2) : (!ps, !l2) -> !s2

    %sum = scf.for %k = %zero to %n step %sixteen iter_args(%acc = %none) -> vector<4xf32> : i32 {
      %oa = arith.addi %ga, %k : i32
      %ob = arith.addi %gb, %k : i32
      %pga = "cute.add_offset"(%a, %oa) : (!pa, i32) -> !pa
      %pgb = "cute.add_offset"(%b, %ob) : (!pa, i32) -> !pa
      %va = "cute.make_view"(%pga, %l4) : (!pa, !l4) -> !g4
      %vb = "cute.make_view"(%pgb, %l2) : (!pa, !l2) -> !g2
      nvvm.barrier
      "cute_nvgpu.arch_copy_sm80_cp_async"(%da, %va) {atom = "cp.async.ca.shared.global"} : (!s4, !g4) -> ()
      "cute_nvgpu.arch_copy_sm80_cp_async"(%db, %vb) {atom = "cp.async.ca.shared.global"} : (!s2, !g2) -> ()
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 0
      nvvm.barrier
      %xa = "cute_nvgpu.arch_copy_ldsm"(%pfa) {atom = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"} : (!ps) -> vector<8xf16>
      %xb = "cute_nvgpu.arch_copy_ldsm"(%pfb) {atom = "ldmatrix.sync.aligned.m8n8.x2.shared.b16"} : (!ps) -> vector<4xf16>
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

#: 32 lanes store four matrices of x with `stmatrix`; tensor maps copy them to y and add them to z;
#: w[t] = the number of the warp's first thread, from a value that lanes have alike.
MOVES = """
!px = !cute.ptr<f16, "gmem", 16 : i64>
!ps = !cute.ptr<f16, "smem", 128 : i64>
!s = !cute.memref<f16, "smem", "(32,8):(8,1)">
!g8 = !cute.memref<f16, "gmem", "8:1">
!l8 = !cute.layout<"8:1">
!r8 = !cute.memref<f16, "rmem", "8:1">
!map = !cute_nvgpu.tma_descriptor_tiled<"f16", "32x8", "none">
gpu.module @m {
  func.func @moves(%x: !px, %y: !map, %z: !map, %w: !llvm.ptr<1>) attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i0 = arith.constant 0 : i32
    %eight = arith.constant 8 : i32
    %l8 = "cute.static"() : () -> !l8
    %s = "cute.memref_alloc_smem"() : () -> !s
    %r = "cute.memref_alloca"() : () -> !r8
    %at = arith.muli %t, %eight : i32
    %px = "cute.add_offset"(%x, %at) : (!px, i32) -> !px
    %gx = "cute.make_view"(%px, %l8) : (!px, !l8) -> !g8
    %v = "cute.memref_load_vec"(%gx) : (!g8) -> vector<8xf16>
    "cute.memref_store_vec"(%v, %r) : (vector<8xf16>, !r8) -> ()
    %u = "cute.memref_load_vec"(%r) : (!r8) -> vector<8xf16>
    %q = "cute.get_iter"(%s) : (!s) -> !ps
    %ps = "cute.add_offset"(%q, %at) : (!ps, i32) -> !ps
    "cute_nvgpu.arch_copy_stsm"(%u, %ps) {atom = "stmatrix.sync.aligned.m8n8.x4.shared.b16"}
      : (vector<8xf16>, !ps) -> ()
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.barrier
    %first = arith.cmpi eq, %t, %i0 : i32
    scf.if %first {
      "cute_nvgpu.arch_copy_sm100_tma_store"(%y, %s, %i0, %i0) {atom = "STORE"}
        : (!map, !s, i32, i32) -> ()
      "cute_nvgpu.arch_copy_sm100_tma_reduce"(%z, %s, %i0, %i0) {atom = "REDUCE"}
        : (!map, !s, i32, i32) -> ()
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
    }
    %lead = "cute_nvgpu.arch_make_warp_uniform"(%t) : (i32) -> i32
    %p = llvm.getelementptr %w[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %lead, %p : i32, !llvm.ptr<1>
    return
  }
}
""".replace("STORE", "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group").replace(
    "REDUCE", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
)

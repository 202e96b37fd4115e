"""Kernels written with cutlass and cute, as MLIR text."""

from __future__ import annotations

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"

#: C = A B^T for A (M, K) and B (N, K), row-major f16, C (M, N) f32, in tiles of 32 x 16 x 16. Warps
#: 0 to 3 multiply, warp 4 copies: a persistent kernel whose pipe goes on from tile to tile.
#:
#: STAGES, K, N are numbers; KIND is the scheduler's, PARAMS makes its %params of %record, FIXUP
#: takes the sum %sum of a part and gives %total, EPILOGUE is whether the part writes it.
GEMM = """
!pa = !cute.ptr<f16, "gmem", 16 : i64>
!ps = !cute.ptr<f16, "smem", 16 : i64>
!pc = !cute.ptr<f32, "gmem", 16 : i64>
!all_a = !cute.memref<f16, "smem", "(32,16,STAGES):(24,1,768)">
!all_b = !cute.memref<f16, "smem", "(16,16,STAGES):(24,1,384)">
!sa = !cute.memref<f16, "smem", "(32,16):(24,1)">
!sb = !cute.memref<f16, "smem", "(16,16):(24,1)">
!gc = !cute.memref<f32, "gmem", "(32,16):(N,1)">
!la = !cute.layout<"(32,16):(24,1)">
!lb = !cute.layout<"(16,16):(24,1)">
!lc = !cute.layout<"(32,16):(N,1)">
!l16 = !cute.layout<"16:1">
!l8 = !cute.layout<"8:1">
!g16 = !cute.memref<f16, "gmem", "16:1">
!s16 = !cute.memref<f16, "smem", "16:1">
!g8 = !cute.memref<f16, "gmem", "8:1">
!s8 = !cute.memref<f16, "smem", "8:1">
!mma = !cute.tiled_mma<"MMA", "(2,2,1):(1,2,4)", "(32,16,16)">
!atom = !cute_nvgpu.atom<"MMA">
!frag_a = !cute.memref<f16, "smem", "((2,2,2),1,1):((1,192,8),0,0)">
!frag_b = !cute.memref<f16, "smem", "((2,2),1,1):((1,8),0,0)">
!frag_c = !cute.memref<f32, "gmem", "((2,2),1,1):((1,8_N),0,0)">
!pipe = !cutlass.pipeline<STAGES>
!state = !cutlass.pipeline_state<STAGES>
!params = !cutlass.tile_scheduler_params<"KIND">
!info = !cutlass.work_tile_info<"KIND">
gpu.module @m {
  func.func @gemm(%a: !pa, %b: !pa, %c: !pc, %record: !llvm.ptr<1>ARGUMENTS)
      attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 5 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i24 = arith.constant 24 : i32
    %i32 = arith.constant 32 : i32
    %ik = arith.constant K : i32
    %in = arith.constant N : i32
    %stage_a = arith.constant 768 : i32
    %stage_b = arith.constant 384 : i32
    %none = arith.constant dense<0.0> : vector<4xf32>
    %la = "cute.static"() : () -> !la
    %lb = "cute.static"() : () -> !lb
    %lc = "cute.static"() : () -> !lc
    %l16 = "cute.static"() : () -> !l16
    %l8 = "cute.static"() : () -> !l8
    %atom = "cute.make_atom"() : () -> !atom
    %mma = "cute.make_tiled_mma"(%atom) : (!atom) -> !mma
    %sa = "cute.memref_alloc_smem"() : () -> !all_a
    %sb = "cute.memref_alloc_smem"() : () -> !all_b
    %qa = "cute.get_iter"(%sa) : (!all_a) -> !ps
    %qb = "cute.get_iter"(%sb) : (!all_b) -> !ps
    %pipe = "cutlass.pipeline_create"() : () -> !pipe
    "cutlass.pipeline_init"(%pipe) {numStages = STAGES, numProducers = 1, numConsumers = 4,
      participants = array<i32: 4>, consumers = array<i32: 0, 1, 2, 3>} : (!pipe) -> ()
    PARAMS
    %first = "cutlass.tile_scheduler_initial_work_tile_info"(%params) {RASTER}
      : (!params) -> !info
    %s0 = "cutlass.pipeline_state_create"() : () -> !state
    "cutlass.pipeline_switch_by_executor"() ({
      "cutlass.async_exec"() ({
        %lane = arith.remui %t, %i32 : i32
        %row_b = arith.divui %lane, %i2 : i32
        %half = arith.remui %lane, %i2 : i32
        %col_b = arith.muli %half, %i8 : i32
        %end:2 = scf.while (%w = %first, %s = %s0) : (!info, !state) -> (!info, !state) {
          %v = "cutlass.tile_scheduler_work_tile_info_get_value"(%w) {field = "valid"}
            : (!info) -> i32
          %go = arith.cmpi ne, %v, %i0 : i32
          scf.condition(%go) %w, %s : !info, !state
        } do {
        ^bb0(%w: !info, %s: !state):
          %m, %n, %l = "cutlass.tile_scheduler_work_tile_info_to_cta_coord"(%w)
            : (!info) -> (i32, i32, i32)
          %k0 = "cutlass.tile_scheduler_get_work_k_tile_start"(%w) : (!info) -> i32
          %kc = "cutlass.tile_scheduler_get_work_k_tile_count"(%w) : (!info) -> i32
          %k1 = arith.addi %k0, %kc : i32
          %ra0 = arith.muli %m, %i32 : i32
          %ra = arith.addi %ra0, %lane : i32
          %oa = arith.muli %ra, %ik : i32
          %rb0 = arith.muli %n, %i16 : i32
          %rb = arith.addi %rb0, %row_b : i32
          %ob0 = arith.muli %rb, %ik : i32
          %ob = arith.addi %ob0, %col_b : i32
          %last = scf.for %k = %k0 to %k1 step %i1 iter_args(%cur = %s) -> !state : i32 {
            %next = "cutlass.pipeline_produce"(%pipe, %cur) ({
              %i = "cutlass.pipeline_state_get_index"(%cur) : (!state) -> i32
              %kk = arith.muli %k, %i16 : i32
              %fa = arith.addi %oa, %kk : i32
              %fb = arith.addi %ob, %kk : i32
              %pga = "cute.add_offset"(%a, %fa) : (!pa, i32) -> !pa
              %pgb = "cute.add_offset"(%b, %fb) : (!pa, i32) -> !pa
              %ga = "cute.make_view"(%pga, %l16) : (!pa, !l16) -> !g16
              %gb = "cute.make_view"(%pgb, %l8) : (!pa, !l8) -> !g8
              %va = "cute.memref_load_vec"(%ga) : (!g16) -> vector<16xf16>
              %vb = "cute.memref_load_vec"(%gb) : (!g8) -> vector<8xf16>
              %ta0 = arith.muli %i, %stage_a : i32
              %ta1 = arith.muli %lane, %i24 : i32
              %ta = arith.addi %ta0, %ta1 : i32
              %tb0 = arith.muli %i, %stage_b : i32
              %tb1 = arith.muli %row_b, %i24 : i32
              %tb2 = arith.addi %tb0, %tb1 : i32
              %tb = arith.addi %tb2, %col_b : i32
              %psa = "cute.add_offset"(%qa, %ta) : (!ps, i32) -> !ps
              %psb = "cute.add_offset"(%qb, %tb) : (!ps, i32) -> !ps
              %da = "cute.make_view"(%psa, %l16) : (!ps, !l16) -> !s16
              %db = "cute.make_view"(%psb, %l8) : (!ps, !l8) -> !s8
              "cute.memref_store_vec"(%va, %da) : (vector<16xf16>, !s16) -> ()
              "cute.memref_store_vec"(%vb, %db) : (vector<8xf16>, !s8) -> ()
            }) : (!pipe, !state) -> !state
            scf.yield %next : !state
          }
          %next_w, %valid, %round = "cutlass.tile_scheduler_advance_to_next_work"(%params, %w)
            {RASTER} : (!params, !info) -> (!info, i1, i1)
          scf.yield %next_w, %last : !info, !state
        }
        "cutlass.pipeline_producer_tail"(%pipe, %end#1) : (!pipe, !state) -> ()
      }) {mask = 16 : i32} : () -> ()
      "cutlass.async_exec"() ({
        %end:2 = scf.while (%w = %first, %s = %s0) : (!info, !state) -> (!info, !state) {
          %v = "cutlass.tile_scheduler_work_tile_info_get_value"(%w) {field = "valid"}
            : (!info) -> i32
          %go = arith.cmpi ne, %v, %i0 : i32
          scf.condition(%go) %w, %s : !info, !state
        } do {
        ^bb0(%w: !info, %s: !state):
          %m, %n, %l = "cutlass.tile_scheduler_work_tile_info_to_cta_coord"(%w)
            : (!info) -> (i32, i32, i32)
          %k0 = "cutlass.tile_scheduler_get_work_k_tile_start"(%w) : (!info) -> i32
          %kc = "cutlass.tile_scheduler_get_work_k_tile_count"(%w) : (!info) -> i32
          %k1 = arith.addi %k0, %kc : i32
          %part:2 = scf.for %k = %k0 to %k1 step %i1 iter_args(%acc = %none, %cur = %s)
              -> (vector<4xf32>, !state) : i32 {
            %i = "cutlass.pipeline_state_get_index"(%cur) : (!state) -> i32
            %ta = arith.muli %i, %stage_a : i32
            %tb = arith.muli %i, %stage_b : i32
            %psa = "cute.add_offset"(%qa, %ta) : (!ps, i32) -> !ps
            %psb = "cute.add_offset"(%qb, %tb) : (!ps, i32) -> !ps
            %da = "cute.make_view"(%psa, %la) : (!ps, !la) -> !sa
            %db = "cute.make_view"(%psb, %lb) : (!ps, !lb) -> !sb
            %fa = "cute.tiled_mma_partition"(%mma, %da, %t) {operand = "A"}
              : (!mma, !sa, i32) -> !frag_a
            %fb = "cute.tiled_mma_partition"(%mma, %db, %t) {operand = "B"}
              : (!mma, !sb, i32) -> !frag_b
            "cutlass.pipeline_consumer_wait"(%pipe, %cur) : (!pipe, !state) -> ()
            %xa = "cute.memref_load_vec"(%fa) : (!frag_a) -> vector<8xf16>
            %xb = "cute.memref_load_vec"(%fb) : (!frag_b) -> vector<4xf16>
            "cutlass.pipeline_consumer_release"(%pipe, %cur) : (!pipe, !state) -> ()
            %new = "cute_nvgpu.arch_mma_sm80"(%xa, %xb, %acc) {atom = "MMA"}
              : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
            %next = "cutlass.pipeline_state_increment"(%cur) : (!state) -> !state
            scf.yield %new, %next : vector<4xf32>, !state
          }
          FIXUP
          scf.if %writes {
            %rc0 = arith.muli %m, %i32 : i32
            %rc = arith.muli %rc0, %in : i32
            %cc = arith.muli %n, %i16 : i32
            %oc = arith.addi %rc, %cc : i32
            %pc = "cute.add_offset"(%c, %oc) : (!pc, i32) -> !pc
            %gc = "cute.make_view"(%pc, %lc) : (!pc, !lc) -> !gc
            %fc = "cute.tiled_mma_partition"(%mma, %gc, %t) {operand = "C"}
              : (!mma, !gc, i32) -> !frag_c
            "cute.memref_store_vec"(%total, %fc) : (vector<4xf32>, !frag_c) -> ()
          }
          %next_w, %valid, %round = "cutlass.tile_scheduler_advance_to_next_work"(%params, %w)
            {RASTER} : (!params, !info) -> (!info, i1, i1)
          scf.yield %next_w, %part#1 : !info, !state
        }
      }) {mask = 15 : i32} : () -> ()
    }) : () -> ()
    return
  }
}
"""

WHOLE = """%total = arith.addf %part#0, %none : vector<4xf32>
          %writes = arith.cmpi ne, %k0, %k1 : i32"""
SPLIT = """%total = "cutlass.tile_scheduler_fixup"(%params, %w, %part#0, %t)
            {threads = 128, barrier_id = 1} : (!params, !info, vector<4xf32>, i32) -> vector<4xf32>
          %writes = "cutlass.tile_scheduler_compute_epilogue"(%w) : (!info) -> i1"""
#: Parameters from a record in memory.
MADE = '%params = "cutlass.tile_scheduler_make_KIND_params"(%record) : (!llvm.ptr<1>) -> !params'
#: Parameters from numbers, here those of a record, and a workspace.
CREATED = """%given = "cutlass.tile_scheduler_make_dp_params"(%record)
      : (!llvm.ptr<1>) -> !cutlass.tile_scheduler_params<"dp">
    %tm = "cutlass.tile_scheduler_params_get_value"(%given) {field = "num_tiles_m"}
      : (!cutlass.tile_scheduler_params<"dp">) -> i32
    %tn = "cutlass.tile_scheduler_params_get_value"(%given) {field = "num_tiles_n"}
      : (!cutlass.tile_scheduler_params<"dp">) -> i32
    %tk = "cutlass.tile_scheduler_params_get_value"(%given) {field = "num_tiles_k"}
      : (!cutlass.tile_scheduler_params<"dp">) -> i32
    %ctas = "cutlass.tile_scheduler_params_get_value"(%given) {field = "total_ctas"}
      : (!cutlass.tile_scheduler_params<"dp">) -> i32
    %params = "cutlass.tile_scheduler_create_streamk_params"(%tm, %tn, %tk, %i1, %ctas, %store)
      : (i32, i32, i32, i32, i32, !llvm.ptr<1>) -> !params"""


def gemm(kind: str, n: int, k: int, stages: int = 3, raster: str = "") -> str:
    """The kernel for B (n, k); A has as many rows as the schedule says."""
    splits = kind == "streamk"
    text = GEMM.replace("PARAMS", CREATED if splits else MADE)
    text = text.replace("FIXUP", SPLIT if splits else WHOLE)
    text = text.replace("ARGUMENTS", ", %store: !llvm.ptr<1>" if splits else "")
    text = text.replace("8_N", str(8 * n)).replace("(N,1)", f"({n},1)")
    text = text.replace("constant N :", f"constant {n} :").replace(
        "constant K :", f"constant {k} :"
    )
    for name, value in {"STAGES": str(stages), "KIND": kind, "RASTER": raster, "MMA": MMA}.items():
        text = text.replace(name, value)
    return text

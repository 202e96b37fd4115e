"""The persistent product with what sm_90 has: tensor maps fill stages, warpgroups multiply."""

from __future__ import annotations

from support.cutlass_kernels import MADE

WGMMA = "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16"
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
#: Bytes of a stage: 64 x 64 of A and 32 x 64 of B.
STAGE = 64 * 64 * 2 + 32 * 64 * 2

#: C = A B^T for A (M, K) and B (N, K) f16, C (M, N) f32, in tiles of 64 x 32 x 64. Warps 0 to 3
#: multiply, warp 4 copies. Both operands are swizzled by 128 bytes.
_GEMM = """
!map_a = !cute_nvgpu.tma_descriptor_tiled<"f16", "64x64", "128B">
!map_b = !cute_nvgpu.tma_descriptor_tiled<"f16", "32x64", "128B">
!ps = !cute.ptr<f16, "smem", 128 : i64>
!pc = !cute.ptr<f32, "gmem", 16 : i64>
!all_a = !cute.memref<f16, "smem", "S<3,3,3> o 0 o (64,64,STAGES):(64,1,4096)">
!all_b = !cute.memref<f16, "smem", "S<3,3,3> o 0 o (32,64,STAGES):(64,1,2048)">
!sa = !cute.memref<f16, "smem", "S<3,3,3> o 0 o (64,64):(64,1)">
!sb = !cute.memref<f16, "smem", "S<3,3,3> o 0 o (32,64):(64,1)">
!la = !cute.composed_layout<"S<3,3,3> o 0 o (64,64):(64,1)">
!lb = !cute.composed_layout<"S<3,3,3> o 0 o (32,64):(64,1)">
!one = !cute.layout<"1:0">
!ia = !cute_nvgpu.smem_desc_view<!sa, !one>
!ib = !cute_nvgpu.smem_desc_view<!sb, !one>
!desc = !cute_nvgpu.smem_desc<"sm90", "K", "128B">
!gc = !cute.memref<f32, "gmem", "(64,32):(N,1)">
!lc = !cute.layout<"(64,32):(N,1)">
!mma = !cute.tiled_mma<"WGMMA", "(1,1,1):(1,1,1)", "(64,32,16)">
!atom = !cute_nvgpu.atom<"WGMMA">
!frag_c = !cute.memref<f32, "gmem", "((2,2,2,2),1,1):((1,8_N,8,16),0,0)">
!bar = !cute.ptr<i64, "smem", 8 : i64>
!pipe = !cutlass.pipeline<STAGES>
!state = !cutlass.pipeline_state<STAGES>
!params = !cutlass.tile_scheduler_params<"static_persistent">
!info = !cutlass.work_tile_info<"static_persistent">
gpu.module @m {
  func.func @gemm(%ma: !map_a, %mb: !map_b, %c: !pc, %record: !llvm.ptr<1>)
      attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 5 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i32 = arith.constant 32 : i32
    %i64 = arith.constant 64 : i32
    %in = arith.constant N : i32
    %stage_a = arith.constant 4096 : i32
    %stage_b = arith.constant 2048 : i32
    %yes = arith.constant true
    %none = arith.constant dense<0.0> : vector<16xf32>
    %la = "cute.static"() : () -> !la
    %lb = "cute.static"() : () -> !lb
    %lc = "cute.static"() : () -> !lc
    %atom = "cute.make_atom"() : () -> !atom
    %mma = "cute.make_tiled_mma"(%atom) : (!atom) -> !mma
    %sa = "cute.memref_alloc_smem"() : () -> !all_a
    %sb = "cute_nvgpu.arch_alloc_smem"() : () -> !all_b
    %qa = "cute.get_iter"(%sa) : (!all_a) -> !ps
    %qb = "cute.get_iter"(%sb) : (!all_b) -> !ps
    %pipe = "cutlass.pipeline_create"() : () -> !pipe
    "cutlass.pipeline_init"(%pipe) {numStages = STAGES, numProducers = 1, numConsumers = 4,
      participants = array<i32: 4>, consumers = array<i32: 0, 1, 2, 3>} : (!pipe) -> ()
    PARAMS
    %first = "cutlass.tile_scheduler_initial_work_tile_info"(%params) : (!params) -> !info
    %s0 = "cutlass.pipeline_state_create"() : () -> !state
    "cutlass.pipeline_switch_by_executor"() ({
      "cutlass.async_exec"() ({
        %leads = nvvm.elect.sync -> i1
        scf.if %leads {
          "cute_nvgpu.arch_prefetch_tma_desc"(%ma) : (!map_a) -> ()
          "cute_nvgpu.prefetch_tma_desc"(%mb) : (!map_b) -> ()
        }
        %end:2 = scf.while (%w = %first, %s = %s0) : (!info, !state) -> (!info, !state) {
          %v = "cutlass.tile_scheduler_work_tile_info_get_value"(%w) {field = "valid"}
            : (!info) -> i32
          %go = arith.cmpi ne, %v, %i0 : i32
          scf.condition(%go) %w, %s : !info, !state
        } do {
        ^bb0(%w: !info, %s: !state):
          %m, %n, %l = "cutlass.tile_scheduler_work_tile_info_to_cta_coord"(%w)
            : (!info) -> (i32, i32, i32)
          %k1 = "cutlass.tile_scheduler_get_work_k_tile_count"(%w) : (!info) -> i32
          %row_a = arith.muli %m, %i64 : i32
          %row_b = arith.muli %n, %i32 : i32
          %last = scf.for %k = %i0 to %k1 step %i1 iter_args(%cur = %s) -> !state : i32 {
            %next = "cutlass.pipeline_produce"(%pipe, %cur) ({
              %i = "cutlass.pipeline_state_get_index"(%cur) : (!state) -> i32
              %b = "cutlass.pipeline_get_producer_barrier"(%pipe, %cur) : (!pipe, !state) -> !bar
              %ta = arith.muli %i, %stage_a : i32
              %tb = arith.muli %i, %stage_b : i32
              %psa = "cute.add_offset"(%qa, %ta) : (!ps, i32) -> !ps
              %psb = "cute.add_offset"(%qb, %tb) : (!ps, i32) -> !ps
              %col = arith.muli %k, %i64 : i32
              %one = nvvm.elect.sync -> i1
              scf.if %one {
                "cute_nvgpu.arch_copy_sm100_tma_load"(%psa, %ma, %b, %col, %row_a)
                  {atom = "LOAD"} : (!ps, !map_a, !bar, i32, i32) -> ()
                "cute_nvgpu.arch_copy_sm100_tma_load"(%psb, %mb, %b, %col, %row_b)
                  {atom = "LOAD"} : (!ps, !map_b, !bar, i32, i32) -> ()
              }
            }) {transaction_bytes = BYTES} : (!pipe, !state) -> !state
            scf.yield %next : !state
          }
          %next_w, %valid, %round = "cutlass.tile_scheduler_advance_to_next_work"(%params, %w)
            : (!params, !info) -> (!info, i1, i1)
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
          %k1 = "cutlass.tile_scheduler_get_work_k_tile_count"(%w) : (!info) -> i32
          %part:2 = scf.for %k = %i0 to %k1 step %i1 iter_args(%acc = %none, %cur = %s)
              -> (vector<16xf32>, !state) : i32 {
            %i = "cutlass.pipeline_state_get_index"(%cur) : (!state) -> i32
            %ta = arith.muli %i, %stage_a : i32
            %tb = arith.muli %i, %stage_b : i32
            %psa = "cute.add_offset"(%qa, %ta) : (!ps, i32) -> !ps
            %psb = "cute.add_offset"(%qb, %tb) : (!ps, i32) -> !ps
            %da = "cute.make_view"(%psa, %la) : (!ps, !la) -> !sa
            %db = "cute.make_view"(%psb, %lb) : (!ps, !lb) -> !sb
            %ia = "cute.make_desc_iter"(%da) : (!sa) -> !ia
            %ib = "cute.make_desc_iter"(%db) : (!sb) -> !ib
            %more = arith.cmpi ne, %k, %i0 : i32
            "cutlass.pipeline_consumer_wait"(%pipe, %cur) : (!pipe, !state) -> ()
            STEPS
            "cutlass.pipeline_consumer_release"(%pipe, %cur) : (!pipe, !state) -> ()
            %next = "cutlass.pipeline_state_increment"(%cur) : (!state) -> !state
            scf.yield %acc4, %next : vector<16xf32>, !state
          }
          %row = arith.muli %m, %i64 : i32
          %rc = arith.muli %row, %in : i32
          %cc = arith.muli %n, %i32 : i32
          %oc = arith.addi %rc, %cc : i32
          %pc = "cute.add_offset"(%c, %oc) : (!pc, i32) -> !pc
          %gc = "cute.make_view"(%pc, %lc) : (!pc, !lc) -> !gc
          %fc = "cute.tiled_mma_partition"(%mma, %gc, %t) {operand = "C"}
            : (!mma, !gc, i32) -> !frag_c
          "cute.memref_store_vec"(%part#0, %fc) : (vector<16xf32>, !frag_c) -> ()
          %next_w, %valid, %round = "cutlass.tile_scheduler_advance_to_next_work"(%params, %w)
            : (!params, !info) -> (!info, i1, i1)
          scf.yield %next_w, %part#1 : !info, !state
        }
      }) {mask = 15 : i32} : () -> ()
    }) : () -> ()
    return
  }
}
"""
_WAIT = """%acc4 = "cute_nvgpu.arch_mma_sm90_wait"(%acc3f) {pending = 0 : i32}
              : (vector<16xf32>) -> vector<16xf32>
            """
_STEP = """%a{at} = "cute.deref_desc_iter"(%ia) {{k = {k}}} : (!ia) -> !desc
            %b{at} = "cute.deref_desc_iter"(%ib) {{k = {k}}} : (!ib) -> !desc
            %acc{after} = "cute_nvgpu.arch_mma_sm90"({before}, %a{at}, %b{at}, {flag})
              {{atom = "WGMMA"}} : (vector<16xf32>, !desc, !desc, i1) -> vector<16xf32>
            """


def hopper_gemm(n: int, stages: int = 3, *, in_flight: bool = False) -> str:
    """The kernel for C with rows of n elements; the first product of a tile begins at zero.

    Args:
        in_flight: the products of a stage do not wait for one another.
    """
    steps = "".join(
        _STEP.format(at=at, k=16 * at, after=at + 1, before=f"%acc{at}" if at else "%acc",
                     flag="%yes" if at else "%more")
        for at in range(4)
    )  # fmt: skip
    if in_flight:
        steps = steps.replace('{atom = "WGMMA"}', '{atom = "WGMMA", in_flight}')
        steps = steps.replace("%acc4 =", "%acc3f =") + _WAIT
    text = _GEMM.replace("PARAMS", MADE.replace("KIND", "static_persistent"))
    text = text.replace("STEPS", steps).replace("8_N", str(8 * n)).replace("(N,1)", f"({n},1)")
    text = text.replace("constant N :", f"constant {n} :").replace("BYTES", str(STAGE))
    for name, value in {"STAGES": str(stages), "WGMMA": WGMMA, "LOAD": LOAD}.items():
        text = text.replace(name, value)
    return text

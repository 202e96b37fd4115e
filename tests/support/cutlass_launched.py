"""The product of `cutlass_kernels` with a scheduler that takes over clusters: a warp more asks."""

from __future__ import annotations

from support.cutlass_kernels import gemm

_DECLARED = """!params = !cutlass.tile_scheduler_params<"dp">
!sched = !cutlass.tile_scheduler<"sm100">
!asks = !cutlass.pipeline<2>
!asked = !cutlass.pipeline_state<2>
!answers = !cute.memref<i64, "smem", "4:1">
!answer = !cute.ptr<i64, "smem", 16 : i64>
!info = !cutlass.work_tile_info<"sm100">"""
_MADE = """%params = "cutlass.tile_scheduler_make_dp_params"(%record) : (!llvm.ptr<1>) -> !params
    %memory = "cute.memref_alloc_smem"() : () -> !answers
    %answers = "cute.get_iter"(%memory) : (!answers) -> !answer
    %sched = "cutlass.tile_scheduler_create_sm100_scheduler"(%params, %answers)
      : (!params, !answer) -> !sched
    %asks = "cutlass.pipeline_create"() : () -> !asks
    "cutlass.pipeline_init"(%asks) {numStages = 2, numProducers = 1, numConsumers = 6,
      participants = array<i32: 5>, consumers = array<i32: 0, 1, 2, 3, 4, 5>} : (!asks) -> ()
    %c0 = "cutlass.pipeline_state_create"() : () -> !asked"""
_ASKS = """"cutlass.async_exec"() ({
        %end:2 = scf.while (%w = %first, %cs = %c0) : (!info, !asked) -> (!info, !asked) {
          %v = "cutlass.tile_scheduler_work_tile_info_get_value"(%w) {field = "valid"}
            : (!info) -> i32
          %go = arith.cmpi ne, %v, %i0 : i32
          scf.condition(%go) %w, %cs : !info, !asked
        } do {
        ^bb0(%w: !info, %cs: !asked):
          "cutlass.tile_scheduler_query_next_work"(%sched, %asks, %cs)
            : (!sched, !asks, !asked) -> ()
          NEXT
          scf.yield %next_w, %cn : !info, !asked
        }
      }) {mask = 32 : i32} : () -> ()
      "cutlass.async_exec"() ({"""
_NEXT = """%next_w = "cutlass.tile_scheduler_fetch_next_work"(%sched, %asks, %cs, %w) {RASTER}
            : (!sched, !asks, !asked, !info) -> !info
          %cn = "cutlass.pipeline_state_increment"(%cs) : (!asked) -> !asked"""
#: The same in steps.
STEPS = """"cutlass.pipeline_consumer_wait"(%asks, %cs) : (!asks, !asked) -> ()
          %next_w = "cutlass.tile_scheduler_get_current_work"(%sched, %cs) {RASTER}
            : (!sched, !asked) -> !info
          %where = "cutlass.tile_scheduler_get_workid_response_ptr"(%sched, %cs)
            : (!sched, !asked) -> !answer
          nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
          "cutlass.pipeline_consumer_release"(%asks, %cs) : (!asks, !asked) -> ()
          %cn = "cutlass.pipeline_state_increment"(%cs) : (!asked) -> !asked"""
_ADVANCE = """%next_w, %valid, %round = "cutlass.tile_scheduler_advance_to_next_work"(%params, %w)
            {RASTER} : (!params, !info) -> (!info, i1, i1)"""


def launched_gemm(n: int, k: int, stages: int = 3, raster: str = "", step: str = _NEXT) -> str:
    """The kernel for B (n, k), launched with a block for each tile."""
    text = gemm("dp", n, k, stages, "RASTER")
    declared = """!params = !cutlass.tile_scheduler_params<"dp">
!info = !cutlass.work_tile_info<"dp">"""
    made = '%params = "cutlass.tile_scheduler_make_dp_params"(%record) : (!llvm.ptr<1>) -> !params'
    for old, new in [
        (declared, _DECLARED),
        (made, _MADE),
        ("num_warps = 5", "num_warps = 6"),
        ('info"(%params) {RASTER}\n      : (!params) -> !info',
         'info"(%sched) {RASTER}\n      : (!sched) -> !info'),
        ('"cutlass.async_exec"() ({', "ARMS"),
        ("%end:2 = ", "%end:3 = "),
        ("(%w = %first, %s = %s0) : (!info, !state) -> (!info, !state)",
         "(%w = %first, %s = %s0, %cs = %c0) : (!info, !state, !asked) -> "
         "(!info, !state, !asked)"),
        ("%w, %s : !info, !state", "%w, %s, %cs : !info, !state, !asked"),
        ("(%w: !info, %s: !state)", "(%w: !info, %s: !state, %cs: !asked)"),
        (_ADVANCE, "NEXT"),
        ("%next_w, %last : !info, !state", "%next_w, %last, %cn : !info, !state, !asked"),
        ("%next_w, %part#1 : !info, !state", "%next_w, %part#1, %cn : !info, !state, !asked"),
    ]:  # fmt: skip
        assert old in text, old
        text = text.replace(old, new)
    text = text.replace("ARMS", _ASKS, 1).replace("ARMS", '"cutlass.async_exec"() ({')
    return text.replace("NEXT", step).replace("RASTER", raster)

"""Each operation of cutlass once, as it has to be written."""

from __future__ import annotations

PIPE, STATE = "!cutlass.pipeline<3>", "!cutlass.pipeline_state<3>"
BAR, TURN = "!cutlass.seq_bar<2, 3>", "!cutlass.seq_bar_state<2>"
ROLES = "!cutlass.participants<[0], [1, 2]>"
SHARED, GLOBAL = '!cute.ptr<i64, "smem", 8 : i64>', "!llvm.ptr<1>"
RMEM, GMEM = '!cute.memref<f32, "rmem", "4:1">', '!cute.memref<f32, "gmem", "128:1">'
LAUNCHED = '!cutlass.tile_scheduler<"sm100">'
_COUNTS = ["i32"] * 4


def params(kind: str) -> str:
    return f'!cutlass.tile_scheduler_params<"{kind}">'


def info(kind: str) -> str:
    return f'!cutlass.work_tile_info<"{kind}">'


_DP, _SP, _SK = "dp", "static_persistent", "streamk"
_INIT = "numStages = 3, numProducers = 1, numConsumers = 2"
_METER = "barrier_id = 1, threads = 128"

#: Operation: (operand types, result types, attributes).
LEGAL: dict[str, tuple[list[str], list[str], str]] = {
    "pipeline_create": ([], [PIPE], ""),
    "pipeline_init": (
        [PIPE], [],
        f"{_INIT}, participants = array<i32: 0>, consumers = array<i32: 1, 2>, "
        "arrive_counts = array<i32: 1, 2>",
    ),
    "pipeline_make_participants": (
        [], [ROLES], "producers = array<i32: 0>, consumers = array<i32: 1, 2>",
    ),
    "pipeline_producer_acquire": ([PIPE, STATE], [], ""),
    "pipeline_producer_try_acquire": ([PIPE, STATE], ["i1"], ""),
    "pipeline_producer_commit": ([PIPE, STATE], [], "transaction_bytes = 1024"),
    "pipeline_producer_tail": ([PIPE, STATE], [], ""),
    "pipeline_consumer_wait": ([PIPE, STATE, "i1"], [], ""),
    "pipeline_consumer_try_wait": ([PIPE, STATE], ["i1"], ""),
    "pipeline_consumer_release": ([PIPE, STATE], [], ""),
    "pipeline_produce": ([PIPE, STATE], [STATE], ""),
    "pipeline_consume": ([PIPE, STATE], [STATE], ""),
    "pipeline_get_producer_barrier": ([PIPE, STATE], [SHARED], ""),
    "pipeline_get_producer_mask": ([PIPE, STATE], ["i32"], ""),
    "pipeline_state_create": ([], [STATE], ""),
    "pipeline_state_increment": ([STATE], [STATE], ""),
    "pipeline_state_get_count": ([STATE], ["i32"], ""),
    "pipeline_state_get_index": ([STATE], ["i32"], ""),
    "pipeline_state_get_phase": ([STATE], ["i32"], ""),
    "seq_bar_create": ([], [BAR], ""),
    "seq_bar_init": ([BAR], [], "warps = 4"),
    "seq_bar_state_create": (["i32"], [TURN], ""),
    "seq_bar_wait": ([BAR, TURN, "i32"], [], ""),
    "seq_bar_arrive": ([BAR, TURN, "i32"], [TURN], ""),
    "named_barrier_arrive": ([], [], _METER),
    "named_barrier_arrive_and_wait": ([], [], _METER),
    "generic_barrier_arrive_increment": ([GLOBAL], [], _METER),
    "generic_barrier_wait_eq": ([GLOBAL, "i32"], [], ""),
    "generic_barrier_wait_less_than": ([GLOBAL, "i32"], [], ""),
    "block_striped_load": ([RMEM, GMEM, "i32"], [], "threads = 32"),
    "block_striped_load_add": ([RMEM, GMEM, "i32"], [], "threads = 32"),
    "block_striped_store": ([RMEM, GMEM, "i32"], [], "threads = 32"),
    "block_striped_reduce": ([RMEM, GMEM, "i32"], [], 'threads = 32, reduction = "max"'),
    "tile_scheduler_create_dp_params": (
        _COUNTS, [params(_DP)], "cluster_shape = array<i32: 2, 1, 1>",
    ),
    "tile_scheduler_create_static_persistent_params": ([*_COUNTS, "i32"], [params(_SP)], ""),
    "tile_scheduler_create_streamk_params": ([*_COUNTS, "i32", GLOBAL], [params(_SK)], ""),
    "tile_scheduler_make_dp_params": ([GLOBAL], [params(_DP)], ""),
    "tile_scheduler_make_static_persistent_params": ([GLOBAL], [params(_SP)], ""),
    "tile_scheduler_make_streamk_params": ([GLOBAL], [params(_SK)], ""),
    "tile_scheduler_create_dp_work_tile_info": ([params(_DP), "i32"], [info(_DP)], ""),
    "tile_scheduler_create_static_persistent_work_tile_info": (
        [params(_SP), "i32"], [info(_SP)], 'raster = "along_n", swizzle = 4',
    ),
    "tile_scheduler_create_streamk_work_tile_info": ([params(_SK), "i32"], [info(_SK)], ""),
    "tile_scheduler_create_sm100_scheduler": ([params(_DP), SHARED], [LAUNCHED], ""),
    "tile_scheduler_initial_work_tile_info": ([LAUNCHED], [info("sm100")], ""),
    "tile_scheduler_work_tile_info_get_value": ([info(_DP)], ["i32"], 'field = "valid"'),
    "tile_scheduler_work_tile_info_set_value": ([info(_DP), "i32"], [info(_DP)], 'field = "m"'),
    "tile_scheduler_work_tile_info_to_coord_mnkl": ([info(_DP)], ["i32"] * 4, ""),
    "tile_scheduler_work_tile_info_to_cta_coord": ([info(_DP)], ["i32"] * 3, ""),
    "tile_scheduler_params_get_value": ([params(_SK)], ["i64"], 'field = "workspace_ptr"'),
    "tile_scheduler_query_next_work": ([LAUNCHED, PIPE, STATE], [], ""),
    "tile_scheduler_fetch_next_work": (
        [LAUNCHED, PIPE, STATE, info("sm100")], [info("sm100")], "",
    ),
    "tile_scheduler_static_fetch_next_work": ([params(_SP), info(_SP)], [info(_SP)], ""),
    "tile_scheduler_get_current_work": ([LAUNCHED, STATE], [info("sm100")], ""),
    "tile_scheduler_get_work_k_tile_count": ([info(_SK)], ["i32"], ""),
    "tile_scheduler_get_work_k_tile_start": ([info(_SK)], ["i32"], ""),
    "tile_scheduler_get_workid_response_ptr": ([LAUNCHED, STATE], [SHARED], ""),
    "tile_scheduler_get_grid_shape": ([params(_SP)], ["i32"] * 3, ""),
    "tile_scheduler_initialize_workspace": ([params(_SK)], [], "accumulator_bytes = 2048"),
    "tile_scheduler_get_workspace_sizes": (
        [params(_SK)], ["i64"] * 3, "accumulator_bytes = 2048",
    ),
    "tile_scheduler_fixup": (
        [params(_SK), info(_SK), "vector<4xf32>", "i32"], ["vector<4xf32>"], _METER,
    ),
    "tile_scheduler_fixup_increment": (
        [params(_SK), info(_SK)], [], f"{_METER}, accumulator_bytes = 2048",
    ),
    "tile_scheduler_fixup_wait": (
        [params(_SK), info(_SK)], [], f"{_METER}, accumulator_bytes = 2048",
    ),
    "tile_scheduler_compute_epilogue": ([info(_SK)], ["i1"], ""),
    "tile_scheduler_mods_report_smid": ([], ["i32"], ""),
}  # fmt: skip

REGIONS = ("pipeline_produce", "pipeline_consume")


def use(
    name: str, operands: list[str], results: list[str], attributes: str, region: str = ""
) -> str:
    """One operation of values %0, %1, ...; results are %r."""
    names = ", ".join(f"%{i}" for i in range(len(operands)))
    head = f"%r:{len(results)} = " if len(results) > 1 else "%r = " if results else ""
    body = f" ({{{region}}})" if region or name in REGIONS else ""
    return (
        f'  {head}"cutlass.{name}"({names}){body} {{{attributes}}} : ({", ".join(operands)}) -> '
        f"({', '.join(results)})\n"
    )


def text_of(name: str, operands: list[str], results: list[str], attributes: str) -> str:
    """A module with one operation."""
    made = "".join(f'  %{i} = "test.make"() : () -> {t}\n' for i, t in enumerate(operands))
    return made + use(name, operands, results, attributes)


#: Operations that need others around them, in a kernel of four warps.
KERNEL = """
func.func @k(%n: i64, %since: i64) attributes {{nv_tileaa.kernel_spec = {{num_warps = 4 : i32,
    num_ctas = 4 : i32}}}} {{
  %all = arith.constant 15 : i64
  %sched = "test.make"() : () -> !cutlass.tile_scheduler_params<"streamk">
  %work = "test.make"() : () -> !cutlass.work_tile_info<"streamk">
{body}
  return
}}
"""
SWITCH = """
  "cutlass.pipeline_switch_by_executor"() ({{
    "cutlass.async_exec"() ({{ {first} }}) {{{one}}} : () -> ()
    "cutlass.async_exec"() ({{ {second} }}) {{{two}}} : () -> ()
  }}) : () -> ()
"""
ARMS = {"one": "mask = 1 : i32", "two": "mask = 14 : i32", "first": "", "second": ""}
ADVANCE = """
    %next, %valid, %round = "cutlass.tile_scheduler_advance_to_next_work"(%sched, %work) :
      (!cutlass.tile_scheduler_params<"streamk">, !cutlass.work_tile_info<"streamk">)
      -> (!cutlass.work_tile_info<"streamk">, i1, i1)
"""
START = """
    %t0 = "cutlass.tile_scheduler_mods_report_mainloop_start"(%sched, %all) {pair} :
      (!cutlass.tile_scheduler_params<"streamk">, i64) -> i64
"""
END = """
    %t1 = "cutlass.tile_scheduler_mods_report_mainloop_end"(%sched, %all, %t0) {pair} :
      (!cutlass.tile_scheduler_params<"streamk">, i64, i64) -> i64
"""
THROTTLE = '\n    "cutlass.tile_scheduler_mods_throttle"() {profile = 2 : i32} : () -> ()\n'


def exec_text(body: str) -> str:
    """A region for all warps."""
    return f'"cutlass.async_exec"() ({{ {body} }}) : () -> ()'


def kernel(body: str) -> str:
    return KERNEL.format(body=body)

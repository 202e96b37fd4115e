"""The operations of cutlass: one table.

A row is (operands, results, check, what it does); values are `name:kind`, `?` if they may be
missing. A name in `_PURE` computes and no more, one in `_REGIONS` has a region.
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Callable
from typing import Any

from tile_core.dialect import (
    NoTerminator,
    Operand,
    Operation,
    OperationSpec,
    Pure,
    ReadsAndWrites,
    Region,
    Result,
    declare,
)
from tile_core.mlir import ir
from tile_cute.cutlass.dialect import checks
from tile_cute.cutlass.dialect.kinds import Value, check_values, read
from tile_cute.cutlass.dialect.types import Cutlass
from tile_cute.errors import LayoutError

Row = tuple[str, str, Callable[[ir.OpView], None] | None, str]

_PIPELINE: dict[str, Row] = {
    "pipeline_create": ("storage:shared?", "pipe:pipe", None, "barriers of a pipe"),
    "pipeline_init": (
        "pipe:pipe participants:participants?", "", checks.pipeline_init,
        "initialise the barriers; all threads of the block meet",
    ),
    "pipeline_make_participants": (
        "", "participants:participants", checks.participants, "who produces and who consumes",
    ),
    "pipeline_producer_acquire": (
        "pipe:pipe state:state acquired:i1?", "", checks.same_stages,
        "wait until the stage is empty, unless `acquired` says that it was",
    ),
    "pipeline_producer_try_acquire": (
        "pipe:pipe state:state", "acquired:i1", checks.same_stages, "whether the stage is empty",
    ),
    "pipeline_producer_commit": (
        "pipe:pipe state:state", "", checks.commit,
        "what the producers wrote is there; with `transaction_bytes`, so many bytes will come",
    ),
    "pipeline_producer_tail": (
        "pipe:pipe state:state", "", checks.same_stages, "wait until all stages are empty",
    ),
    "pipeline_consumer_wait": (
        "pipe:pipe state:state ready:i1?", "", checks.same_stages,
        "wait until the stage is full, unless `ready` says that it was",
    ),
    "pipeline_consumer_try_wait": (
        "pipe:pipe state:state", "ready:i1", checks.same_stages, "whether the stage is full",
    ),
    "pipeline_consumer_release": (
        "pipe:pipe state:state", "", checks.same_stages, "the consumers are done with the stage",
    ),
    "pipeline_produce": (
        "pipe:pipe state:state", "next:state", checks.commit,
        "acquire the stage, run the region, commit, advance",
    ),
    "pipeline_consume": (
        "pipe:pipe state:state", "next:state", checks.same_stages,
        "wait for the stage, run the region, release, advance",
    ),
    "pipeline_get_producer_barrier": (
        "pipe:pipe state:state", "barrier:shared", checks.same_stages,
        "the mbarrier that copies into the stage signal",
    ),
    "pipeline_get_producer_mask": (
        "pipe:pipe state:state", "mask:i32", checks.same_stages,
        "a bit for each warp that fills the stage",
    ),
    "pipeline_state_create": ("", "state:state", None, "a cursor at index 0, phase 0"),
    "pipeline_state_increment": (
        "state:state", "next:state", checks.same_stages, "the cursor at the next stage",
    ),
    "pipeline_state_get_count": ("state:state", "count:i32", None, "stages gone through"),
    "pipeline_state_get_index": ("state:state", "index:i32", None, "the stage"),
    "pipeline_state_get_phase": ("state:state", "phase:i32", None, "its parity"),
    "pipeline_switch_by_executor": (
        "", "", checks.switch_by_executor, "each warp runs the `async_exec` that it is of",
    ),
    "async_exec": ("", "", checks.async_exec, "a region for some warps of the block"),
}  # fmt: skip

_BARRIERS: dict[str, Row] = {
    "seq_bar_create": ("", "bar:bar", checks.sequence, "barriers by which groups take turns"),
    "seq_bar_init": (
        "bar:bar", "", checks.sequence_init,
        "initialise them for groups of `warps` warps; all threads of the block meet",
    ),
    "seq_bar_state_create": (
        "group:i32", "state:bar_state", None, "the cursor of a group: 0 goes first",
    ),
    "seq_bar_wait": (
        "bar:bar state:bar_state group:i32", "", checks.same_depth, "wait for the group's turn",
    ),
    "seq_bar_arrive": (
        "bar:bar state:bar_state group:i32", "next:bar_state", checks.same_depth,
        "let the group behind have its turn; advance",
    ),
    "named_barrier_arrive": ("", "", checks.named_barrier, "bar.arrive"),
    "named_barrier_arrive_and_wait": ("", "", checks.named_barrier, "bar.sync"),
    "generic_barrier_arrive_increment": (
        "counter:global", "", checks.generic_barrier,
        "the threads meet, and one adds 1 to a counter in global memory",
    ),
    "generic_barrier_wait_eq": (
        "counter:global value:i32", "", checks.generic_barrier,
        "until a counter is `value`; then the threads meet",
    ),
    "generic_barrier_wait_less_than": (
        "counter:global value:i32", "", checks.generic_barrier,
        "while a counter is less than `value`; then the threads meet",
    ),
}  # fmt: skip

_STRIPED: dict[str, Row] = {
    "block_striped_load": (
        "registers:rmem source:gmem thread:i32", "", checks.striped, "registers = stripe",
    ),
    "block_striped_load_add": (
        "registers:rmem source:gmem thread:i32", "", checks.striped, "registers += stripe",
    ),
    "block_striped_store": (
        "registers:rmem target:gmem thread:i32", "", checks.striped, "stripe = registers",
    ),
    "block_striped_reduce": (
        "registers:rmem target:gmem thread:i32", "", checks.striped_reduce,
        "stripe += registers, or their maximum: atomically",
    ),
}  # fmt: skip

_TILES = "tiles_m:i32 tiles_n:i32 tiles_k:i32 batches:i32"
_SCHEDULERS: dict[str, Row] = {
    "create_dp_params": (_TILES, "params:params", checks.params, "a tile for each cluster"),
    "create_static_persistent_params": (
        f"{_TILES} ctas:i32", "params:params", checks.params, "tiles for clusters that stay",
    ),
    "create_streamk_params": (
        f"{_TILES} ctas:i32 workspace:global", "params:params", checks.params,
        "equal runs of steps along K for clusters that stay",
    ),
    "make_dp_params": ("record:global", "params:params", checks.params, "those of a record"),
    "make_static_persistent_params": (
        "record:global", "params:params", checks.params, "those of a record",
    ),
    "make_streamk_params": ("record:global", "params:params", checks.params, "those of a record"),
    "create_dp_work_tile_info": (
        "params:params number:i32", "info:info", checks.work, "the work of that number",
    ),
    "create_static_persistent_work_tile_info": (
        "params:params number:i32", "info:info", checks.work, "the work of that number",
    ),
    "create_streamk_work_tile_info": (
        "params:params number:i32", "info:info", checks.work, "the work of that number",
    ),
    "create_sm100_scheduler": (
        "params:params response:shared", "scheduler:launched", checks.launched,
        "a scheduler that takes over clusters that were not launched yet",
    ),
    "initial_work_tile_info": (
        "scheduler:scheduler", "info:info", checks.same_kind, "the first work of this block",
    ),
    "work_tile_info_get_value": ("info:info", "value:i32", checks.work_field, "a field"),
    "work_tile_info_set_value": (
        "info:info value:i32", "changed:info", checks.work_field, "with another value",
    ),
    "work_tile_info_to_coord_mnkl": (
        "info:info", "m:i32 n:i32 k:i32 l:i32", None, "tile coordinates of its cluster",
    ),
    "work_tile_info_to_cta_coord": (
        "info:info", "m:i32 n:i32 l:i32", checks.cta_coord, "those of this block",
    ),
    "params_get_value": ("params:params", "value:word", checks.params_field, "a field"),
    "advance_to_next_work": (
        "scheduler:params info:info", "next:info valid:i1 increment_pipe:i1", checks.advance,
        "the next work, whether there is any, whether a round of the pipe ends",
    ),
    "query_next_work": (
        "scheduler:launched pipe:pipe state:state", "", checks.query,
        "ask for the next cluster's work; the answer comes into the stage",
    ),
    "fetch_next_work": (
        "scheduler:launched pipe:pipe state:state info:info", "next:info", checks.query,
        "wait for the answer, and release the stage",
    ),
    "static_fetch_next_work": (
        "params:params info:info", "next:info", checks.same_kind, "the next work",
    ),
    "get_current_work": (
        "scheduler:launched state:state", "info:info", checks.same_kind,
        "the work of an answer that is there",
    ),
    "get_work_k_tile_count": ("info:info", "count:i32", None, "its steps along K"),
    "get_work_k_tile_start": ("info:info", "start:i32", None, "the first of them"),
    "get_workid_response_ptr": (
        "scheduler:launched state:state", "pointer:shared", None, "where the answer comes to",
    ),
    "get_grid_shape": ("params:params", "x:i32 y:i32 z:i32", None, "the grid to launch"),
    "initialize_workspace": (
        "params:params", "", checks.streamk, "clear the counters; all blocks do a part",
    ),
    "get_workspace_sizes": (
        "params:params", "total:i64 sums:i64 counters:i64", checks.sizes, "in bytes",
    ),
    "fixup": (
        "params:params info:info partial:vector thread:i32", "sum:vector", checks.fixup,
        "hand a part over, or sum up all parts of a tile",
    ),
    "fixup_increment": (
        "params:params info:info", "", checks.fixup_counter, "a part has been handed over",
    ),
    "fixup_wait": (
        "params:params info:info", "", checks.fixup_counter, "until all parts but this one have",
    ),
    "compute_epilogue": ("info:info", "final:i1", None, "whether this part writes the result"),
    "mods_report_mainloop_start": (
        "scheduler:scheduler participants:i64", "time:i64", checks.mods,
        "arrive at the cluster's barrier; the time",
    ),
    "mods_report_mainloop_end": (
        "scheduler:scheduler participants:i64 since:i64", "time:i64", checks.mods_end,
        "bulk copies drain, the cluster meets; the time since",
    ),
    "mods_report_smid": ("", "smid:i32", None, "the number of the SM"),
    "mods_throttle": ("", "", checks.throttle, "0: nothing, 1: sleep, 2: the block meets"),
}  # fmt: skip

TABLE: dict[str, Row] = {
    **_PIPELINE,
    **_BARRIERS,
    **_STRIPED,
    **{f"tile_scheduler_{name}": row for name, row in _SCHEDULERS.items()},
}

_PURE = {
    "pipeline_make_participants", "pipeline_get_producer_barrier", "pipeline_get_producer_mask",
    "pipeline_state_create", "pipeline_state_increment", "pipeline_state_get_count",
    "pipeline_state_get_index", "pipeline_state_get_phase", "seq_bar_state_create",
    *(
        f"tile_scheduler_{name}"
        for name in (
            "create_dp_params", "create_static_persistent_params", "create_streamk_params",
            "create_dp_work_tile_info", "create_static_persistent_work_tile_info",
            "create_streamk_work_tile_info", "create_sm100_scheduler", "initial_work_tile_info",
            "work_tile_info_get_value", "work_tile_info_set_value",
            "work_tile_info_to_coord_mnkl", "work_tile_info_to_cta_coord", "params_get_value",
            "static_fetch_next_work", "get_work_k_tile_count", "get_work_k_tile_start",
            "get_workid_response_ptr", "get_grid_shape", "get_workspace_sizes",
            "compute_epilogue", "mods_report_smid",
        )
    ),
}  # fmt: skip
_REGIONS = {
    "pipeline_produce", "pipeline_consume", "pipeline_switch_by_executor", "async_exec",
}  # fmt: skip


def _fields(values: tuple[Value, ...], kind: Any) -> dict[str, Any]:
    return {name: kind[Any] | None if optional else kind[Any] for name, _, optional in values}


def _verifier(
    row: Row, operands: tuple[Value, ...], results: tuple[Value, ...]
) -> Callable[[ir.OpView], str | None]:
    def verify(op: ir.OpView) -> str | None:
        try:
            check_values(operands, [value.type for value in op.operation.operands])
            check_values(results, [value.type for value in op.operation.results])
            if row[2] is not None:
                row[2](op)
        except LayoutError as error:
            return str(error)
        return None

    return verify


def _declared(name: str, row: Row) -> type[Operation]:
    operands, results = read(row[0]), read(row[1])
    required = tuple(value for value in operands if not value[2])
    optional = tuple(value for value in operands if value[2])
    fields = {
        **_fields(required, Operand),
        **_fields(tuple((f"{n}_" if any(n == o[0] for o in operands) else n, k, q)
                        for n, k, q in results), Result),
        **({"body": Region} if name in _REGIONS else {}),
        **_fields(optional, Operand),
    }  # fmt: skip
    traits: tuple[type, ...] = (Pure,) if name in _PURE else (ReadsAndWrites,)
    if name in _REGIONS:
        traits = (ReadsAndWrites, NoTerminator)
    return declare(
        Cutlass,
        OperationSpec(name, fields, row[3], traits, (_verifier(row, operands, results),)),
        module=__name__,
    )


OPERATIONS = {name: _declared(name, row) for name, row in TABLE.items()}

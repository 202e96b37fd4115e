"""From a plan to a load of the engine: ops made once for each list of items."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.machines import Machine
from tile_time.actions import Placed, Plan
from tile_time.engine.ops import Op, is_variable, make_op
from tile_time.engine.run import Load
from tile_time.record import Recorder
from tile_time.sass.opcodes import NOTED, access_kind
from tile_time.variety import Variety


def make_load(
    machine: Machine,
    plan: Plan,
    recorders: Sequence[Recorder],
    ctas: int,
    resident: int,
    variety: Variety,
    clusters: int,
) -> Load:
    """The load of recorded clusters of `ctas` CTAs each."""
    lines = {ins.pos: line for line, ins in plan.ptx.instructions.items()}
    kinds = [
        [
            [plan.actions(recorder.warps.get((cta, w), [])) for w in range(recorder.per_cta)]
            for cta in range(ctas)
        ]
        for recorder in recorders
    ]
    by_line = plan.ptx.instructions
    ops: list[list[Op]] = []
    handled: list[frozenset[tuple[int, int]]] = []
    for placed, merged in zip(plan.items, plan.merged, strict=True):
        made = [_op(machine, one, by_line, lines) for one in placed]
        ops.append(made)
        handled.append(merged | {(op.run, op.pos) for op in made if op.kind in NOTED})
    made_as = {ins.pos: access_kind(ins) for ins in by_line.values()}
    return Load(kinds, variety, ops, handled, plan.merged, made_as, resident, clusters)


def _op(machine: Machine, placed: Placed, by_line: dict, lines: dict[int, int]) -> Op:
    item = placed.item
    line = lines.get(item.pos, item.sass.line)
    ins = by_line.get(line)
    op = make_op(machine, item, ins, placed.run, line)
    if not is_variable(op.kind) and op.kind not in NOTED and op.write == 7:
        op.latency = max(op.latency, 0.0)
    if op.kind in ("tensor_load", "tensor_store") and ins is not None:
        op.amount = _tensor_bytes(ins)
    return op


def _tensor_bytes(ins: object) -> float:
    """Bytes that a warp moves between registers and tensor memory."""
    mods = getattr(ins, "mods", ())
    repeat = next((int(m[1:]) for m in mods if m[:1] == "x" and m[1:].isdigit()), 1)
    words = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
    width = next((words[m] for m in mods if m in words), 1)
    return 128.0 * repeat * width

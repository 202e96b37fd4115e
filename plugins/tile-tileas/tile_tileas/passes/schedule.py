"""tileas-generate-schedule and tileas-materialize-schedule.

The first asks a scheduler and writes its answer on the operations (`nv_tileas.start`, in cycles)
and on the operation that holds the block (`nv_tileas.ii`), where it can be read and edited; the
second moves the operations and removes the attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_core.sched import (
    IncompleteError,
    Infeasible,
    LoopGraph,
    MachineModel,
    Schedule,
    violated_edge,
    violations,
)
from tile_tileas.passes.convert_tileaa import num_warps
from tile_tileas.sched.model import loop_graph, machine_model

START, INTERVAL = "nv_tileas.start", "nv_tileas.ii"


def _bodies(func: ir.Operation) -> Iterator[tuple[ir.OpView | ir.Operation, ir.Block]]:
    """The function's block and every loop body, outer before inner."""
    block = func.regions[0].blocks[0]
    yield func, block
    yield from _loops(block)


def _loops(block: ir.Block) -> Iterator[tuple[ir.OpView, ir.Block]]:
    for op in block.operations:
        for region in op.regions if op.operation.name.startswith("scf.") else ():
            for inner in region.blocks:
                if op.operation.name == "scf.for":
                    yield op, inner
                yield from _loops(inner)


@dataclass(frozen=True)
class GenerateSchedule(Pass):
    """Ask a scheduler in which order, and how far apart, operations start."""

    name = "tileas-generate-schedule"
    anchor = "func.func"
    preserves = ("axis",)

    scheduler: str = option("serial", "scheduler (see `tilec plugins list`)")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        scheduler = cx.scheduler(self.scheduler)
        model = machine_model(cx.target, num_warps(op))
        for holder, block in _bodies(op):
            graph = loop_graph(block, is_loop=holder.operation.name == "scf.for")
            found = scheduler.schedule(graph, model)
            if isinstance(found, Infeasible):
                raise error_at(holder, f"cannot be scheduled by '{self.scheduler}': {found.reason}")
            for note in found.notes:
                cx.missed(holder.operation, note)
            wrong = _wrong(graph, model, found)
            if wrong is not None:
                raise error_at(
                    holder,
                    f"scheduler '{self.scheduler}' {wrong}",
                    hint="every schedule is checked, whoever made it; nothing was changed",
                )
            _annotate(holder, block, found)


def _wrong(graph: LoopGraph, model: MachineModel, found: Schedule) -> str | None:
    """What is wrong with a schedule: the edge, or the resource and the cycle."""
    try:
        violation = next(violations(graph, model, found), None)
    except IncompleteError as error:
        return str(error)
    return None if violation is None else violation.message


def _annotate(holder: ir.OpView | ir.Operation, block: ir.Block, schedule: Schedule) -> None:
    i32 = ir.IntegerType.get_signless(32)
    holder.attributes[INTERVAL] = ir.IntegerAttr.get(i32, schedule.ii)
    for op, start in zip(block.operations, schedule.start, strict=True):
        op.attributes[START] = ir.IntegerAttr.get(i32, start)


@dataclass(frozen=True)
class MaterializeSchedule(Pass):
    """Put operations in the order of their schedule."""

    name = "tileas-materialize-schedule"
    anchor = "func.func"
    statistics = {"moved": "operations that changed their place"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for holder, block in list(_bodies(op)):
            if INTERVAL not in holder.attributes:
                continue
            ops = list(block.operations)
            schedule = _read(holder, ops)
            if schedule.num_stages > 1:
                raise error_at(
                    holder,
                    f"has a schedule of {schedule.num_stages} stages, but only one iteration at "
                    "a time is supported",
                    hint="choose a scheduler whose starts stay below its initiation interval",
                )
            graph = loop_graph(block, is_loop=holder.operation.name == "scf.for")
            broken = violated_edge(graph, schedule)
            if broken is not None:
                raise error_at(
                    ops[broken.dst],
                    f"starts before '{graph.ops[broken.src].name}', which it depends on, or less "
                    f"than {broken.latency} cycles after it",
                )
            cx.count("moved", _reorder(ops, schedule))
            for inner in ops:
                del inner.attributes[START]
            del holder.attributes[INTERVAL]


def _read(holder: ir.OpView | ir.Operation, ops: list[ir.OpView]) -> Schedule:
    starts = []
    for op in ops:
        if START not in op.attributes:
            raise error_at(op, f"has no '{START}', although its block is scheduled")
        starts.append(ir.IntegerAttr(op.attributes[START]).value)
    return Schedule(tuple(starts), ir.IntegerAttr(holder.attributes[INTERVAL]).value)


def _reorder(ops: list[ir.OpView], schedule: Schedule) -> int:
    """Move operations before the terminator, in order; how many changed their place."""
    order = schedule.order()
    if order[-1] != len(ops) - 1:
        # Others may start in the terminator's cycle; it still ends the block.
        order = (*(at for at in order if at != len(ops) - 1), len(ops) - 1)
    for at in order[:-1]:
        ops[at].operation.move_before(ops[-1].operation)
    return sum(1 for place, at in enumerate(order) if place != at)

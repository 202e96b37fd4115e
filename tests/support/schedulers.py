"""Schedulers for tests: each is wrong in one way that the passes have to notice.

`Scattered` is not: it makes schedules of many stages, which nobody else would.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from tile_core.hookspecs import Lazy, hookimpl
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_core.sched import SCHEDULE_ANALYSIS, Infeasible, LoopGraph, MachineModel, Schedule

TILE_SPEC_VERSION = 1


class Backwards:
    """The last operation first."""

    name = "backwards"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        count = len(loop.ops)
        return Schedule(tuple(reversed(range(count))), ii=count)


class Forgetful:
    """No start for the last operation."""

    name = "forgetful"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        return Schedule(tuple(range(len(loop.ops) - 1)), ii=len(loop.ops))


class Hopeless:
    """Finds nothing."""

    name = "hopeless"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        return Infeasible("the weather is bad")


class Impatient:
    """One operation per cycle, however long the one before it takes."""

    name = "impatient"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        return Schedule(tuple(range(len(loop.ops))), ii=1000)


class Crowding:
    """Every operation when all before it are done, but a new iteration in every cycle."""

    name = "crowding"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        return Schedule(_one_by_one(loop), ii=1)


class Overlapping:
    """Every operation when all before it are done, two iterations at a time: right, but staged."""

    name = "overlapping"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        starts = _one_by_one(loop)
        return Schedule(starts, ii=max(starts))


class Scattered:
    """Operations one by one, then pushed whole intervals apart at random: right, in many stages."""

    name = "scattered-0"
    seed = 0

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        starts = _one_by_one(loop)
        ends = [at + max(op.duration, op.latency) for at, op in zip(starts, loop.ops, strict=True)]
        ii = max(ends) + 1
        if not loop.is_loop or loop.options.max_stages == 1:
            return Schedule(starts, ii)
        chance = random.Random(self.seed)
        stage = [chance.randrange(3) for _ in loop.ops]
        changed = True
        while changed:
            changed = False
            for edge in loop.edges:
                room = starts[edge.dst] - starts[edge.src] - edge.latency + ii * edge.distance
                least = stage[edge.src] - room // ii
                if stage[edge.dst] < least:
                    stage[edge.dst], changed = least, True
            if max(stage) > 4 * len(stage):
                return Schedule(starts, ii)
        return Schedule(tuple(at + ii * by for at, by in zip(starts, stage, strict=True)), ii)


SCATTERED = tuple(
    type(f"Scattered{seed}", (Scattered,), {"name": f"scattered-{seed}", "seed": seed})
    for seed in range(12)
)
globals().update({cls.__name__: cls for cls in SCATTERED})


def _one_by_one(loop: LoopGraph) -> tuple[int, ...]:
    starts, cycle = [], 0
    for op in loop.ops:
        starts.append(cycle)
        cycle += max(1, op.latency, op.duration)
    return tuple(starts)


@dataclass(frozen=True)
class Careless(Pass):
    """Says that schedules are as they were, and adds an operation."""

    name = "test-careless"
    anchor = "func.func"
    preserves = (SCHEDULE_ANALYSIS,)

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        first = op.regions[0].blocks[0].operations[0]
        clone = first.operation.clone(ip=ir.InsertionPoint(first))
        clone.attributes["nv_tileas.start"] = first.attributes["nv_tileas.start"]


@dataclass(frozen=True)
class Careful(Pass):
    """Looks, and touches nothing."""

    name = "test-careful"
    anchor = "func.func"
    preserves = (SCHEDULE_ANALYSIS,)
    accepts = (SCHEDULE_ANALYSIS,)

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        block = cx.accepted(SCHEDULE_ANALYSIS, op).block("body")
        op.attributes["strategy"] = ir.StringAttr.get(f"{block.strategy}, {len(block.body)}")


@hookimpl
def tile_passes() -> Iterable[Lazy]:
    """The passes above."""
    return tuple(
        Lazy(cls.name, f"support.schedulers:{cls.__name__}") for cls in (Careless, Careful)
    )


@hookimpl
def tile_schedulers() -> Iterable[Lazy]:
    """The schedulers above, under their names."""
    return tuple(
        Lazy(cls.name, f"support.schedulers:{cls.__name__}")
        for cls in (Backwards, Crowding, Forgetful, Hopeless, Impatient, Overlapping, *SCATTERED)
    )

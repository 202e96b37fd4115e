"""Schedulers for tests: each is wrong in one way that the passes have to notice."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.hookspecs import Lazy, hookimpl
from tile_core.sched import Infeasible, LoopGraph, MachineModel, Schedule

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


def _one_by_one(loop: LoopGraph) -> tuple[int, ...]:
    starts, cycle = [], 0
    for op in loop.ops:
        starts.append(cycle)
        cycle += max(1, op.latency)
    return tuple(starts)


@hookimpl
def tile_schedulers() -> Iterable[Lazy]:
    """The schedulers above, under their names."""
    return tuple(
        Lazy(cls.name, f"support.schedulers:{cls.__name__}")
        for cls in (Backwards, Crowding, Forgetful, Hopeless, Impatient, Overlapping)
    )

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


class Overlapping:
    """Program order, a new iteration every other cycle: correct, but of many stages."""

    name = "overlapping"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        return Schedule(tuple(range(len(loop.ops))), ii=2)


@hookimpl
def tile_schedulers() -> Iterable[Lazy]:
    """The schedulers above, under their names."""
    return tuple(
        Lazy(cls.name, f"support.schedulers:{cls.__name__}")
        for cls in (Backwards, Forgetful, Hopeless, Overlapping)
    )

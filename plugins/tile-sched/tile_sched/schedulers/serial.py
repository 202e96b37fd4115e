"""`serial`: program order, one iteration in flight; what remains when nothing else fits."""

from __future__ import annotations

from typing import ClassVar

from tile_core.sched import Infeasible, LoopGraph, MachineModel, Schedule, topological_order
from tile_sched.listing import in_order
from tile_sched.placement.state import Neighbours
from tile_sched.search import why_impossible


class SerialScheduler:
    """Each operation starts after the one before it, when what it waits for is there.

    Program order, but for operations that depend on later ones. All constraints hold in one
    stage, so none is looked at.
    """

    name: ClassVar[str] = "serial"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        impossible = why_impossible(loop, model)
        if impossible is not None:
            return impossible
        order = topological_order(loop)
        assert order is not None, "no cycle within an iteration"
        return in_order(loop, model, Neighbours.of(loop), order)

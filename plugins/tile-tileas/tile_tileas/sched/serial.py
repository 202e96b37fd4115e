"""`serial`: program order, one iteration in flight; what remains when nothing else fits."""

from __future__ import annotations

from typing import ClassVar

from tile_core.sched import Infeasible, LoopGraph, MachineModel, Schedule


class SerialScheduler:
    """Each operation starts after the one before it."""

    name: ClassVar[str] = "serial"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        return Schedule(tuple(range(len(loop.ops))), ii=max(1, len(loop.ops)))

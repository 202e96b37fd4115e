"""`ims`: iterative modulo scheduling with eviction (Rau, 1994)."""

from __future__ import annotations

from typing import ClassVar

from tile_core.sched import Infeasible, LoopGraph, MachineModel, Schedule
from tile_sched.placement.rau import place_iteratively
from tile_sched.schedulers.serial import SerialScheduler
from tile_sched.search import problem_of, quantised, search


class IterativeScheduler:
    """The shortest interval at which placement with eviction succeeds within its budget."""

    name: ClassVar[str] = "ims"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        if any(op.constraints.force_serial_execution for op in loop.ops):
            return SerialScheduler().schedule(loop, model)
        return quantised(loop, model, self._search)

    @staticmethod
    def _search(loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        problem = problem_of(loop, model)
        return problem if isinstance(problem, Infeasible) else search(problem, place_iteratively)

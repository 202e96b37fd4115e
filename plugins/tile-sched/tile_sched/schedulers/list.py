"""`list`: operations in order of their distance to the end, so that long latencies start first."""

from __future__ import annotations

from typing import ClassVar

from tile_core.sched import Infeasible, LoopGraph, MachineModel, Schedule
from tile_sched.search import problem_of


class ListScheduler:
    """List scheduling of one iteration by critical path, within slots and pools."""

    name: ClassVar[str] = "list"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        problem = problem_of(loop, model)
        return problem if isinstance(problem, Infeasible) else problem.fallback

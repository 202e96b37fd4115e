"""`cost` and `fast`: modulo scheduling by the four-arm driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tile_core.sched import Infeasible, LoopGraph, MachineModel, Schedule
from tile_sched.listing import arithmetic_kept, as_written
from tile_sched.occupancy import reordering_pays, worthwhile
from tile_sched.placement.arms import Arm, CostBased, Fuse, Permute, Retry, Seating
from tile_sched.placement.costs import COSTS, Cost
from tile_sched.placement.driver import place_all
from tile_sched.placement.gates import GATES, Gate
from tile_sched.placement.rau import place_iteratively
from tile_sched.placement.state import State
from tile_sched.schedulers.serial import SerialScheduler
from tile_sched.search import Problem, problem_of, quantised, refined, search


@dataclass(frozen=True)
class Parts:
    """What the driver is made of."""

    gates: tuple[Gate, ...] = GATES
    costs: tuple[Cost, ...] = COSTS
    arms: tuple[Arm, ...] = ()  # after those of the driver

    def with_parts(self, parts: Sequence[Any]) -> Parts:
        """These and further ones; each part says by its `kind` what it is."""
        found = self
        for part in parts:
            field = {"gate": "gates", "cost": "costs", "arm": "arms"}[part.kind]
            found = replace(found, **{field: (*getattr(found, field), part)})
        return found

    def all_arms(self) -> tuple[Arm, ...]:
        """The four arms, then those of plugins."""
        seating = Seating(self.gates)
        return (
            Permute(seating),
            Fuse(seating),
            Retry(seating),
            CostBased(seating, self.costs),
            *self.arms,
        )


#: Stages that are tried, too, where the shortest interval takes more.
_FEWER = 2


class CostScheduler:
    """The shortest interval that the arms, or eviction, find; then rounds that save registers.

    With `heed_occupancy`, iterations overlap only where that is worth its registers, and a body
    keeps the program's order unless another one gains more than estimates are sure of.

    At each interval: the driver's arms from empty, then Rau's placement with eviction from empty.
    """

    name: ClassVar[str] = "cost"

    def __init__(self, parts: Parts | None = None) -> None:
        self.parts = parts or Parts()

    def composed(self, parts: Sequence[Any]) -> Self:
        """The scheduler with `parts` after its own."""
        return type(self)(self.parts.with_parts(parts))

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        if any(op.constraints.force_serial_execution for op in loop.ops):
            return SerialScheduler().schedule(loop, model)
        return quantised(loop, model, self._search)

    def _search(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        problem = problem_of(loop, model)
        if isinstance(problem, Infeasible):
            return problem
        found = refined(problem, self._placer)
        if not loop.options.heed_occupancy:
            return found
        one = SerialScheduler().schedule(loop, model)
        assert isinstance(one, Schedule), "the problem has a solution"
        if reordering_pays(loop, problem.fallback, as_written(loop, model)):
            one = arithmetic_kept(loop, model, problem.near, problem.fallback)
        if not loop.is_loop:
            return one
        if not model.register_file:
            return found
        candidates = [one, found]
        if found.num_stages > _FEWER:
            fewer = replace(loop, options=replace(loop.options, max_stages=_FEWER))
            limited = problem_of(fewer, model)
            assert isinstance(limited, Problem), "more stages were possible"
            candidates.insert(1, refined(limited, self._placer))
        return worthwhile(loop, model, candidates)

    def _placer(self, state: State) -> bool:
        empty = state.savepoint()
        if place_all(state, self.parts.all_arms()):
            return True
        state.rollback(empty)
        return place_iteratively(state, self.parts.gates)


class FastScheduler(CostScheduler):
    """The first arm alone, at the first interval where it succeeds."""

    name: ClassVar[str] = "fast"

    def _search(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        problem = problem_of(loop, model)
        return problem if isinstance(problem, Infeasible) else search(problem, self._placer)

    def _placer(self, state: State) -> bool:
        return place_all(state, (Permute(Seating(self.parts.gates)),))

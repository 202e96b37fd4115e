"""The search for an interval: bounds, attempts, refinement of constraints, coarser time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tile_core.sched import (
    Decision,
    Infeasible,
    LoopGraph,
    MachineModel,
    ReservationTable,
    Schedule,
    topological_order,
    violations,
)
from tile_core.sched.graph import Use
from tile_sched.graph.bounds import Bounds, bounds, longest_interval
from tile_sched.graph.exclusion import Exclusions
from tile_sched.listing import list_schedule
from tile_sched.placement.costs import spill_surcharge
from tile_sched.placement.groups import Groups, groups_of
from tile_sched.placement.state import Neighbours, State
from tile_sched.pressure import pressure

#: Intervals that are tried in small steps, one by one below 512 cycles and of at most a 256th of
#: the interval above; beyond them each step is a 64th. So the search ends soon, and misses the
#: smallest feasible interval by less than 2 %.
SMALL_STEPS = 16
_SMALL, _LARGE = 256, 64
#: Intervals tried between the first at which everything was placed and the one that failed before.
_BETWEEN = 3
#: Intervals that are tried where only one stage is allowed, for which a list schedule is close to
#: the best, and in each round of refinement.
_FEW = 8
#: By what registers that are saved may lengthen the interval.
LONGER = 1.05
_SEED = 20260722
_LONGEST_DELAY = 3

#: Places every op of a state, or returns False.
Placer = Callable[[State], bool]


@dataclass(frozen=True)
class Problem:
    """A body, its machine, its bounds, and what refinement has added."""

    loop: LoopGraph
    model: MachineModel
    near: Neighbours
    bounds: Bounds
    fallback: Schedule  # one iteration after the other; keeps every constraint
    exclusions: Exclusions
    surcharges: tuple[tuple[tuple[int, int], int], ...] = ()
    lifted: bool = False

    @cached_property
    def groups(self) -> Groups:
        """Ops that are placed together."""
        return groups_of(self.loop, lifted=self.lifted)

    def state(self, ii: int) -> State:
        """An empty attempt at `ii`."""
        return State(self.loop, self.model, ii, self.groups, self.near, dict(self.surcharges),
                     delays=_delays(self.loop))  # fmt: skip


def why_impossible(loop: LoopGraph, model: MachineModel) -> Infeasible | None:
    """Why there is no solution at any interval, not even one iteration after the other."""
    longest = ReservationTable(longest_interval(loop), model)
    for op in loop.ops:
        conflict = None if longest.fits(op.footprint) else longest.conflict(op.footprint, 0)
        if conflict is not None:
            have = f"{conflict.capacity}" if conflict.capacity else "none"
            return Infeasible(
                f"'{op.name}' needs '{conflict.resource}', of which the SM has {have}"
            )
    if topological_order(loop) is None:
        return Infeasible("it depends on itself within one iteration")
    return None


def problem_of(loop: LoopGraph, model: MachineModel) -> Problem | Infeasible:
    """The problem, or why it has no solution at any interval."""
    impossible = why_impossible(loop, model)
    if impossible is not None:
        return impossible
    found = bounds(loop, model)
    assert found is not None, "no cycle within an iteration"
    near = Neighbours.of(loop)
    fallback = list_schedule(loop, model, near)
    return Problem(loop, model, near, found, fallback, Exclusions(loop, model))


def intervals(problem: Problem, *, few: bool = False) -> Iterator[int]:
    """Intervals to try, up to that of the list schedule: the lower bound, then from where shared
    resources stop excluding them.
    """
    ii, last = problem.bounds.mii, problem.fallback.ii
    if ii > last:
        return
    yield ii
    ii = max(ii + 1, problem.exclusions.first_possible(ii, last))
    if few or problem.loop.options.max_stages == 1:
        yield from range(ii, last + 1, max(1, -(-(last - ii) // _FEW)))
        return
    tried = 0
    while ii <= last:
        yield ii
        tried += 1
        ii += max(1, ii // (_SMALL if tried < SMALL_STEPS else _LARGE))


def search(problem: Problem, placer: Placer, *, few: bool = False) -> Schedule:
    """The schedule of the first interval at which `placer` places everything.

    The list schedule, one iteration after the other, where none is shorter.
    """
    if not problem.loop.is_loop:
        return problem.fallback
    decisions: list[Decision] = []
    failed = problem.bounds.mii - 1
    for ii in intervals(problem, few=few):
        found = _attempt(problem, placer, ii, decisions)
        if found is not None:
            found = found if few else _shorter(problem, placer, failed, found, decisions)
            return replace(found, decisions=tuple(decisions))
        failed = ii
    notes = ()
    if problem.loop.options.max_stages != 1:
        notes = (
            f"no interval up to {problem.fallback.ii} was found at which iterations overlap: one "
            "after the other",
        )
    return replace(problem.fallback, decisions=tuple(decisions), notes=notes)


def _attempt(
    problem: Problem, placer: Placer, ii: int, decisions: list[Decision]
) -> Schedule | None:
    state = problem.state(ii)
    placed = placer(state)
    decisions += state.decisions
    if not placed:
        return None
    starts = [at for at in state.start if at is not None]
    assert len(starts) == len(state.start), "an op was left out"
    return Schedule(_from_zero(starts, ii), ii)


def _shorter(
    problem: Problem, placer: Placer, failed: int, found: Schedule, decisions: list[Decision]
) -> Schedule:
    """The best of a few intervals between one that failed and one that did not."""
    for _ in range(_BETWEEN):
        middle = (failed + found.ii) // 2
        if middle <= failed or problem.exclusions.excluded(middle):
            break
        better = _attempt(problem, placer, middle, decisions)
        failed, found = (middle, found) if better is None else (failed, better)
    return found


def _from_zero(starts: list[int], ii: int) -> tuple[int, ...]:
    """Starts less the whole intervals that none of them needs."""
    spare = min(starts, default=0) // ii * ii
    return tuple(at - spare for at in starts)


# --- refinement ----------------------------------------------------------------------------------


def refined(problem: Problem, placer: Placer) -> Schedule:
    """Search, and search again while rounds derive new constraints from what was found.

    A schedule that keeps more registers alive than the model allows gets a surcharge on the seats
    of its worst cycles, and, where it has stages to lose, one stage less; the best schedule by
    (registers over budget, interval, stages) is kept, as long as its interval is at most `LONGER`
    times the shortest: whether fewer iterations in flight pay is not decided here. Where groups
    keep iterations from overlapping at all, they are lifted, being the softest constraint: never
    for the hard ones.
    """
    best = search(problem, placer)
    if best == problem.fallback and any(problem.groups.joint):
        again = search(replace(problem, lifted=True), placer)
        if again.ii < best.ii:
            note = f"groups are kept; without them the interval were {again.ii}, not {best.ii}"
            best = replace(best, notes=(*best.notes, note))
    budget, rounds = problem.model.registers, problem.loop.options.max_constraint_iterations
    found, excess, shortest = best, _excess(problem.loop, best, budget), best.ii
    for _ in range(rounds):
        constrained = _constrained(problem, found, budget)
        if constrained is None:
            break
        problem = constrained
        again = search(problem, placer, few=True)
        found, over = again, _excess(problem.loop, again, budget)
        if found.ii > LONGER * shortest:
            break  # later rounds only have more constraints
        if (over, found.ii, found.num_stages) < (excess, best.ii, best.num_stages):
            best, excess = found, over
    else:
        if rounds and excess:
            note = f"budget of {rounds} constraint iterations used up, {excess} registers over"
            best = replace(best, notes=(*best.notes, note))
    return best


def _excess(loop: LoopGraph, schedule: Schedule, budget: int) -> int:
    most = max(registers for _, registers in pressure(loop, schedule))
    return max(0, most - budget) if budget else 0


def _constrained(problem: Problem, schedule: Schedule, budget: int) -> Problem | None:
    """The problem with what a round derives from `schedule`; None if that is nothing new."""
    if not budget or not _excess(problem.loop, schedule, budget):
        return None
    surcharges = dict(problem.surcharges)
    rows = pressure(problem.loop, schedule)
    for op, at in enumerate(schedule.start):
        live = [registers for row, registers in rows if row <= at % schedule.ii][-1]
        more = spill_surcharge(live, budget)
        if more:
            surcharges[op, at] = min(4096, surcharges.get((op, at), 0) + more)
    stages = schedule.num_stages - 1
    options = problem.loop.options
    new = tuple(sorted(surcharges.items()))
    if stages < 1:
        return None if new == problem.surcharges else replace(problem, surcharges=new)
    loop = replace(problem.loop, options=replace(options, max_stages=stages))
    found = bounds(loop, problem.model)
    assert found is not None, "the graph was schedulable before"
    return replace(problem, loop=loop, bounds=found, surcharges=new)


# --- coarser time --------------------------------------------------------------------------------


def quantised(
    loop: LoopGraph,
    model: MachineModel,
    solve: Callable[[LoopGraph, MachineModel], Schedule | Infeasible],
) -> Schedule | Infeasible:
    """`solve` on time in units of q cycles, where the table would exceed its threshold.

    Durations and latencies are rounded up, starts and interval scaled back. Rounding up keeps
    dependences and resources legal; it is checked all the same.
    """
    threshold = loop.options.rrt_size_threshold
    found = bounds(loop, model)
    if not loop.is_loop or not threshold or found is None or found.mii <= threshold:
        return solve(loop, model)
    q = -(-found.mii // threshold)
    coarse = solve(_coarser(loop, q), model)
    if isinstance(coarse, Infeasible):
        return coarse
    note = f"time was counted in units of {q} cycles (rrt-size-threshold {threshold})"
    scaled = replace(
        coarse,
        start=tuple(at * q for at in coarse.start),
        ii=coarse.ii * q,
        notes=(*coarse.notes, note),
    )
    wrong = next(violations(loop, model, scaled), None)
    if wrong is not None:
        return Infeasible(f"quantised schedule {wrong.message}", coarse.decisions)
    return scaled


def _coarser(loop: LoopGraph, q: int) -> LoopGraph:
    ops = tuple(
        replace(
            op,
            latency=-(-op.latency // q),
            memory_bytes=-(-op.memory_bytes // q),
            uses=tuple(
                Use(use.resource, -(-(use.at + use.cycles) // q) - use.at // q, use.amount,
                    use.at // q)
                for use in op.footprint
            ),
        )
        for op in loop.ops
    )  # fmt: skip
    edges = tuple(replace(edge, latency=-(-edge.latency // q)) for edge in loop.edges)
    return replace(loop, ops=ops, edges=edges)


def _delays(loop: LoopGraph) -> tuple[int, ...]:
    if not loop.options.random_delay:
        return ()
    chance = random.Random(_SEED)
    return tuple(chance.randint(0, _LONGEST_DELAY) for _ in loop.ops)

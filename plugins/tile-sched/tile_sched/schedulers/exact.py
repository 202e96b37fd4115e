"""`exact`: the shortest interval there is, by OR-tools' CP-SAT; the yardstick of the others."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, ClassVar

from tile_core.diagnostics import ConfigurationError
from tile_core.sched import Infeasible, LoopGraph, MachineModel, ReservationTable, Schedule
from tile_sched.graph.bounds import depth_limit, longest_interval
from tile_sched.schedulers.ims import IterativeScheduler
from tile_sched.schedulers.serial import SerialScheduler
from tile_sched.search import Problem, problem_of

#: Deterministic time (CP-SAT's own unit, about a second) for all intervals of a body, the making of
#: models included.
LIMIT = 30.0
#: What an edge or a use of a resource costs when a model is made, in the same unit.
_MAKING = 2e-5
#: Deterministic time for moving operations up once the interval is known.
_TIDYING = 1.0


class ExactScheduler:
    """Interval by interval from the lower bound, each proven infeasible or solved.

    Intervals from that of `ims` on are not tried, since it has a schedule. Below, among those of
    the shortest interval, one of least total start. Intervals that shared resources exclude
    (`Exclusions`) need no solver. Where one iteration follows the other, the interval is a variable
    of one model instead. What cannot be decided within the limit is said in the notes: the answer
    is then the best that was found, that of `ims` at worst, and not proven optimal.
    """

    name: ClassVar[str] = "exact"

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        if any(op.constraints.force_serial_execution for op in loop.ops):
            return SerialScheduler().schedule(loop, model)
        problem = problem_of(loop, model)
        if isinstance(problem, Infeasible):
            return problem
        known = IterativeScheduler().schedule(loop, model)
        assert isinstance(known, Schedule), "a problem has a schedule of one stage at least"
        if known.ii <= problem.bounds.mii:  # even where no overlap was found, none is shorter
            return replace(known, notes=())
        if _one_stage(problem):
            return shortest_iteration(problem, known, self.limit)
        return self._by_interval(problem, known)

    def _by_interval(self, problem: Problem, known: Schedule) -> Schedule:
        loop, undecided, left = problem.loop, list[int](), self.limit
        making = _MAKING * (len(loop.edges) + sum(len(op.footprint) for op in loop.ops))
        for ii in range(problem.bounds.mii, known.ii):
            table = ReservationTable(ii, problem.model)
            if not all(table.fits(op.footprint) for op in loop.ops):
                continue
            if problem.exclusions.excluded(ii):
                continue
            if left <= 0:
                undecided += [ii, known.ii - 1]
                break
            start, spent = _solve(problem, ii, left)
            left -= spent + making
            if isinstance(start, tuple) and start:
                return Schedule(start, ii, notes=_doubt(undecided))
            if start is None:
                undecided.append(ii)
        return Schedule(known.start, known.ii, notes=_doubt(undecided))


def _one_stage(problem: Problem) -> bool:
    """Whether iterations follow one another and no use of a resource is longer than any of them."""
    loop = problem.loop
    if loop.is_loop and loop.options.max_stages != 1:
        return False
    return max((op.duration for op in loop.ops), default=0) <= problem.bounds.mii


def _solve(problem: Problem, ii: int, limit: float) -> tuple[tuple[int, ...] | None, float]:
    """Starts at `ii`, () if there are none, None if that is not known; deterministic time taken."""
    loop, cp_model = problem.loop, _cp_sat()
    model = cp_model.CpModel()
    horizon = _horizon(problem, ii)
    cycles = [model.new_int_var(0, ii - 1, f"cycle{op}") for op in range(len(loop.ops))]
    stages, starts = [], []
    for op, node in enumerate(loop.ops):
        last = depth_limit(loop, node.constraints.max_depth)
        most = horizon // ii if last is None else min(last, horizon // ii)
        stages.append(model.new_int_var(0, most, f"stage{op}"))
        starts.append(stages[op] * ii + cycles[op])
    for edge in loop.edges:
        model.add(starts[edge.dst] + ii * edge.distance >= starts[edge.src] + edge.latency)
    _joint(model, problem, stages)
    _resources(model, problem, ii, cycles)
    model.minimize(sum(starts))
    solver = _solver(cp_model, limit)
    status = solver.solve(model)
    spent = solver.response_proto.deterministic_time
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return tuple(int(solver.value(start)) for start in starts), spent
    return () if status == cp_model.INFEASIBLE else None, spent


def shortest_iteration(problem: Problem, known: Schedule, limit: float) -> Schedule:
    """The shortest interval of one stage, then the least total start at that one; `known` bounds
    it, and is the answer if nothing better is found within the limit.
    """
    loop, cp_model = problem.loop, _cp_sat()
    model = cp_model.CpModel()
    ii = model.new_int_var(problem.bounds.mii, known.ii, "ii")
    starts = [model.new_int_var(0, known.ii - 1, f"start{op}") for op in range(len(loop.ops))]
    for start, at in zip(starts, known.start, strict=True):
        model.add(start + 1 <= ii)
        model.add_hint(start, at)
    for edge in loop.edges:
        model.add(starts[edge.dst] + edge.distance * ii >= starts[edge.src] + edge.latency)
    _wrapping_resources(model, problem, ii, starts, known.ii)
    model.minimize(ii)
    solver = _solver(cp_model, limit)
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Schedule(known.start, known.ii, notes=_doubt([problem.bounds.mii, known.ii - 1]))
    interval, least = int(solver.value(ii)), ceil(solver.best_objective_bound)
    undecided = [] if status == cp_model.OPTIMAL else [least, interval - 1]
    found = tuple(int(solver.value(start)) for start in starts)
    model.add(ii == interval)
    model.minimize(sum(starts))
    model.clear_hints()
    for start, at in zip(starts, found, strict=True):
        model.add_hint(start, at)
    solver = _solver(cp_model, min(_TIDYING, limit))
    if solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found = tuple(int(solver.value(start)) for start in starts)
    return Schedule(found, interval, notes=_doubt(undecided))


def _wrapping_resources(
    model: Any, problem: Problem, ii: Any, starts: list[Any], longest: int
) -> None:
    """One cumulative constraint per resource, for an interval that is a variable: what is held on
    beyond its end is held at the begin of the next one.
    """
    asked: dict[str, list[tuple[Any, int]]] = {}
    for op, node in enumerate(problem.loop.ops):
        for use in node.footprint:
            around = model.new_int_var(-longest, longest + use.at, "")
            model.add(around == starts[op] + use.at - ii)
            for first in (starts[op] + use.at, around):
                interval = model.new_fixed_size_interval_var(first, use.cycles, "")
                asked.setdefault(use.resource, []).append((interval, use.amount))
    for resource, uses in sorted(asked.items()):
        room = problem.model.capacity(resource)
        model.add_cumulative([i for i, _ in uses], [a for _, a in uses], room)


def _solver(cp_model: Any, limit: float) -> Any:
    """One that gives the same answer every time."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = limit
    return solver


def _doubt(undecided: list[int]) -> tuple[str, ...]:
    """What to say about intervals that could not be decided."""
    if not undecided:
        return ()
    return (f"not proven shortest: undecided from {undecided[0]} to {undecided[-1]}",)


def _horizon(problem: Problem, ii: int) -> int:
    """A last cycle that some schedule at `ii` keeps to, if there is one at all.

    Shifting ops by whole intervals changes no resource, so each can be pulled to less than an
    interval behind what it waits for: no start lies beyond all latencies and n intervals.
    """
    return longest_interval(problem.loop) + ii * len(problem.loop.ops)


def _joint(model: Any, problem: Problem, stages: list[Any]) -> None:
    groups = problem.groups
    for members, joint in zip(groups.members, groups.joint, strict=True):
        for other in members[1:] if joint else ():
            model.add(stages[other] == stages[members[0]])


def _resources(model: Any, problem: Problem, ii: int, cycles: list[Any]) -> None:
    """One cumulative constraint per resource.

    A use that wraps over the end of the interval comes a second time an interval earlier; in the
    interval itself the two together are the modulo table, outside they only repeat parts of it.
    """
    asked: dict[str, list[tuple[Any, int]]] = {}
    constant: dict[str, int] = {}
    for op, node in enumerate(problem.loop.ops):
        for use in node.footprint:
            whole, rest = divmod(use.cycles, ii)
            if whole:
                constant[use.resource] = constant.get(use.resource, 0) + whole * use.amount
            if not rest:
                continue
            first = cycles[op] + use.at % ii
            for shift in (0, -ii, -2 * ii) if use.at % ii else (0, -ii):
                interval = model.new_fixed_size_interval_var(first + shift, rest, "")
                asked.setdefault(use.resource, []).append((interval, use.amount))
    for resource in sorted(set(asked) | set(constant)):
        room = problem.model.capacity(resource) - constant.get(resource, 0)
        uses = asked.get(resource, [])
        model.add_cumulative([i for i, _ in uses], [a for _, a in uses], room)


def _cp_sat() -> Any:
    """OR-tools' CP-SAT.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise ConfigurationError(
            "the scheduler 'exact' needs OR-tools, which is not installed",
            hint="pip install 'tile-sched[exact]'",
        ) from error
    return cp_model

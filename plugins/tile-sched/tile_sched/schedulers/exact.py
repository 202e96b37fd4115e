"""`exact`: the shortest interval there is, by OR-tools' CP-SAT; the yardstick of the others."""

from __future__ import annotations

from typing import Any, ClassVar

from tile_core.diagnostics import ConfigurationError
from tile_core.sched import Infeasible, LoopGraph, MachineModel, ReservationTable, Schedule
from tile_sched.graph.bounds import depth_limit, longest_interval
from tile_sched.schedulers.ims import IterativeScheduler
from tile_sched.schedulers.serial import SerialScheduler
from tile_sched.search import Problem, problem_of

#: Deterministic time (CP-SAT's own unit, about a second) for all intervals of a loop.
LIMIT = 30.0


class ExactScheduler:
    """Interval by interval from the lower bound, each proven infeasible or solved.

    Intervals from that of `ims` on are not tried, since it has a schedule. Below, among those of
    the shortest interval, one of least total start. Intervals that shared resources exclude
    (`Exclusions`) need no solver. If an interval cannot be decided within the limit, the answer
    says so in its notes and is not proven optimal.
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
        undecided: list[int] = []
        known = IterativeScheduler().schedule(loop, model)
        assert isinstance(known, Schedule), "a problem has a schedule of one stage at least"
        left = self.limit
        for ii in range(problem.bounds.mii, known.ii):
            table = ReservationTable(ii, model)
            if not all(table.fits(op.footprint) for op in loop.ops):
                continue
            if problem.exclusions.excluded(ii):
                continue
            start, spent = _solve(problem, ii, left) if left > 0 else (None, 0.0)
            left -= spent
            if isinstance(start, tuple) and start:
                return Schedule(start, ii, notes=_doubt(undecided))
            if start is None:
                undecided.append(ii)
        return Schedule(known.start, known.ii, notes=_doubt(undecided))


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
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = limit
    status = solver.solve(model)
    spent = solver.response_proto.deterministic_time
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return tuple(int(solver.value(start)) for start in starts), spent
    return () if status == cp_model.INFEASIBLE else None, spent


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

"""Is it a schedule? Dependences, resources and bounds, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.sched.dsu import joint_groups
from tile_core.sched.graph import Edge, LoopGraph
from tile_core.sched.machine import MachineModel
from tile_core.sched.reservation import ReservationTable
from tile_core.sched.schedule import Schedule


class IncompleteError(ValueError):
    """A schedule does not have one start for every operation."""


@dataclass(frozen=True)
class Violation:
    """One thing wrong with a schedule.

    `rule` is "order", "latency", "resource", "stages", "depth" or "group"; `message` names the
    edge, the cycle of the interval and what is taken there.
    """

    rule: str
    op: int  # the operation it is reported at
    message: str
    edge: Edge | None = None
    resource: str = ""
    row: int | None = None


def violations(loop: LoopGraph, model: MachineModel, schedule: Schedule) -> Iterator[Violation]:
    """Everything wrong with `schedule`, in order of edges, then of operations.

    Raises:
        IncompleteError: not one start for every operation, or an interval below 1.
    """
    if len(schedule.start) != len(loop.ops):
        raise IncompleteError(f"has {len(schedule.start)} starts for {len(loop.ops)} operations")
    if schedule.ii < 1:
        raise IncompleteError(f"has an initiation interval of {schedule.ii}")
    for op, start in enumerate(schedule.start):
        if start < 0:
            raise IncompleteError(f"starts operation {op} in cycle {start}")
    yield from _dependences(loop, schedule)
    yield from _resources(loop, model, schedule)
    yield from _bounds(loop, schedule)
    yield from _groups(loop, schedule)


def _dependences(loop: LoopGraph, schedule: Schedule) -> Iterator[Violation]:
    start, ii = schedule.start, schedule.ii
    for edge in loop.edges:
        at = start[edge.dst] + ii * edge.distance
        if at >= start[edge.src] + edge.latency:
            continue
        late = at < start[edge.src]
        text = (
            f"starts {_op(loop, edge.dst)} in cycle {at}"
            + (f" (iteration {edge.distance})" if edge.distance else "")
            + f", {'before' if late else 'less than its latency after'} {_op(loop, edge.src)} "
            f"in cycle {start[edge.src]}: {edge.kind} edge {edge.src} -> {edge.dst}, latency "
            f"{edge.latency}, distance {edge.distance}"
        )
        yield Violation("order" if late else "latency", edge.dst, text, edge)


def _resources(loop: LoopGraph, model: MachineModel, schedule: Schedule) -> Iterator[Violation]:
    table = ReservationTable(schedule.ii, model)
    for op in sorted(range(len(loop.ops)), key=lambda op: (schedule.start[op], op)):
        uses = loop.ops[op].footprint
        if table.probe(uses, schedule.start[op]):
            table.commit(uses, schedule.start[op])
            continue
        found = table.conflict(uses, schedule.start[op])
        assert found is not None, "probe and conflict disagree"
        use = found.use
        text = (
            f"starts {_op(loop, op)} in cycle {schedule.start[op]}, but '{found.resource}' is "
            f"taken in cycle {found.row} of the interval of {schedule.ii}: {found.taken} of "
            f"{found.capacity} in use, {use.amount} more wanted for {use.cycles} cycles"
        )
        yield Violation("resource", op, text, resource=found.resource, row=found.row)
        table.commit(uses, schedule.start[op])


def _bounds(loop: LoopGraph, schedule: Schedule) -> Iterator[Violation]:
    most = loop.options.max_stages
    for op, stage in enumerate(schedule.stages):
        depth = loop.ops[op].constraints.max_depth
        if depth is not None and stage > depth:
            text = f"puts {_op(loop, op)} into stage {stage}, but its max_depth is {depth}"
            yield Violation("depth", op, text)
        if most and stage >= most:
            text = f"puts {_op(loop, op)} into stage {stage}, but {most} may be in flight"
            yield Violation("stages", op, text)


def _groups(loop: LoopGraph, schedule: Schedule) -> Iterator[Violation]:
    first: dict[int, int] = {}
    stages = schedule.stages
    for op, group in sorted(joint_groups(loop).items()):
        other = first.setdefault(group, op)
        if stages[op] != stages[other]:
            text = (
                f"puts {_op(loop, op)} into stage {stages[op]}, but its group {group} is in stage "
                f"{stages[other]}, with {_op(loop, other)}"
            )
            yield Violation("group", op, text)


def _op(loop: LoopGraph, op: int) -> str:
    return f"'{loop.ops[op].name}' (#{op})"


def violated_edge(loop: LoopGraph, schedule: Schedule) -> Edge | None:
    """The first dependence, latency included, that `schedule` breaks, or None."""
    return next((found.edge for found in _dependences(loop, schedule)), None)

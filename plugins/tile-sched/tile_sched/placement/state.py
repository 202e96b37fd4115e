"""What is placed so far at one initiation interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from tile_core.sched import Decision, Edge, LoopGraph, MachineModel, ReservationTable
from tile_sched.graph.bounds import depth_limit
from tile_sched.graph.closure import longest_from
from tile_sched.graph.components import depths
from tile_sched.placement.groups import Groups


@dataclass(frozen=True)
class Neighbours:
    """Edges into and out of every op, made once for all intervals."""

    before: tuple[tuple[Edge, ...], ...]
    after: tuple[tuple[Edge, ...], ...]
    depth: tuple[int, ...]  # longest latency from a source within one iteration

    @classmethod
    def of(cls, loop: LoopGraph) -> Neighbours:
        """Those of `loop`."""
        before: list[list[Edge]] = [[] for _ in loop.ops]
        after: list[list[Edge]] = [[] for _ in loop.ops]
        for edge in loop.edges:
            before[edge.dst].append(edge)
            after[edge.src].append(edge)
        return cls(tuple(map(tuple, before)), tuple(map(tuple, after)), tuple(depths(loop)))


@dataclass
class State:
    """One attempt at one interval: starts, the reservation table, groups and their constraints."""

    loop: LoopGraph
    model: MachineModel
    ii: int
    groups: Groups
    near: Neighbours
    surcharges: dict[tuple[int, int], int] = field(default_factory=dict)
    pending: frozenset[int] = frozenset()  # ops held over to a later attempt
    delays: tuple[int, ...] = ()  # cycles each op waits at least, where that is asked for

    def __post_init__(self) -> None:
        self.table = ReservationTable(self.ii, self.model)
        self.start: list[int | None] = [None] * len(self.loop.ops)
        self.decisions: list[Decision] = []
        self._reach: dict[int, dict[int, int]] = {}

    @cached_property
    def footprints(self) -> tuple[tuple, ...]:
        """What every op holds."""
        return tuple(op.footprint for op in self.loop.ops)

    # --- where an op may go ------------------------------------------------------------------

    def window(self, op: int) -> tuple[int, int]:
        """First and last cycle to try: after placed sources, before placed users, one interval.

        Joint groups stay in the stage that their first member was given.
        """
        start, ii = self.start, self.ii
        first = self.delays[op] if self.delays else 0
        last: int | None = None
        for edge in self.near.before[op]:
            at = start[edge.src]
            if edge.src == op:
                if edge.latency > ii * edge.distance:
                    return 0, -1
            elif at is not None:
                first = max(first, at + edge.latency - ii * edge.distance)
        for edge in self.near.after[op]:
            at = start[edge.dst]
            if at is not None and edge.dst != op:
                bound = at - edge.latency + ii * edge.distance
                last = bound if last is None else min(last, bound)
        stage = self.group_stage(op)
        if stage is not None:
            first = max(first, stage * ii)
            last = stage * ii + ii - 1 if last is None else min(last, stage * ii + ii - 1)
        end = first + ii - 1
        return first, end if last is None else min(end, last)

    def group_stage(self, op: int) -> int | None:
        """The stage that placed members of the op's joint group are in; None if there is none."""
        group = self.groups.of[op]
        if not self.groups.joint[group]:
            return None
        for other in self.groups.members[group]:
            at = self.start[other]
            if at is not None and other != op:
                return at // self.ii
        return None

    def limit(self, op: int) -> int | None:
        """The last stage the op may be in."""
        return depth_limit(self.loop, self.loop.ops[op].constraints.max_depth)

    def reach(self, op: int) -> dict[int, int]:
        """Longest weights from `op` to others at this interval."""
        if op not in self._reach:
            self._reach[op] = longest_from(op, self.near.after, self.ii)
        return self._reach[op]

    # --- placing -----------------------------------------------------------------------------

    def place(self, op: int, cycle: int) -> None:
        """Seat `op` at `cycle`, which has been probed."""
        self.table.commit(self.footprints[op], cycle)
        self.start[op] = cycle

    def unplace(self, op: int) -> None:
        """Take `op` out again."""
        at = self.start[op]
        assert at is not None, "it is not placed"
        self.table.release(self.footprints[op], at)
        self.start[op] = None

    def savepoint(self) -> tuple[list[int | None], dict[str, list[int]]]:
        """What `rollback` needs."""
        return list(self.start), self.table.savepoint()

    def rollback(self, saved: tuple[list[int | None], dict[str, list[int]]]) -> None:
        """Back to where `saved` was taken."""
        self.start = list(saved[0])
        self.table.rollback(saved[1])

    def note(self, arm: str, op: int, cycle: int | None, gate: str = "",
             cost: tuple[int, ...] = (), text: str = "") -> None:  # fmt: skip
        """Keep a decision, if a trace is wanted."""
        if self.loop.options.trace:
            self.decisions.append(Decision(self.ii, arm, op, cycle, gate, cost, text))

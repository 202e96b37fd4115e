"""What a scheduler returns, and what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from tile_core.sched.graph import LoopGraph, topological_order
from tile_core.sched.machine import MachineModel


@dataclass(frozen=True)
class Decision:
    """One step of a scheduler, for traces: what was tried where, and what became of it."""

    ii: int
    arm: str
    op: int
    cycle: int | None  # None: no seat was found
    gate: str = ""  # gate that refused, if one did
    cost: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Schedule:
    """`start[i]` is the cycle of op i within iteration 0; `ii` the initiation interval, cycles.

    The stage of op i is `start[i] // ii`; within a stage, ops issue by (start, program order).
    """

    start: tuple[int, ...]
    ii: int
    decisions: tuple[Decision, ...] = field(default=(), compare=False, repr=False)
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)  # remarks for the user

    @property
    def num_stages(self) -> int:
        """How many iterations are in flight."""
        return max((s // self.ii for s in self.start), default=0) + 1

    @property
    def stages(self) -> tuple[int, ...]:
        """The stage of every op."""
        return tuple(s // self.ii for s in self.start)

    def order(self) -> tuple[int, ...]:
        """Op indices in issue order of one iteration."""
        return tuple(sorted(range(len(self.start)), key=lambda i: (self.start[i], i)))


def stage_orders(schedule: Schedule) -> tuple[tuple[int, int], ...]:
    """(stage, order) of every op; order is its rank in the stage by (cycle, program order)."""
    found = [(0, 0)] * len(schedule.start)
    rank: dict[int, int] = {}
    for op in schedule.order():
        stage = schedule.start[op] // schedule.ii
        found[op] = (stage, rank.get(stage, 0))
        rank[stage] = rank.get(stage, 0) + 1
    return tuple(found)


def body_order(loop: LoopGraph, schedule: Schedule) -> tuple[int, ...]:
    """Ops in the order one agent issues them in the steady state.

    By cycle within the interval, later stages (older iterations) first, then as they depend on
    one another. Emitting by (stage, order) instead would break loop-carried edges.
    """
    order = topological_order(loop) or range(len(loop.ops))
    index = {op: at for at, op in enumerate(order)}
    ii = schedule.ii
    return tuple(
        sorted(index, key=lambda op: (schedule.start[op] % ii, -(schedule.start[op] // ii),
                                      index[op]))
    )  # fmt: skip


@dataclass(frozen=True)
class Infeasible:
    """No schedule, and why."""

    reason: str
    decisions: tuple[Decision, ...] = field(default=(), compare=False, repr=False)


class Scheduler(Protocol):
    """A strategy that orders the operations of a body."""

    name: ClassVar[str]

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        """Start cycles for every op of `loop`."""
        ...


@runtime_checkable
class Composed(Protocol):
    """A scheduler made of parts that plugins can replace (`tile_schedule_parts`)."""

    def composed(self, parts: Sequence[Any]) -> Self:
        """The scheduler with `parts` in place of its own of the same kind."""
        ...

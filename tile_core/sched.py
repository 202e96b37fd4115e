"""What schedulers exchange with the passes: a plain loop graph, a machine model, a schedule.

No MLIR here. A scheduler is a class with a `name` and a `schedule` method, registered through
`tile_schedulers`; it must be deterministic, and ties go by program order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol


@dataclass(frozen=True)
class LoopOp:
    """One operation of a loop body (or straight-line block), in program order."""

    name: str  # operation name, for messages
    kind: str  # "load", "store", "mma", "compute", "barrier", "control"
    latency: int  # cycles from issue until a result can be used
    occupancy: int = 1  # cycles it keeps its unit busy
    unit: str = "alu"  # functional unit of the machine model


@dataclass(frozen=True)
class Edge:
    """`dst` may start no earlier than `latency` cycles after `src`, `distance` iterations later."""

    src: int
    dst: int
    latency: int
    distance: int = 0


@dataclass(frozen=True)
class LoopGraph:
    """The dependences of one body: data, memory and loop-carried."""

    ops: tuple[LoopOp, ...]
    edges: tuple[Edge, ...]
    is_loop: bool = True
    trip_count: int | None = None  # iterations, where known


@dataclass(frozen=True)
class MachineModel:
    """The units of one SM that a schedule competes for."""

    target: str  # "sm_90"
    units: tuple[tuple[str, int], ...]  # unit -> how many operations per cycle
    num_warps: int


@dataclass(frozen=True)
class Schedule:
    """`start[i]` is the cycle of op i within iteration 0; `ii` the initiation interval, cycles.

    The stage of op i is `start[i] // ii`; within a stage, ops issue by (start, program order).
    """

    start: tuple[int, ...]
    ii: int

    @property
    def num_stages(self) -> int:
        """How many iterations are in flight."""
        return max((s // self.ii for s in self.start), default=0) + 1

    def order(self) -> tuple[int, ...]:
        """Op indices in issue order of one iteration."""
        return tuple(sorted(range(len(self.start)), key=lambda i: (self.start[i], i)))


@dataclass(frozen=True)
class Infeasible:
    """No schedule, and why."""

    reason: str


class Scheduler(Protocol):
    """A strategy that orders the operations of a body."""

    name: ClassVar[str]

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        """Start cycles for every op of `loop`."""
        ...


def violated_edge(loop: LoopGraph, schedule: Schedule) -> Edge | None:
    """The first dependence that `schedule` breaks in order of issue, or None.

    Checked for every schedule before it is materialised, whoever made it: for distance 0 the
    source must come earlier in the issue order, otherwise within `distance` initiation intervals.
    """
    position = {op: at for at, op in enumerate(schedule.order())}
    for edge in loop.edges:
        if edge.distance == 0:
            if position[edge.src] >= position[edge.dst]:
                return edge
        elif schedule.start[edge.dst] + edge.distance * schedule.ii < schedule.start[edge.src]:
            return edge
    return None

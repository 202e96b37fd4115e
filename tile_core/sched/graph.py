"""The dependence graph of a body: operations, what they hold and for how long, and edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush


@dataclass(frozen=True)
class Use:
    """`amount` of `resource` is held for `cycles` cycles, from `at` cycles after the issue."""

    resource: str
    cycles: int
    amount: int = 1
    at: int = 0


@dataclass(frozen=True)
class Constraints:
    """What a program asks about one operation; None where it does not.

    `gid` names a group, `leader_gid` the group that leads it: groups joined by their leaders stay
    in one stage. `max_depth` is the last stage the operation may be in. The others are for
    rematerialisation.
    """

    gid: int | None = None
    leader_gid: int | None = None
    max_depth: int | None = None
    force_serial_execution: bool = False
    recomputable: bool = False
    enable_defusion: bool = False
    preferred_atom_size: int | None = None
    max_num_slices: int | None = None
    max_num_of_recomputations: int | None = None


NO_CONSTRAINTS = Constraints()


@dataclass(frozen=True)
class LoopOp:
    """One operation of a loop body (or straight-line block), in program order.

    Without `uses` it keeps `unit` busy for `occupancy` cycles.
    """

    name: str  # operation name, for messages
    #: "load", "store", "mma", "compute", "barrier", "control"; "staged": a load that another pass
    #: lets run ahead of its loop
    kind: str
    latency: int  # cycles from issue until a result can be used
    occupancy: int = 1  # cycles it keeps its unit busy
    unit: str = "alu"  # functional unit of the machine model
    uses: tuple[Use, ...] | None = None
    constraints: Constraints = NO_CONSTRAINTS
    registers: int = 0  # 32-bit registers per thread that its results take
    shared_bytes: int = 0  # bytes of shared memory per stage that its results take
    memory_bytes: int = 0  # bytes it moves from or to global memory, and that nobody moved before
    where: str = ""  # place in the user's source, for people

    @property
    def footprint(self) -> tuple[Use, ...]:
        """The resources it holds; empty for what costs nothing."""
        if self.uses is not None:
            return self.uses
        return (Use(self.unit, self.occupancy),) if self.unit and self.occupancy > 0 else ()

    @property
    def duration(self) -> int:
        """Cycles until its last resource is free again."""
        return max((use.at + use.cycles for use in self.footprint), default=0)


@dataclass(frozen=True)
class Edge:
    """`dst` may start no earlier than `latency` cycles after `src`, `distance` iterations later."""

    src: int
    dst: int
    latency: int
    distance: int = 0
    kind: str = field(default="data", compare=False)  # "data", "memory", "order", "ring", "mutex"


@dataclass(frozen=True)
class Handle:
    """What operation `op` does to the memory called `name`, a buffer that several work on."""

    name: str
    op: int
    writes: bool
    reads: bool = False


@dataclass(frozen=True)
class ScheduleOptions:
    """What the pipeline asks of whichever scheduler runs; a scheduler may leave it unheeded."""

    max_stages: int = 0  # iterations in flight at most; 0: no bound
    max_constraint_iterations: int = 10
    rrt_size_threshold: int = 4096  # rows of a reservation table; 0: never quantised
    heed_occupancy: bool = False  # overlap only where other warps do not hide latency already
    random_delay: bool = False  # delay operations at random (fixed seed), to look for bugs
    trace: bool = False  # keep decisions


DEFAULT_OPTIONS = ScheduleOptions()


@dataclass(frozen=True)
class LoopGraph:
    """The dependences of one body: data, memory and loop-carried."""

    ops: tuple[LoopOp, ...]
    edges: tuple[Edge, ...]
    is_loop: bool = True
    trip_count: int | None = None  # iterations, where known
    options: ScheduleOptions = DEFAULT_OPTIONS
    name: str = ""  # the kernel and the loop, for people
    handles: tuple[Handle, ...] = ()  # buffers, in program order


def topological_order(loop: LoopGraph) -> tuple[int, ...] | None:
    """Operations after all they depend on within an iteration, else in program order.

    None where they depend on one another in a circle at distance 0.
    """
    after: list[list[int]] = [[] for _ in loop.ops]
    waiting = [0] * len(loop.ops)
    for edge in loop.edges:
        if edge.distance == 0:
            after[edge.src].append(edge.dst)
            waiting[edge.dst] += 1
    ready = [op for op, blocked in enumerate(waiting) if not blocked]
    heapify(ready)
    found: list[int] = []
    while ready:
        op = heappop(ready)
        found.append(op)
        for dst in after[op]:
            waiting[dst] -= 1
            if not waiting[dst]:
                heappush(ready, dst)
    return tuple(found) if len(found) == len(loop.ops) else None

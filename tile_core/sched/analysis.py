"""What the pass that makes schedules hands on to the one that makes code of them. Plain data.

It is the only channel between the two, cached by the pass manager: passes in between have to
preserve it, or are refused (Tile IR specification, "Scheduler overview": analysis handoff). What
stands on operations as attributes is the same in a form that can be read, edited and read back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tile_core.sched.graph import LoopGraph
from tile_core.sched.machine import MachineModel
from tile_core.sched.schedule import Schedule, body_order, stage_orders

#: What passes call it in `publishes`, `accepts` and `preserves`.
SCHEDULE_ANALYSIS = "ScheduleAnalysis"


@dataclass(frozen=True)
class Ring:
    """A value or buffer that crosses stages: `depth` slots, used in turn (the page's Pipe_).

    A slot is written by all of `producers`, in order, before any of `consumers` reads it.
    """

    name: str  # "Pipe_0"
    producers: tuple[int, ...]
    consumers: tuple[int, ...]
    depth: int
    registers: int = 0  # 32-bit registers per thread that one slot takes

    @property
    def canonical(self) -> int:
        """The operation that the ring belongs to."""
        return self.producers[0]


@dataclass(frozen=True)
class Mutex:
    """Operations of which those of one iteration are done before those of the next begin."""

    name: str  # "Mutex_0"
    ops: tuple[int, ...]


@dataclass(frozen=True)
class ScheduledBlock:
    """One body, its schedule, and who made it."""

    name: str  # "kernel/loop1"
    strategy: str  # scheduler, or the file it is from
    graph: LoopGraph
    model: MachineModel
    schedule: Schedule
    rings: tuple[Ring, ...] = ()
    mutexes: tuple[Mutex, ...] = ()

    @property
    def ii(self) -> int:
        """Cycles from one iteration to the next."""
        return self.schedule.ii

    @property
    def num_stages(self) -> int:
        """Iterations in flight."""
        return self.schedule.num_stages

    @cached_property
    def stage_orders(self) -> tuple[tuple[int, int], ...]:
        """(stage, order) of every operation: a strict total order."""
        return stage_orders(self.schedule)

    @cached_property
    def body(self) -> tuple[int, ...]:
        """Operations in the order one agent issues them in the steady state."""
        return body_order(self.graph, self.schedule)


@dataclass(frozen=True)
class ScheduleAnalysis:
    """The schedules of a function's bodies."""

    blocks: tuple[ScheduledBlock, ...]

    def block(self, name: str) -> ScheduledBlock | None:
        """The block called `name`, without the kernel: "loop1"."""
        return next((b for b in self.blocks if b.name.rsplit("/", 1)[-1] == name), None)

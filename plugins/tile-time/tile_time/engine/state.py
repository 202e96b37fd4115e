"""What the engine keeps: warps, CTAs, mbarriers, the shared parts of an SM."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_core.machines import Machine
from tile_time.actions import Action
from tile_time.engine.ops import PIPES, Op

# The way to a moment: (the way before, key = line << 4 | cause, clk). Ways share their past, so a
# waiter goes on from the way of the one it waited for, and the last warp's is the critical path.
Way = tuple[Any, int, float] | None


@dataclass(eq=False, slots=True)
class Warp:
    """A warp on an SM. `boards` are six scoreboards: when released, and what for."""

    cta: Cta
    number: int
    sub: int
    sm: Sm
    actions: Sequence[Action]
    time: float
    way: Way
    action: int = -1
    ops: Sequence[Op] = ()
    notes: tuple[Any, ...] = ()
    at: int = 0
    boards: list[float] = field(default_factory=lambda: [0.0] * 6)
    board_cause: list[int] = field(default_factory=lambda: [1] * 6)
    copies_open: float = 0.0
    copies: list[tuple[float, float, int]] = field(default_factory=list)  # done, read, cause
    copies_read: float = 0.0
    copies_cause: int = 1
    products: list[float] = field(default_factory=list)
    product_open: float = 0.0
    tensor_end: float = 0.0
    tensor_way: Way = None
    joined: int = -1  # generation of the cluster's barrier that the warp has arrived at
    done: bool = False


@dataclass(eq=False, slots=True)
class Phase:
    """An mbarrier: what is pending in the current phase, and who waits for its end."""

    expected: int
    pending: int
    tx: int = 0
    phase: int = 0
    waiting: list[tuple[Warp, Op, float]] = field(default_factory=list)
    way: Way = None
    changed: float = 0.0


@dataclass(eq=False, slots=True)
class Named:
    """A named barrier of a CTA."""

    arrived: int = 0
    waiting: list[tuple[Warp, float, Op]] = field(default_factory=list)
    last: float = 0.0
    way: Way = None
    generation: int = 0  # of a cluster's barrier: arriving and waiting are two instructions
    opened: float = 0.0


@dataclass(eq=False)
class Cta:
    """A CTA: its warps, barriers, and what it holds of the SM."""

    number: int  # in the cluster
    cluster: Cluster
    sm: Sm
    warps: list[Warp] = field(default_factory=list)
    phases: dict[int, Phase] = field(default_factory=dict)
    named: dict[int, Named] = field(default_factory=dict)
    left: int = 0


@dataclass(eq=False)
class Cluster:
    """CTAs that start together, each on an SM of its own."""

    number: int
    ctas: list[Cta] = field(default_factory=list)
    left: int = 0
    start: float = 0.0
    end: float = 0.0
    joined: Named = field(default_factory=Named)


class Sm:
    """The pipes and engines of one SM, each by the time from which it is free again."""

    def __init__(self, machine: Machine, active: float, mhz: float) -> None:
        subs = int(machine.chip.sub_cores)
        self.slot = [0.0] * subs  # issue of a sub-core
        self.pipes = [[0.0] * len(PIPES) for _ in range(subs)]
        self.tensor = [0.0] * subs
        self.memory_front = 0.0
        self.shared_port = 0.0
        self.copy_engine = 0.0
        self.tensor_unit = 0.0
        self.l2_free = 0.0
        self.dram_free = 0.0
        # This SM's part of what the chip shares.
        self.l2_rate = min(machine.memory.l2_port, machine.memory.l2_bandwidth / active)
        self.dram_rate = machine.dram_bytes_per_clk(mhz) / active
        self.fills: deque[tuple[float, float, float]] = deque(maxlen=64)  # start, end, B/clk
        self.busy: dict[str, float] = {}

    def use(self, what: str, amount: float) -> None:
        """Count for shares of roofs: clk, or bytes."""
        self.busy[what] = self.busy.get(what, 0.0) + amount

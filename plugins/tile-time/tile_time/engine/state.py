"""What the engine keeps: warps, CTAs, mbarriers, the shared parts of an SM."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any

from tile_core.machines import Machine
from tile_time.actions import Action
from tile_time.engine.ops import ISSUE, LATENCY, PIPES, Op

#: DRAM's load is that of so many latencies; a queue of that load is the longest that is modelled
#: beside the bandwidth.
_REMEMBERED, _MOST_LOAD = 4.0, 0.8

# The way to a moment: (the way before, key = line << 4 | cause, clk), or of an instruction (the way
# before, line << 4, clk waited, cause of that, stall). Ways share their past, so a waiter goes on
# from the way of the one it waited for, and the last warp's is the critical path.
Way = tuple[Any, int, float] | tuple[Any, int, float, int, float] | None


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


class Share:
    """An SM's part of a server that all SMs of the chip share: L2 or DRAM.

    While others want none, an SM gets more than its part; how much that is follows from how far the
    SMs are apart in what they do. They start together, and whoever has waited in a queue leaves it
    with the SMs spread over its length, as those that were served first go on first. So what the
    part was idle within the longest queue so far is made up for, and no more: bursts of an SM go
    by what the chip has left, and in the long run nobody gets more than the part. (The queue is
    this server's own: a slower one would else make way for another.)
    """

    __slots__ = ("free", "rate", "spread")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.free = self.spread = 0.0

    def take(self, t: float, size: float) -> float:
        """Serve bytes asked for at `t`; when the last of them has passed, at the earliest."""
        self.free = max(t - self.spread, self.free) + size / self.rate
        self.spread = max(self.spread, self.free - t)
        return max(self.free, t)


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
        self.l2_port = 0.0
        self.port_rate = machine.memory.l2_port
        self.l2 = Share(machine.memory.l2_bandwidth / active)
        self.dram = Share(machine.dram_bytes_per_clk(mhz) / active)
        self.dram_load = 0.0  # of late, as a part of what DRAM gives
        self.dram_seen = 0.0
        self.dram_wait = machine.memory.dram_wait
        self.dram_memory = _REMEMBERED * machine.memory.dram_latency
        self.fills: deque[tuple[float, float, float]] = deque(maxlen=64)  # start, end, B/clk
        self.busy: dict[str, float] = {}

    def through_l2(self, t: float, size: float) -> float:
        """Bytes through the SM's port of L2 and its part of it; when the last has passed."""
        self.l2_port = max(t, self.l2_port) + size / self.port_rate
        self.use("L2", size)
        return max(self.l2_port, self.l2.take(t, size))

    def through_dram(self, t: float, size: float) -> float:
        """Bytes through the SM's part of DRAM; when the last has passed.

        Requests of all SMs meet at banks and channels: the wait grows with the load as that of a
        queue, long before the bandwidth is used up (bytes in flight against bandwidth, published).
        """
        self.use("DRAM", size)
        if t > self.dram_seen:
            self.dram_load *= exp((self.dram_seen - t) / self.dram_memory)
            self.dram_seen = t
        self.dram_load += size / self.dram.rate / self.dram_memory
        load = min(self.dram_load, _MOST_LOAD)
        return self.dram.take(t, size) + self.dram_wait * load / (1.0 - load)

    def use(self, what: str, amount: float) -> None:
        """Count for shares of roofs: clk, or bytes."""
        self.busy[what] = self.busy.get(what, 0.0) + amount


def summed(way: Way) -> dict[int, float]:
    """Clk of a way by line and cause, from its end on."""
    path: dict[int, float] = {}
    while way is not None:
        if len(way) == 3:
            way, key, clk = way
        else:
            way, key, waited, cause, stall = way
            # Stall counts are the compiler's fixed latencies; the first clk is the issue itself.
            if stall > 1:
                path[key | LATENCY] = path.get(key | LATENCY, 0.0) + (stall - 1.0)
            path[key | ISSUE] = path.get(key | ISSUE, 0.0) + 1.0
            key, clk = key | cause, waited
            if clk <= 0.0:
                continue
        path[key] = path.get(key, 0.0) + clk
    return path

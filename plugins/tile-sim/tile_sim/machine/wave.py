"""The state of the CTAs that are resident at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import length_hint
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_sim.machine.access import (
    UNWRITTEN_BYTE,
    Part,
    Space,
    same_values,
    without_repeats,
)
from tile_sim.machine.asyncs import AsyncQueue
from tile_sim.machine.barriers import Barriers
from tile_sim.machine.copies import CopyQueue
from tile_sim.machine.group import LANES, Group
from tile_sim.machine.mbarrier import Barriers64
from tile_sim.machine.tensorloads import TensorLoads
from tile_sim.machine.tmem import TensorMemory
from tile_sim.machine.unmade import follows
from tile_sim.machine.warpgroups import ProductQueue
from tile_sim.program.layout import RANK_SHIFT, SHARED_START, SHARED_UNIT, align_up
from tile_sim.program.types import STORAGE

if TYPE_CHECKING:
    from tile_sim.machine.counters import Counters
    from tile_sim.machine.memory import GlobalMemory
    from tile_sim.machine.orders import Order
    from tile_sim.machine.scheduler import Scheduler
    from tile_sim.machine.trace import Trace
    from tile_sim.program.program import Program

Array = np.ndarray
Dim = tuple[int, int, int]
# What a register holds before it is written: a pattern that is no plausible value.
_POISON = {1: 0, 8: 0xA5, 16: 0x7F4D, 32: 0x7FA5_C0DE, 64: 0x7FF4_DEAD_C0DE_F00D}


@dataclass(frozen=True)
class Shape:
    """Extents of a launch: grid in CTAs, block in threads, cluster in CTAs."""

    grid: Dim
    block: Dim
    cluster: Dim
    explicit_cluster: bool
    dynamic_shared: int

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_cta(self) -> int:
        return -(-self.threads // 32)

    @property
    def cluster_size(self) -> int:
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @property
    def ctas(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def cta_coordinates(self) -> Array:
        """`[ctas, 3]`: the CTAs cluster by cluster, in a cluster by rank, x fastest."""
        clusters = [g // c for g, c in zip(self.grid, self.cluster, strict=True)]
        within = _coordinates(self.cluster)
        first = _coordinates((clusters[0], clusters[1], clusters[2])) * np.array(self.cluster)
        return (first[:, None, :] + within[None, :, :]).reshape(-1, 3)


def _coordinates(extent: Dim) -> Array:
    index = np.arange(extent[0] * extent[1] * extent[2])
    x, rest = index % extent[0], index // extent[0]
    return np.stack([x, rest % extent[1], rest // extent[1]], axis=1)


class Backlog:
    """The CTAs of a launch that have not started yet, cluster by cluster."""

    def __init__(self, coordinates: Array, cluster_size: int) -> None:
        self.coordinates = coordinates
        self.cluster_size = cluster_size
        self.first = 0
        self.stop = len(coordinates)

    def launch(self, clusters: int) -> Array:
        """Up to so many clusters, from the front."""
        start = self.first
        self.first = min(self.stop, start + clusters * self.cluster_size)
        return self.coordinates[start : self.first]

    def take(self, cta: int) -> Array | None:
        """The coordinates of the first CTA of the last cluster, which will not be launched: a CTA
        of the launch takes it over.
        """
        if self.first >= self.stop:
            return None
        self.stop -= self.cluster_size
        return self.coordinates[self.stop]


class Apportioned(Backlog):
    """Of clusters that all start, each takes over others of its own: `followers` has the first CTAs
    of those, in the order in which they are taken.
    """

    def __init__(self, coordinates: Array, cluster_size: int, followers: Sequence[Array]) -> None:
        super().__init__(coordinates, cluster_size)
        self._left = [iter(own) for own in followers]

    def take(self, cta: int) -> Array | None:
        return next(self._left[cta // self.cluster_size], None)


@dataclass
class Settings:
    """What stays the same for all waves of a launch."""

    schedule: str = "late"
    seed: int = 0
    check_uninitialised: bool = True
    sm_count: int = 132
    monitor: Any = None
    counters: Counters | None = None
    trace: Trace | None = None
    #: "products", "copies", "values", "addresses", "memory": what is neither computed nor moved,
    #: for who asks only what runs.
    skipped: frozenset[str] = frozenset()
    max_steps: int | None = None
    strict: bool = True


@dataclass(eq=False)
class Wave:
    """Registers, shared and local memory and barriers of `ctas` (rows of `coordinates`)."""

    program: Program
    shape: Shape
    memory: GlobalMemory
    coordinates: Array
    settings: Settings
    output: list[str]
    first_cta: int = 0
    clock: int = 0
    progress: int = 0
    polled: bool = False
    #: Of the strong access that is under way.
    order: Order | None = None
    cursor: Any = None
    async_known: Any = None
    backlog: Backlog | None = None
    zero: int = 0
    extra: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape, ctas = self.shape, len(self.coordinates)
        per = shape.warps_per_cta
        self.ctas, self.warps, self.warps_per_cta = ctas, ctas * per, per
        self.cta_of = np.repeat(np.arange(ctas), per)
        self.warpid = np.tile(np.arange(per, dtype=np.uint32), ctas)[:, None]
        self._identify(per)
        self._make_memory(ctas)
        self._make_registers()
        self.scheduler: Scheduler | None = None
        self.rng = np.random.default_rng(self.settings.seed + self.first_cta)
        self.check_uninitialised = self.settings.check_uninitialised
        self.monitor = self.settings.monitor
        self.counters = self.settings.counters
        self.trace = self.settings.trace
        self.unmade = follows(self)

    # --- identity ---------------------------------------------------------------------------

    def _identify(self, per: int) -> None:
        """Thread, CTA and cluster coordinates, `[warps, 1]` or `[warps, 32]` uint32."""
        shape = self.shape
        linear = self.warpid.astype(np.int64) * 32 + LANES[None, :]
        bx, by = shape.block[0], shape.block[1]
        self.tid = [linear % bx, linear // bx % by, linear // (bx * by)]
        self.live = np.ascontiguousarray(linear < shape.threads)
        self.started = self.live.copy()
        where = [np.repeat(self.coordinates[:, axis], per)[:, None] for axis in range(3)]
        self.ctaid = where
        spread = np.zeros((self.warps, 1), np.int64)
        self.ntid = [spread + n for n in shape.block]
        self.nctaid = [spread + n for n in shape.grid]
        self.cluster_nctaid = [spread + n for n in shape.cluster]
        self.clusterid = [w // c for w, c in zip(where, shape.cluster, strict=True)]
        self.nclusterid = [spread + g // c for g, c in zip(shape.grid, shape.cluster, strict=True)]
        self.cluster_ctaid = [w % c for w, c in zip(where, shape.cluster, strict=True)]
        self.cluster_size = shape.cluster_size
        self.explicit_cluster = int(shape.explicit_cluster)
        rank = self.cta_of % self.cluster_size
        self.cluster_rank = rank[:, None].astype(np.uint32)
        self.cluster_first = self.cta_of - rank
        self.shared_base = (rank.astype(np.uint64) << np.uint64(RANK_SHIFT))[:, None]
        self.smid = ((self.cta_of + self.first_cta) % self.settings.sm_count)[:, None]
        self.sm_count = self.settings.sm_count

    # --- storage ----------------------------------------------------------------------------

    def _make_memory(self, ctas: int) -> None:
        self.dynamic_shared = self.shape.dynamic_shared
        self.shared_start = SHARED_START
        end = self.program.shared_static + self.dynamic_shared
        self.total_shared = end - SHARED_START
        if not self.settings.strict:
            end = align_up(end, SHARED_UNIT)
        fill = 0 if self.settings.monitor is None else UNWRITTEN_BYTE
        self.shared = Space("shared", ctas, end, fill)
        self.local = Space("local", self.warps * 32, align_up(self.program.local_size, 16), fill)
        self.barriers = Barriers(self)
        self.mbarriers = Barriers64(self)
        self.asyncs = AsyncQueue(self, self.settings.schedule)
        self.tmem = TensorMemory(self, self.settings.schedule)
        self.tensor_loads = TensorLoads(self, self.settings.schedule, self.settings.strict)
        self.products = ProductQueue(self, self.settings.schedule)
        self.copies = CopyQueue(self, self.settings.schedule)

    def _make_registers(self) -> None:
        file = self.program.file
        if "memory" in self.settings.skipped:
            # Most are never touched; memory that is not written takes no room.
            kinds = {bits: file.bits.count(bits) for bits in STORAGE}
            whole = {
                bits: iter(np.zeros((count, self.warps, 32), STORAGE[bits]))
                for bits, count in kinds.items()
            }
            self.registers = [next(whole[bits]) for bits in file.bits]
            self.slots = [self.registers[index].view(dtype) for index, dtype in file.slots]
            return
        self.registers = [
            np.full((self.warps, 32), _POISON[bits], STORAGE[bits]) for bits in file.bits
        ]
        self.slots = [self.registers[index].view(dtype) for index, dtype in file.slots]

    # --- hooks ------------------------------------------------------------------------------

    def skips_copy(self) -> bool:
        """Whether the data of the copy that runs, an engine's, are left out."""
        if "copies" not in self.settings.skipped and self.unmade is None:
            return False
        block, steps = self.cursor
        running = block.instrs[len(block.code) - 1 - length_hint(steps)]
        return id(running) not in self.program.made

    def observe(self, kind: str, g: Group, part: Part, count: int) -> None:
        """Tell the checker, the counters and the recorder, where there are any, about an access."""
        if self.counters is not None:
            self.counters.access(self, kind, g, part, count)
        if self.trace is not None:
            self.trace.access(self, kind, g, part, count)
        if self.unmade is not None:
            self.unmade.access(kind, part, count)
        if self.monitor is not None:
            self.monitor.access(kind, g, part, count)

    def observe_write(self, g: Group, part: Part, values: list[Array]) -> None:
        """The same about a store of the values; unless `strict`, threads that write what is there
        already, or the same as another, race with nobody."""
        if self.counters is not None:
            self.counters.access(self, "write", g, part, len(values))
        if self.trace is not None:
            self.trace.access(self, "write", g, part, len(values))
        if self.unmade is not None:
            self.unmade.access("write", part, len(values))
        if self.monitor is not None:
            if self.settings.strict:
                self.monitor.access("write", g, part, len(values))
            else:
                written, silent = same_values(part, values)
                self.monitor.access("write", g, written, len(values), silent)

    def observe_copy(self, g: Group, part: Part, sources: Array, width: int) -> None:
        """The same about `cp.async` to `part`; unless `strict`, threads that copy the same bytes to
        the same place race with nobody."""
        if self.counters is not None:
            self.counters.access(self, "write", g, part, width)
        if self.unmade is not None:
            self.unmade.copied(part, width, sources)
        if self.monitor is not None:
            written = part if self.settings.strict else without_repeats(part, [sources])
            self.monitor.copies.access("write", g, written, width)

    def everyone(self) -> Group:
        mask = None if self.live.all() else self.live.copy()
        return Group(self, np.arange(self.warps), mask)

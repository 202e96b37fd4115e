"""Check mode: races and missing fences, by the happens-before order of the warps.

Every warp has vector clocks (`clocks`). Barriers, mbarriers and atomics on a location pass them on;
two accesses to the same bytes race when at least one writes, not both are atomic, and neither warp
knew of the other's; what a copy accesses counts from its start until somebody has waited for it.
Threads of one warp count as one agent, and only accesses of the same wave are compared: what is
reported is a race, but not every race is reported. The README has a table of what is compared.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from operator import length_hint
from typing import TYPE_CHECKING

import numpy as np

from tile_sim.errors import Where
from tile_sim.machine.access import Part
from tile_sim.machine.barriers import NAMED
from tile_sim.machine.clocks import INITIALISED, ORDERED, PROXIED, PROXY_KINDS, Clocks, Snapshot
from tile_sim.machine.copywatch import CopyWatch
from tile_sim.machine.distinct import by_phase, distinct
from tile_sim.machine.globalwatch import GlobalWatch
from tile_sim.machine.group import Group
from tile_sim.machine.landings import Landings
from tile_sim.machine.mapwatch import MapWatch
from tile_sim.machine.mbarrier import Initialised
from tile_sim.machine.orders import Order, Orders
from tile_sim.machine.registerwatch import RegisterWatch
from tile_sim.machine.shadow import IN_FLIGHT, Shadow
from tile_sim.machine.sources import Sources
from tile_sim.machine.tensorwatch import TensorWatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tile_sim.machine.wave import Wave

Array = np.ndarray
# More locations than this in one atomic instruction are counters, not locks.
_SYNC_LOCATIONS = 64
_WARPS_AT_ONCE = 256
_USED_TOO_EARLY = "use of an mbarrier that another warp initialises"


@dataclass
class Finding:
    """One kind of trouble between two places; `count` accesses showed it."""

    kind: str
    message: str
    where: Where | None
    other: Where | None = None
    count: int = 1

    @property
    def text(self) -> str:
        """Where it is and what is wrong, without how often."""
        place = f"{self.where}: " if self.where else ""
        other = f" (other access: {self.other})" if self.other else ""
        return f"{place}{self.kind}: {self.message}{other}"

    def __str__(self) -> str:
        return f"{self.text} [{self.count} times]" if self.count > 1 else self.text


class Monitor:
    """Watches the waves of one launch and collects findings."""

    # Waves are kept small: clocks are quadratic in warps.
    wave_threads = _WARPS_AT_ONCE * 32

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._known: dict[tuple[str, int, int], Finding] = {}

    # --- waves ------------------------------------------------------------------------------

    def begin(self, wave: Wave) -> None:
        self.wave = wave
        words = wave.shared.stride // 8 * wave.cluster_size
        landings = Landings(wave.cta_of // wave.cluster_size, words)
        self.clocks = Clocks(wave.warps, landings)
        self.orders = Orders(self.clocks, wave)
        self.registers = RegisterWatch(wave.warps, frozenset(wave.program.product_registers))
        self._tensor: TensorWatch | None = None
        self.shared = Shadow(len(wave.shared.bytes))
        self.globals = GlobalWatch(self)
        self.copies = CopyWatch(self)
        self.init_fence_time = np.full(wave.warps, -1, np.int64)
        self.initialised = Initialised(len(wave.mbarriers.words))
        self.maps = MapWatch(self)
        self.sources = Sources(len(wave.shared.bytes))
        #: (map, coordinates) -> a hash of the bytes that the last tensor store took there.
        self.stored: dict[tuple[int, tuple[int, ...]], int] = {}
        self.time = 0

    def end(self, wave: Wave) -> None:
        left = wave.tmem.leaks()
        if left:
            message = f"{left} columns of tensor memory are still allocated at the end"
            self._report("tmem-leak", message, -1, -1, 1)

    @property
    def tensor(self) -> TensorWatch:
        """What is known of tensor memory; made when first used."""
        if self._tensor is None:
            self._tensor = TensorWatch(self, self.wave)
        return self._tensor

    # --- accesses ---------------------------------------------------------------------------

    def access(
        self, kind: str, g: Group, part: Part, count: int, silent: Array | None = None
    ) -> None:
        """A load, store or atomic of the generic proxy; `silent` lanes write what is there."""
        if part.space == "local":
            return
        rows = g.lane_rows()
        if part.pick is not None:
            rows = rows[part.pick]
        size = part.data.dtype.itemsize
        shadow = self.shadow(part)
        at = shadow.spans(part.index * size, size * count)
        warp = np.repeat(rows, at.shape[1])
        at = at.reshape(-1)
        if (order := g.wave.order) is not None:
            self._synchronise(shadow, at, warp, kind, part.space, order)
        elif kind == "read":
            self._read(shadow, at, warp, part.space)
        else:
            same = None if silent is None else np.repeat(silent, len(at) // max(len(silent), 1))
            self._write(shadow, at, warp, part.space, generic=True, silent=same)
            if part.space == "shared":
                self._check_source(at * shadow.granule)

    def shadow(self, part: Part) -> Shadow:
        """What is known of the memory of a part."""
        return self.shared if part.space == "shared" else self.globals.shadow(part.data)

    def _read(
        self, shadow: Shadow, at: Array, warp: Array, space: str, generic: bool = True
    ) -> None:
        self.check_read(shadow, at, warp, space)
        shadow.note_read(at, warp, self.clocks.now(warp), self.place(), generic)

    def check_read(self, shadow: Shadow, at: Array, warp: Array, space: str) -> None:
        """Warps read granules, which others may have written."""
        if not shadow.written:
            return
        self._conflicts(
            f"read of {space} memory", "writes", shadow.writer[at], shadow.write_clock[at],
            shadow.write_place[at], warp,
        )  # fmt: skip
        self._check_copied(shadow, at, warp, f"read of {space} memory")

    def _write(
        self,
        shadow: Shadow,
        at: Array,
        warp: Array,
        space: str,
        generic: bool,
        atomic: bool = False,
        silent: Array | None = None,
    ) -> None:
        writer = shadow.writer[at]
        if silent is not None:
            writer = np.where(silent, -1, writer)
        self._check_write(shadow, at, warp, space, writer, atomic)
        shadow.note_write(at, warp, self.clocks.now(warp), self.place())
        shadow.generic[at], shadow.atomic[at] = generic, atomic
        clash = shadow.writer[at] != warp
        if clash.any() and not atomic:
            message = f"several warps write the same {space} memory in one instruction"
            self._report("race", message, self.place(), self.place(), int(clash.sum()))

    def _check_write(
        self, shadow: Shadow, at: Array, warp: Array, space: str, writer: Array, atomic: bool
    ) -> None:
        """Warps write granules, which others may have read, or the warps `writer` have written."""
        doing = f"write to {space} memory"
        if atomic:
            writer = np.where(shadow.atomic[at], -1, writer)
        if shadow.written:
            clock, place = shadow.write_clock[at], shadow.write_place[at]
            self._conflicts(doing, "writes", writer, clock, place, warp)
        for k in shadow.readers:
            clock, place = shadow.read_clock[k, at], shadow.read_place[k, at]
            self._conflicts(doing, "reads", shadow.reader[k, at], clock, place, warp)
        if shadow.loads.shape[1]:
            self.globals.check_sources(shadow, at, warp)
        self._check_copied(shadow, at, warp, doing)

    def _conflicts(
        self, doing: str, verb: str, other: Array, clock: Array, place: Array, warp: Array
    ) -> None:
        """Report accesses that the warps have not heard of, or that are still in flight, of copies
        that a warp itself began, too."""
        bad = (other >= 0) & (self.clocks.ordered[warp, np.maximum(other, 0)] < clock)
        if not bad.any():
            return
        flying = bad & (clock == IN_FLIGHT)
        kind = {"writes": "destination-in-flight", "reads": "source-overwritten"}[verb]
        message = f"{doing} that a copy still {verb}, which nothing has waited for"
        self._report_each(kind, message, place, flying)
        message = f"{doing} that another warp {verb}"
        self._report_each("race", message, place, bad & ~flying)

    def copy_access(self, kind: str, shadow: Shadow, at: Array, warp: Array, space: str) -> None:
        """`cp.async` of warps reads or writes granules, from now until they have waited."""
        if kind == "read":
            self._read(shadow, at, warp, space)
            for k in range(2):
                shadow.read_clock[k, at] = IN_FLIGHT
            return
        self._write(shadow, at, warp, space, generic=True)
        self._check_source(at * shadow.granule)
        shadow.write_clock[at] = IN_FLIGHT

    def write_in_flight(
        self, shadow: Shadow, at: Array, row: int, combines: bool, again: bool
    ) -> None:
        """A warp starts a copy to granules of global memory; `again` where they get the bytes that
        the last copy gave them."""
        warp = np.full(len(at), row)
        writer = shadow.writer[at]
        if again:
            writer = np.where(shadow.write_clock[at] == IN_FLIGHT, -1, writer)
        self._check_write(shadow, at, warp, "global", writer, combines)
        shadow.note_write(at, warp, IN_FLIGHT, self.place())
        shadow.generic[at], shadow.atomic[at] = False, combines

    def _check_copied(self, shadow: Shadow, at: Array, warp: Array, doing: str) -> None:
        """Warps know that copies which signal mbarriers have filled what they access."""
        if not len(shadow.signalled):
            return
        slot = shadow.signalled[at]
        heard = self.clocks.landings.heard[warp, slot]
        bad = (slot >= 0) & (heard < shadow.phase[at])
        if bad.any():
            message = f"{doing} that a copy fills, whose mbarrier nothing has waited for"
            other = int(shadow.write_place[at][bad][0])
            self._report("missing-mbarrier-wait", message, self.place(), other, int(bad.sum()))

    def unordered(
        self, kind: str, message: str, other: Array, clock: Array, other_place: Array, warp: Array,
        heard: Array,
    ) -> None:  # fmt: skip
        """Report accesses of other warps that this warp has not `heard` of (`[warps, warps]`)."""
        known = heard[warp, np.maximum(other, 0)]
        bad = (other >= 0) & (other != warp) & (known < clock)
        self._report_each(kind, message, other_place, bad)

    def _report_each(self, kind: str, message: str, other_place: Array, bad: Array) -> None:
        """What is `bad`, for each place of the other access."""
        if not bad.any():
            return
        for one in np.unique(other_place[bad]):
            count = int((bad & (other_place == one)).sum())
            self._report(kind, message, self.place(), int(one), count)

    # --- synchronisation --------------------------------------------------------------------

    def _synchronise(
        self, shadow: Shadow, at: Array, warp: Array, kind: str, space: str, order: Order
    ) -> None:
        """Atomics and strong accesses pass clocks through their locations."""
        if kind != "read":
            self._write(shadow, at, warp, space, generic=True, atomic=True)
        elif shadow.written:
            clock = shadow.write_clock[at]
            flying = np.where((clock == IN_FLIGHT) & ~shadow.atomic[at], shadow.writer[at], -1)
            doing, place = f"read of {space} memory", shadow.write_place[at]
            self._conflicts(doing, "writes", flying, clock, place, warp)
        places = np.unique(at)
        if len(places) > _SYNC_LOCATIONS:
            return
        for place in places:
            rows = np.unique(warp[at == place])
            key = (id(shadow), int(place))
            if kind != "write":
                self.orders.take(key, rows, order)
            if kind != "read":
                self.orders.leave(key, rows, order)

    def cta_arrive(self, g: Group, ids: Array) -> None:
        for key, rows, phase in self._by_barrier(g, ids):
            self.clocks.release(key, rows, phase)

    def cta_pass(self, g: Group, ids: Array) -> None:
        for key, rows, phase in self._by_barrier(g, ids):
            self.clocks.acquire(key, rows, phase)

    def _by_barrier(self, g: Group, ids: Array) -> Iterator[tuple[Hashable, Array, int]]:
        """Barriers, the warps at each, and which generation of it they have arrived for."""
        rows = g.lane_rows()
        which = self.wave.cta_of[rows] * NAMED + ids.astype(np.int64)
        phases = self.wave.barriers.waiting[rows, g.lane_ids()]
        for one in distinct(which).tolist():
            for phase, mine in by_phase(rows, phases, which == one):
                yield ("bar", *divmod(one, NAMED)), mine, phase

    def cluster_arrive(self, g: Group, relaxed: bool) -> None:
        arrive = self.orders.arrive_relaxed if relaxed else self.clocks.release
        for key, rows, phase in self._by_cluster(g):
            arrive(key, rows, phase)

    def cluster_pass(self, g: Group) -> None:
        for key, rows, phase in self._by_cluster(g):
            self.clocks.acquire(key, rows, phase)

    def _by_cluster(self, g: Group) -> Iterator[tuple[Hashable, Array, int]]:
        rows = g.lane_rows()
        cluster = self.wave.cta_of[rows] // self.wave.cluster_size
        phases = self.wave.barriers.cluster_waiting[rows, g.lane_ids()]
        for one in distinct(cluster).tolist():
            for phase, mine in by_phase(rows, phases, cluster == one):
                yield ("cluster", one), mine, phase

    def mbarrier_init(self, g: Group, places: Array) -> None:
        self.time += 1
        made, rows = self.initialised, g.lane_rows()
        made.row[places], made.clock[places] = rows, self.clocks.now(rows)
        made.time[places], made.place[places] = self.time, self.place()

    def mbarrier_fence(self, g: Group) -> None:
        self.time += 1
        self.init_fence_time[g.rows] = self.time
        self.clocks.initialised(g.rows)

    def mbarrier_used(self, g: Group, places: Array) -> None:
        """Warps use mbarriers, which others must have initialised before, for all to see."""
        rows = g.lane_rows()
        made = self.initialised.row[places]
        known = self.clocks.known[(ORDERED, INITIALISED), rows[:, None], made[:, None]].max(axis=1)
        early = (made >= 0) & (made != rows) & (known < self.initialised.clock[places])
        self._report_each("race", _USED_TOO_EARLY, self.initialised.place[places], early)

    def mbarrier_arrive(self, g: Group, places: Array, phases: Array) -> None:
        """Warps arrive for those phases, by number since the wave began."""
        self.mbarrier_used(g, places)
        rows = g.lane_rows()
        for place in np.unique(places):
            here = places == place
            key, phase = ("mbarrier", int(place)), int(phases[here][0])
            self.clocks.release(key, np.unique(rows[here]), phase)

    def mbarrier_wait(self, g: Group, places: Array, done: Array) -> None:
        self.mbarrier_used(g, places)
        rows = g.lane_rows()
        for place in np.unique(places[done]):
            mine = np.unique(rows[done & (places == place)])
            phases = int(self.wave.mbarriers.completed[place])
            self.clocks.acquire(("mbarrier", int(place)), mine, phases - 1)
            self.clocks.landings.waited(int(place), mine, phases)
            self.maps.waited(int(place), mine, phases)
            self.globals.waited(int(place), mine, phases)

    # --- the asynchronous proxy -------------------------------------------------------------

    def proxy_fence(self, g: Group, space: str | None) -> None:
        name = "" if space is None else space.split("::")[0]
        self.clocks.proxy_fence(g.rows, PROXY_KINDS if space is None else (name,))

    def async_write(self, row: int, where: Array, what: str) -> None:
        """An asynchronous operation that a warp starts will write shared bytes."""
        at, warp = self._bytes(row, where)
        self.check_fenced(self.shared, "shared", row, at, f"{what} writes", over_reads=True)
        self._write(self.shared, at, warp, "shared", generic=False)
        self._check_source(where)

    def allocation_write(self, row: int, where: Array) -> None:
        """`tcgen05.alloc` writes to shared memory, in order with accesses of the generic proxy."""
        at, warp = self._bytes(row, where)
        self._write(self.shared, at, warp, "shared", generic=False)

    def async_read(self, rows: Array, where: Array, what: str) -> None:
        """An asynchronous operation that warps start (together) will read shared bytes."""
        at, warp = self._bytes(rows, where)
        self._read(self.shared, at, warp, "shared", generic=False)
        for row in rows.tolist():
            self.check_fenced(self.shared, "shared", row, at, f"{what} reads")

    def read_awaited(self, rows: Array | int, source: Array) -> None:
        """The warps that began an operation have waited until its shared source was read."""
        at, warp = self._bytes(rows, source)
        self.shared.note_read(at, warp, self.clocks.now(warp), self.place(), generic=False)

    def check_fenced(
        self, s: Shadow, space: str, row: int, at: Array, doing: str, over_reads: bool = False
    ) -> None:
        """Between an access of the generic proxy and an asynchronous one stands a proxy fence, of
        the warp of the first or of whoever heard of it, that the warp `row` has heard of."""
        heard = self.clocks.proxied(space)[row]
        before = [
            (s.writer[at], s.generic[at], s.write_clock[at], s.write_place[at], "written by st")
        ]
        if over_reads:
            before += [
                (s.reader[k, at], s.read_generic[k, at], s.read_clock[k, at], s.read_place[k, at],
                 "read by ld")
                for k in s.readers
            ]  # fmt: skip
        for warp, generic, clock, place, how in before:
            bad = (warp >= 0) & generic & (heard[np.maximum(warp, 0)] < clock)
            if bad.any():
                message = f"{doing} {space} memory {how} without a fence.proxy.async"
                other, count = int(place[bad][0]), int(bad.sum())
                self._report("missing-proxy-fence", message, self.place(), other, count)

    def _bytes(self, rows: Array | int, where: Array) -> tuple[Array, Array]:
        """Granules, and the warps that access them: each of `rows` all of them, in turn."""
        at = distinct(np.asarray(where) // self.shared.granule)
        rows = np.atleast_1d(rows)
        return np.tile(at, len(rows)), np.repeat(rows, len(at))

    def async_filled(self, where: Array, place: int) -> None:
        """An operation has written shared bytes, and signals an mbarrier now."""
        slot = self.clocks.landings.slot(place)
        phases = int(self.wave.mbarriers.completed[place]) + 1
        self.shared.filled(distinct(where // self.shared.granule), slot, phases)

    def async_signal(self, place: int, known: Snapshot | None) -> None:
        """An operation that started with `known` has signalled an mbarrier."""
        if known is None:
            return
        self._check_signalled(place, known.known)
        phase = int(self.wave.mbarriers.completed[place])
        self.clocks.publish(("mbarrier", place), known, phase)

    def _check_signalled(self, place: int, known: Array) -> None:
        """The asynchronous proxy sees an mbarrier after a fence of the thread that made it."""
        made = self.initialised
        warp, clock, where = int(made.row[place]), made.clock[place], int(made.place[place])
        if warp < 0:
            return
        if known[(ORDERED, INITIALISED), warp].max() < clock:
            self._report("race", _USED_TOO_EARLY, self.place(), where, 1)
        if self.init_fence_time[warp] < made.time[place] and known[PROXIED, warp] < clock:
            message = "a copy signals an mbarrier initialised without a fence.mbarrier_init"
            self._report("missing-proxy-fence", message, -1, where, 1)

    def exit(self) -> None:
        """All threads have left, before what is pending is brought to an end."""
        if self.sources.abandoned():
            message = "the kernel ends while bulk copies read its shared memory"
            self._report("source-abandoned", message, -1, -1, 1)
        if any(one.signals and not one.is_done for one in self.wave.asyncs.pending):
            message = "the kernel ends while copies into its shared memory are under way"
            self._report("destination-abandoned", message, -1, -1, 1)

    def _check_source(self, where: Array) -> None:
        for message in self.sources.overwritten(where):
            self._report("source-overwritten", message, self.place(), -1, 1)

    # --- findings ---------------------------------------------------------------------------

    def product(
        self, rows: Array, accumulators: list[int], fragments: list[int], shape: Hashable
    ) -> None:
        """Warps start a `wgmma.mma_async` on registers."""
        for one in self.registers.product(rows, accumulators, fragments, shape):
            self._report("missing-wgmma-fence", one.message, self.place(), one.other, 1)

    def report(self, kind: str, message: str, other: int, count: int = 1) -> None:
        """The instruction that runs now is wrong, with what `other` did."""
        self._report(kind, message, self.place(), other, count)

    def used_before_wait(self, load: int) -> None:
        """The instruction that runs now uses a register that a `tcgen05.ld` fills."""
        message = "a register of tcgen05.ld is used before tcgen05.wait::ld"
        self._report("missing-load-wait", message, self.place(), load, 1)

    def place(self) -> int:
        """A number for the instruction that runs now."""
        wave = self.wave
        if wave.cursor is None:
            return -1
        block, steps = wave.cursor
        index = len(block.code) - 1 - length_hint(steps)
        return block.number << 16 | min(index, 0xFFFF)

    def _where(self, place: int) -> Where | None:
        if place < 0:
            return None
        block = self.wave.program.blocks[place >> 16]
        return self.wave.program.where(block.instrs[place & 0xFFFF])

    def _report(self, kind: str, message: str, place: int, other: int, count: int) -> None:
        key = (kind, place, other)
        found = self._known.get(key)
        if found is not None:
            found.count += count
            return
        finding = Finding(kind, message, self._where(place), self._where(other), count)
        self._known[key] = finding
        self.findings.append(finding)

"""Which bytes come from DRAM: the addresses of all CTAs, in the order in which they run.

One cluster is recorded whole, and what its CTAs' L1 serves is left out. Of the others the first
accesses are enough: how far an instruction's first address lies from that of the recorded cluster
is how far all its addresses lie. The accesses of the CTAs that are on the GPU at the same time are
laid side by side, and go through an L2 of least recently used sectors. Where they are many, a
sample of the sectors goes through a cache that is smaller by as much (spatial sampling: Waldspurger
et al., SHARDS, FAST 2015).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from contextlib import suppress
from operator import itemgetter, length_hint
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tile_sim.errors import SimError

from tile_time.engine.memory import L1, Traffic
from tile_time.record import SECTOR, Bulk, Global, Recorder

if TYPE_CHECKING:
    from tile_sim.machine.access import Part
    from tile_sim.machine.group import Group
    from tile_sim.machine.wave import Wave
    from tile_sim.program.flow import Block

    from tile_core.machines import Machine
    from tile_time.model import Kernel

Array = np.ndarray
Dim = tuple[int, int, int]
_MOST_ACCESSES = 200_000
_WAVES = 3
_MOST_CLUSTERS = 512
_WAVE_THREADS = 1 << 15
_WAVE_BYTES = 64 << 20  # of registers
_PROBE_BLOCKS = 1000  # loads behind so many blocks of a warp are not looked for
_BEHIND = 8  # blocks behind the last load in which stores are looked for, too
_UNSEEN = np.iinfo(np.int64).min
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: multiples of it lie evenly
_ADDRESSES = ("values", "products", "copies", "memory")  # what is skipped where only they count
_APART = 48  # bits: no two addresses are that far apart


class _AllSeen(Exception):
    """There is nothing left that a probe looks for."""


class _Probe:
    """A recorder of the first global address of each warp at each instruction.

    It ends the launch when all clusters have come by what is `wanted`: by the place of an
    instruction, which warps of a cluster, `[warps]`.
    """

    def __init__(self, wanted: dict[int, Array]) -> None:
        self._all = wanted
        self.restart()

    def restart(self) -> None:
        self.first: dict[int, Array] = {}
        self.wanted = dict(self._all)

    def block(self, wave: Wave, block: Block, g: Group) -> None:
        if not self.wanted:
            raise _AllSeen

    def _note(self, wave: Wave, rows: Array, addresses: Array) -> None:
        block, steps = wave.cursor
        pos = block.instrs[len(block.code) - 1 - length_hint(steps)].pos
        known = self.first.get(pos)
        if known is None:
            known = self.first[pos] = np.full(wave.warps, -1, np.int64)
        new = known[rows] < 0
        known[rows[new]] = addresses[new]
        warps = self.wanted.get(pos)
        if warps is not None and (known.reshape(-1, len(warps))[:, warps] >= 0).all():
            del self.wanted[pos]

    def _lanes(self, wave: Wave, rows: Array, start: Array) -> None:
        firsts = np.concatenate([[0], np.flatnonzero(np.diff(rows)) + 1])
        self._note(wave, rows[firsts], np.minimum.reduceat(start, firsts))

    def access(self, wave: Wave, kind: str, g: Group, part: Part, count: int) -> None:
        if part.space == "global":
            rows = g.lane_rows() if part.pick is None else g.lane_rows()[part.pick]
            self._lanes(wave, rows, part.index * part.data.dtype.itemsize + part.base)

    def copy(self, wave: Wave, rows: Array, lanes: Array, start: Array, width: int) -> None:
        self._lanes(wave, rows, start.astype(np.int64))

    def bulk(
        self, wave: Wave, row: int, size: int, address: int, inner: int, ends: list[Any]
    ) -> None:
        self._note(wave, np.array([row]), np.array([address]))

    def ignore(self, *_: Any, **__: Any) -> None:
        """Nothing to keep."""

    mbarrier: Any = ignore
    product: Any = ignore
    commit: Any = ignore
    columns: Any = ignore


class Access(NamedTuple):
    """What an access of a recorded cluster takes from L2 or stores there, a sector or all of a box:
    which warp in which of its steps, `pos` of the instruction, an address in it and bytes.
    """

    step: int
    warp: int
    pos: int
    address: int
    size: int


class Accesses(NamedTuple):
    """Those of a recorded cluster, step by step of its warps; places of stores; for each place one
    of those that it shares sectors with in L1.
    """

    all: list[Access]
    stores: set[int]
    leaders: dict[int, int]


def accesses_of(
    recorder: Recorder, ctas: int, cached: Collection[int], capacity: float
) -> Accesses:
    """The global accesses of a recorded cluster, but for sectors that instructions at `cached`
    places find in a CTA's L1, of `capacity` bytes.
    """
    found = Accesses([], set(), {})
    held = [L1(capacity) for _ in range(ctas)]
    fetched: dict[tuple[int, int], int] = {}  # by whom, of a CTA and a sector
    for n, warp, pos, note in _noted(recorder, ctas):
        leader = _leader(found.leaders, pos)
        if isinstance(note, Bulk):
            found.all.append(Access(n, warp, pos, note.address, note.size))
            if not note.ends:
                found.stores.add(pos)
            continue
        first, inside = divmod(note.address, SECTOR)
        sectors = [first + sector for sector in note.sectors]
        if pos in cached:
            cta = warp // recorder.per_cta
            missing, _ = held[cta].ask(sectors)
            held[cta].fill(missing, (0.0, 0))
            fetched.update(((cta, sector), pos) for sector in missing)
            for by in {fetched[cta, sector] for sector in sectors}:
                found.leaders[_leader(found.leaders, by)] = leader
            sectors = missing
        found.all.extend(Access(n, warp, pos, at * SECTOR + inside, SECTOR) for at in sectors)
    return found._replace(leaders={pos: _leader(found.leaders, pos) for pos in found.leaders})


def _leader(leaders: dict[int, int], pos: int) -> int:
    while leaders.setdefault(pos, pos) != pos:
        pos = leaders[pos]
    return pos


def _noted(recorder: Recorder, ctas: int) -> list[tuple[int, int, int, Global | Bulk]]:
    """Accesses of global memory: step, warp of the cluster, place, note."""
    found = [
        (n, cta * recorder.per_cta + w, pos, note)
        for cta in range(ctas)
        for w in range(recorder.per_cta)
        for n, step in enumerate(recorder.warps.get((cta, w), ()))
        for pos, notes in (step.notes or {}).items()
        for note in notes
        if isinstance(note, Global) or (isinstance(note, Bulk) and note.address >= 0)
    ]
    return sorted(found, key=itemgetter(0))


def traffic_of(
    kernel: Kernel,
    recorder: Recorder,
    grid: Dim,
    block: Dim | None,
    args: Sequence[Any],
    options: dict[str, Any],
    clusters: int,
    recorded: int,
    resident: int,
    l1: float,
    warm: bool,
) -> Traffic:
    """Shares of misses in L2, by instruction, of what `l1` bytes for each CTA do not serve.

    `recorded` is the cluster that was recorded.
    """
    size = max((cta for cta, _ in recorder.warps), default=0) + 1
    accesses = accesses_of(recorder, size, kernel.listing.cached, l1)
    if not accesses.all:
        return Traffic({}, 0.0)
    accesses.stores.update(_stores(kernel))
    machine = kernel.machine
    wave = max(int(machine.chip.sms) // size * resident, 1)
    probed = min(clusters, _WAVES * wave, max(wave, _MOST_CLUSTERS))
    warps = recorder.per_cta * size
    wanted = _wanted(accesses.all, accesses.stores, warps)
    launch = (grid, block, args, options)
    moved = _distances(kernel, launch, probed, recorded, warps, wanted)
    return _through_l2(accesses, moved, wave, probed, clusters, machine, warm)


def _stores(kernel: Kernel) -> set[int]:
    return {
        ins.pos for ins in kernel.graph.instructions.values() if ins.op in ("st", "red", "atom")
    }


class _Wanted(NamedTuple):
    """Which warps load at which instruction, or store soon after, and how many blocks of PTX a
    probe may take to see."""

    warps: dict[int, Array]
    blocks: int


def _wanted(accesses: Sequence[Access], stores: set[int], warps: int) -> _Wanted:
    found: dict[int, Array] = {}
    last = 0
    for a in accesses:
        if a.step >= _PROBE_BLOCKS:
            break
        if a.pos not in stores or a.step <= last + _BEHIND:
            which = found.setdefault(a.pos, np.zeros(warps, bool))
            last = last if which[a.warp] or a.pos in stores else a.step
            which[a.warp] = True
    return _Wanted(found, 4 * (last + 1) + 100)  # warps that go apart run their own blocks


def _distances(
    kernel: Kernel,
    launch: tuple[Dim, Dim | None, Sequence[Any], dict[str, Any]],
    probed: int,
    recorded: int,
    warps: int,
    wanted: _Wanted,
) -> dict[int, Array]:
    """How far the first access of each cluster lies from that of the recorded one.

    `[probed, warps]` of bytes for each instruction, _UNSEEN where one of them was not seen. Arrays
    have other addresses in each launch of the simulator, so the recorded cluster is in all of them.
    """
    from tile_time.model import record

    grid, block, args, options = launch
    size = sum(kernel.module.program(kernel.entry).file.bits) // 8
    at_once = max(min(_WAVE_THREADS, _WAVE_BYTES // max(size, 1)) // (32 * warps), 2) - 1
    limited = {**options, "max_steps": wanted.blocks}
    found: dict[int, Array] = {}
    for first in range(0, probed if wanted.warps else 0, at_once):
        part = [*range(first, min(first + at_once, probed)), recorded]
        probe = _Probe(wanted.warps)
        with suppress(SimError, _AllSeen):  # some never come by all that is wanted
            record(kernel, probe, grid, block, args, part, limited, _ADDRESSES)
        for pos, addresses in probe.first.items():
            whole = found.setdefault(pos, np.full((probed, warps), _UNSEEN, np.int64))
            each = addresses.reshape(-1, warps)
            seen = (each[:-1] >= 0) & (each[-1] >= 0)
            whole[first : first + len(part) - 1] = np.where(seen, each[:-1] - each[-1], _UNSEEN)
    return found


def _through_l2(
    accesses: Accesses,
    moved: dict[int, Array],
    wave: int,
    probed: int,
    clusters: int,
    machine: Machine,
    warm: bool,
) -> Traffic:
    """Run the accesses of the clusters, wave by wave, through an L2."""
    # Which of those that share sectors in L1 fetches one is the SASS's choice: all have one share.
    stores, leaders = accesses.stores, accesses.leaders
    kept, share = _sampled(accesses.all, -(-len(accesses.all) * probed // _MOST_ACCESSES))
    cache = _Cache(machine.chip.l2 * share)
    asked: dict[int, float] = {}
    missed: dict[int, float] = {}
    stored = added = written = 0.0  # bytes; that L2 did not hold; that it did not hold as written
    for first in range(0, probed, wave):
        last = min(first + wave, probed)
        for _, warp, pos, address, size in kept:
            far = moved[pos][first:last, warp] if pos in moved else None
            for there in _places(far, address, range(first, last), pos in stores):
                if pos in stores:
                    held, was_written = cache.store(there, size)
                    stored += size
                    added += 0.0 if held else size
                    written += 0.0 if was_written else size
                    continue
                by = leaders[pos]
                asked[by] = asked.get(by, 0.0) + size
                if not cache.hit(there, size):
                    missed[by] = missed.get(by, 0.0) + size
    scale = clusters / max(probed, 1) / share
    read = sum(missed.values()) * scale
    fits = warm and read < machine.chip.l2
    shares = {by: 0.0 if fits else missed.get(by, 0.0) / total for by, total in asked.items()}
    miss = {pos: shares[by] for pos, by in leaders.items() if by in shares}
    # L2 is full of what was written before, by the launch before this one or by what flushed it:
    # where a line is written that was not yet, another one leaves.
    kept = not stored or (warm and read + added * scale < machine.chip.l2)
    return Traffic(miss, 0.0 if kept else written / stored)


def _sampled(accesses: list[Access], thin: int) -> tuple[list[Access], float]:
    """The accesses of about one in `thin` addresses, and their share of all bytes touched.

    A sector is kept or left out in all clusters alike, so what is shared stays shared;
    each instruction keeps one at least. What is hashed is when an address is first accessed, not
    where it lies: arrays lie elsewhere in each process.
    """
    if thin <= 1:
        return accesses, 1.0
    sizes = {a.address // SECTOR: a.size for a in accesses}
    hashed = {at: (n + 1) * _GOLDEN % (1 << 64) for n, at in enumerate(sizes)}
    lowest: dict[int, int] = {}  # sector, by instruction
    for a in accesses:
        at = a.address // SECTOR
        lowest[a.pos] = min(at, lowest.get(a.pos, at), key=hashed.__getitem__)
    touched = {at for at in sizes if hashed[at] < (1 << 64) // thin} | set(lowest.values())
    kept = [a for a in accesses if a.address // SECTOR in touched]
    return kept, sum(sizes[at] for at in touched) / sum(sizes.values())


def _places(
    far: Array | None, address: int, clusters: Sequence[int], stored: bool
) -> Sequence[int]:
    """Sectors where clusters make the access of the recorded one, `far` from it as their first ones
    were.

    Where those were not seen, loads are taken for shared by all clusters, stores for own.
    """
    own = np.array(clusters, np.int64) << _APART if stored else np.zeros(len(clusters), np.int64)
    there = address + (own if far is None else np.where(far == _UNSEEN, own, far))
    return (there // SECTOR).tolist()


class _Cache:
    """Least recently used sectors and boxes, by their first sectors, and which were written."""

    def __init__(self, capacity: float) -> None:
        self.capacity, self.size = capacity, 0.0
        self.held: OrderedDict[int, int] = OrderedDict()
        self._written: set[int] = set()

    def hit(self, sector: int, size: int) -> bool:
        if sector in self.held:
            self.held.move_to_end(sector)
            return True
        self.held[sector] = size
        self.size += size
        while self.size > self.capacity:
            gone, its = self.held.popitem(last=False)
            self._written.discard(gone)
            self.size -= its
        return False

    def store(self, sector: int, size: int) -> tuple[bool, bool]:
        """Whether it was held, and whether as written."""
        held = self.hit(sector, size)
        was_written = sector in self._written
        self._written.add(sector)
        return held, was_written

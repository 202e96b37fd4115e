"""Which bytes come from DRAM: the addresses of all CTAs, in the order in which they run.

One cluster is recorded whole. Of the others the first accesses are enough: how far an instruction's
first address lies from that of the recorded cluster is how far all its addresses lie. The accesses
of the CTAs that are on the GPU at the same time are laid side by side, and go through an L2 of
least recently used lines. Where they are many, a sample of the addresses goes through a cache that
is smaller by as much (spatial sampling: Waldspurger et al., SHARDS, FAST 2015).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tile_sim.errors import SimError

from tile_time.engine.memory import SECTOR, Traffic
from tile_time.record import Bulk, Global, Recorder, bytes_of

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
    """An access of a recorded cluster: which warp in which of its steps, `pos` of the instruction,
    first address and bytes."""

    step: int
    warp: int
    pos: int
    address: int
    size: int


def accesses_of(recorder: Recorder, ctas: int) -> tuple[list[Access], set[int]]:
    """The global accesses of a recorded cluster, step by step of its warps, and which store."""
    found: list[Access] = []
    stores: set[int] = set()
    for cta in range(ctas):
        for w in range(recorder.per_cta):
            key = cta * recorder.per_cta + w
            steps = recorder.warps.get((cta, w), ())
            for n, step in enumerate(steps):
                for pos, notes in (step.notes or {}).items():
                    for note in notes:
                        if isinstance(note, Global):
                            found.append(Access(n, key, pos, note.address, bytes_of(note)))
                        elif isinstance(note, Bulk) and note.address >= 0:
                            found.append(Access(n, key, pos, note.address, note.size))
                            if not note.ends:
                                stores.add(pos)
    found.sort(key=lambda access: access.step)
    return found, stores


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
    warm: bool,
) -> Traffic:
    """Shares of misses in L2 by instruction; `recorded` is the cluster that was recorded."""
    size = max((cta for cta, _ in recorder.warps), default=0) + 1
    accesses, stores = accesses_of(recorder, size)
    if not accesses:
        return Traffic({}, 0.0)
    stores |= _stores(kernel)
    machine = kernel.machine
    wave = max(int(machine.chip.sms) // size * resident, 1)
    probed = min(clusters, _WAVES * wave, max(wave, _MOST_CLUSTERS))
    warps = recorder.per_cta * size
    wanted = _wanted(accesses, stores, warps)
    launch = (grid, block, args, options)
    moved = _distances(kernel, launch, probed, recorded, warps, wanted)
    return _through_l2(accesses, stores, moved, wave, probed, clusters, machine, warm)


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
    accesses: list[Access],
    stores: set[int],
    moved: dict[int, Array],
    wave: int,
    probed: int,
    clusters: int,
    machine: Machine,
    warm: bool,
) -> Traffic:
    """Run the accesses of the clusters, wave by wave, through an L2."""
    kept, share = _sampled(accesses, -(-len(accesses) * probed // _MOST_ACCESSES))
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
                    # Of loads, L1 has the other half of the sectors.
                    held, was_written = cache.store(_sector(there), size)
                    stored += size
                    added += 0.0 if held else size
                    written += 0.0 if was_written else size
                    continue
                asked[pos] = asked.get(pos, 0.0) + size
                if not cache.hit(there, size):
                    missed[pos] = missed.get(pos, 0.0) + size
    scale = clusters / max(probed, 1) / share
    read = sum(missed.values()) * scale
    fits = warm and read < machine.chip.l2
    miss = {pos: 0.0 if fits else missed.get(pos, 0.0) / total for pos, total in asked.items()}
    # L2 is full of what was written before, by the launch before this one or by what flushed it:
    # where a line is written that was not yet, another one leaves.
    kept = not stored or (warm and read + added * scale < machine.chip.l2)
    return Traffic(miss, 0.0 if kept else written / stored)


def _sampled(accesses: list[Access], thin: int) -> tuple[list[Access], float]:
    """The accesses of about one in `thin` addresses, and their share of all bytes touched.

    A sector is kept or left out whole, in all clusters alike, so what is shared stays shared;
    each instruction keeps one at least. What is hashed is when an address is first accessed, not
    where it lies: arrays lie elsewhere in each process.
    """
    if thin <= 1:
        return accesses, 1.0
    sizes = {a.address: a.size for a in accesses}
    sectors = dict.fromkeys(map(_sector, sizes))
    hashed = {at: (n + 1) * _GOLDEN % (1 << 64) for n, at in enumerate(sectors)}
    lowest: dict[int, int] = {}  # sector, by instruction
    for a in accesses:
        at = _sector(a.address)
        lowest[a.pos] = min(at, lowest.get(a.pos, at), key=hashed.__getitem__)
    touched = {at for at in sectors if hashed[at] < (1 << 64) // thin} | set(lowest.values())
    kept = [a for a in accesses if _sector(a.address) in touched]
    size = sum(size for at, size in sizes.items() if _sector(at) in touched)
    return kept, size / sum(sizes.values())


def _sector(address: int) -> int:
    """Where the sector begins: halves of sectors, by two instructions, are the same ones."""
    return address // SECTOR * SECTOR


def _places(
    far: Array | None, address: int, clusters: Sequence[int], stored: bool
) -> Sequence[int]:
    """Where clusters make the access of the recorded one, `far` from it as their first ones were.

    Where those were not seen, loads are taken for shared by all clusters, stores for own.
    """
    own = np.array(clusters, np.int64) << _APART if stored else np.zeros(len(clusters), np.int64)
    return (address + (own if far is None else np.where(far == _UNSEEN, own, far))).tolist()


class _Cache:
    """Least recently used extents, by their first bytes, and which of them were written."""

    def __init__(self, capacity: float) -> None:
        self.capacity, self.size = capacity, 0.0
        self.held: OrderedDict[int, int] = OrderedDict()
        self._written: set[int] = set()

    def hit(self, address: int, size: int) -> bool:
        if address in self.held:
            self.held.move_to_end(address)
            return True
        self.held[address] = size
        self.size += size
        while self.size > self.capacity:
            gone, its = self.held.popitem(last=False)
            self._written.discard(gone)
            self.size -= its
        return False

    def store(self, address: int, size: int) -> tuple[bool, bool]:
        """Whether the extent was held, and whether as written."""
        held = self.hit(address, size)
        was_written = address in self._written
        self._written.add(address)
        return held, was_written

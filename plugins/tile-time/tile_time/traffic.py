"""Which bytes come from DRAM: the addresses of all CTAs, in the order in which they run.

One cluster is recorded whole. Of the others the first accesses are enough: how far an instruction's
first address lies from that of the recorded cluster is how far all its addresses lie. The accesses
of the CTAs that are on the GPU at the same time are laid side by side, and go through an L2 of
least recently used lines; both are thinned out alike where they are many.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from operator import length_hint
from typing import TYPE_CHECKING, Any

import numpy as np
from tile_sim.errors import SimError

from tile_time.engine.memory import Traffic
from tile_time.record import Bulk, Global, Recorder

if TYPE_CHECKING:
    from tile_sim.machine.access import Part
    from tile_sim.machine.group import Group
    from tile_sim.machine.wave import Wave

    from tile_core.machines import Machine
    from tile_time.model import Kernel

Array = np.ndarray
Dim = tuple[int, int, int]
_MOST_ACCESSES = 200_000
_WAVES = 3
_MOST_CLUSTERS = 512
_WAVE_THREADS = 1 << 15
_WAVE_BYTES = 64 << 20  # of registers
_PROBE_BLOCKS = 100
_APART = 48  # bits: no two addresses are that far apart


class _Probe:
    """A recorder of the first global address of each warp at each instruction."""

    def __init__(self) -> None:
        self.first: dict[int, Array] = {}

    def _note(self, wave: Wave, rows: Array, addresses: Array) -> None:
        block, steps = wave.cursor
        pos = block.instrs[len(block.code) - 1 - length_hint(steps)].pos
        known = self.first.get(pos)
        if known is None:
            known = self.first[pos] = np.full(wave.warps, -1, np.int64)
        new = known[rows] < 0
        known[rows[new]] = addresses[new]

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

    block: Any = ignore
    mbarrier: Any = ignore
    product: Any = ignore
    commit: Any = ignore
    columns: Any = ignore


Access = tuple[int, int, int, int]  # warp, place of the instruction, address, bytes


def accesses_of(recorder: Recorder, ctas: int) -> tuple[list[Access], set[int]]:
    """The global accesses of a recorded cluster, step by step of its warps, and which store."""
    found: list[tuple[int, Access]] = []
    stores: set[int] = set()
    for cta in range(ctas):
        for w in range(recorder.per_cta):
            key = cta * recorder.per_cta + w
            steps = recorder.warps.get((cta, w), ())
            for n, step in enumerate(steps):
                for pos, notes in (step.notes or {}).items():
                    for note in notes:
                        if isinstance(note, Global):
                            found.append((n, (key, pos, note.address, note.sectors * 32)))
                        elif isinstance(note, Bulk) and note.address >= 0:
                            found.append((n, (key, pos, note.address, note.size)))
                            if not note.ends:
                                stores.add(pos)
    found.sort(key=lambda pair: pair[0])
    return [access for _, access in found], stores


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
    seen = [*range(probed), recorded]
    firsts = _first_addresses(kernel, grid, block, args, options, seen, warps)
    return _through_l2(accesses, stores, firsts, wave, probed, clusters, machine, warm)


def _stores(kernel: Kernel) -> set[int]:
    return {
        ins.pos for ins in kernel.graph.instructions.values() if ins.op in ("st", "red", "atom")
    }


def _first_addresses(
    kernel: Kernel,
    grid: Dim,
    block: Dim | None,
    args: Sequence[Any],
    options: dict[str, Any],
    seen: Sequence[int],
    warps: int,
) -> dict[int, Array]:
    """`[clusters seen, warps]` of each instruction, -1 where nothing was seen."""
    from tile_time.model import record

    size = sum(kernel.module.program(kernel.entry).file.bits) // 8
    at_once = max(min(_WAVE_THREADS, _WAVE_BYTES // max(size, 1)) // (32 * warps), 1)
    found: dict[int, Array] = {}
    for first in range(0, len(seen), at_once):
        part = seen[first : first + at_once]
        probe = _Probe()
        # The steps that it may take are over soon; then the first addresses are known.
        with suppress(SimError):
            limited = {**options, "max_steps": _PROBE_BLOCKS}
            record(kernel, probe, grid, block, args, part, limited, ("products", "copies"))
        for pos, addresses in probe.first.items():
            whole = found.setdefault(pos, np.full((len(seen), warps), -1, np.int64))
            whole[first : first + len(part)] = addresses.reshape(-1, warps)
    return found


def _through_l2(
    accesses: list[Access],
    stores: set[int],
    firsts: dict[int, Array],
    wave: int,
    probed: int,
    clusters: int,
    machine: Machine,
    warm: bool,
) -> Traffic:
    """Run the accesses of the clusters, wave by wave, through an L2."""
    thin = max(1, -(-len(accesses) * probed // _MOST_ACCESSES))
    cache = _Cache(machine.chip.l2 / thin)
    # Whole groups of accesses are left out, the same in every cluster, so that what is shared
    # stays shared.
    kept = [a for n, a in enumerate(accesses) if n // 4 % thin == 0] or accesses[:1]
    asked: dict[int, float] = {}
    missed: dict[int, float] = {}
    written = 0.0
    for first in range(0, probed, wave):
        for key, pos, address, size in kept:
            last = min(first + wave, probed)
            for there in _places(firsts.get(pos), key, address, first, last, pos in stores):
                if pos in stores:
                    written += 0.0 if cache.hit(there, size) else size
                    continue
                asked[pos] = asked.get(pos, 0.0) + size
                if not cache.hit(there, size):
                    missed[pos] = missed.get(pos, 0.0) + size
    scale = clusters / max(probed, 1) * thin
    fits = warm and sum(missed.values()) * scale < machine.chip.l2
    miss = {pos: 0.0 if fits else missed.get(pos, 0.0) / total for pos, total in asked.items()}
    out = written * scale
    return Traffic(miss, max(0.0, 1.0 - machine.chip.l2 / 2 / out) if out else 0.0)


def _places(
    known: Array | None, key: int, address: int, first: int, last: int, stored: bool
) -> Sequence[int]:
    """Where the clusters from `first` to `last` make the access that the last one seen makes.

    Where no first address was seen, loads are taken for those of all clusters, stores for own.
    """
    if known is None or known[-1, key] < 0:
        return [address + (n << _APART if stored else 0) for n in range(first, last)]
    column = known[first:last, key]
    return (address + np.where(column < 0, 0, column - known[-1, key])).tolist()


class _Cache:
    """Least recently used extents, by their first bytes."""

    def __init__(self, capacity: float) -> None:
        self.capacity, self.size = capacity, 0.0
        self.held: OrderedDict[int, int] = OrderedDict()

    def hit(self, address: int, size: int) -> bool:
        if address in self.held:
            self.held.move_to_end(address)
            return True
        self.held[address] = size
        self.size += size
        while self.size > self.capacity:
            self.size -= self.held.popitem(last=False)[1]
        return False

"""Which bytes come from DRAM: the addresses of all CTAs, in the order in which they run.

One cluster is recorded whole. Of the others the first accesses are enough: how far an instruction's
first address lies from that of the recorded cluster is how far all its addresses lie. The accesses
of the CTAs that are on the GPU at the same time are laid side by side, and go through an L2 of
least recently used lines; both are thinned out alike where they are many.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tile_sim.errors import SimError
from tile_time.engine.memory import Traffic
from tile_time.record import Bulk, Global, Recorder, TooLong

if TYPE_CHECKING:
    from tile_time.model import Kernel

Dim = tuple[int, int, int]
_MOST_ACCESSES = 250_000
_MOST_CLUSTERS = 2048
_WAVE_THREADS = 1 << 15
_PROBE_BLOCKS = 160
_BUFFER_SHIFT = 40


class _First:
    """A recorder that keeps the first global address of each (cluster, warp, instruction)."""

    def __init__(self) -> None:
        self.inner = Recorder(1 << 40)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


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
    resident: int,
    warm: bool,
) -> Traffic:
    """Shares of misses in L2 by instruction."""
    size = max((cta for cta, _ in recorder.warps), default=0) + 1
    accesses, stores = accesses_of(recorder, size)
    if not accesses:
        return Traffic({}, 0.0)
    stores |= _stores(kernel)
    shifts = _shifts(kernel, grid, block, args, options, clusters, size)
    machine = kernel.machine
    wave = max(int(machine.chip.sms) // size * resident, 1)
    return _through_l2(accesses, stores, shifts, wave, clusters, machine.memory, machine, warm)


def _stores(kernel: Kernel) -> set[int]:
    return {
        ins.pos for ins in kernel.graph.instructions.values() if ins.op in ("st", "red", "atom")
    }


def _shifts(
    kernel: Kernel,
    grid: Dim,
    block: Dim | None,
    args: Sequence[Any],
    options: dict[str, Any],
    clusters: int,
    size: int,
) -> list[dict[tuple[int, int], int]]:
    """First addresses by (warp of the cluster, instruction), for each cluster probed."""
    from tile_time.model import record

    threads = 32 * max(recorder_warps(kernel, block), 1) * size
    at_once = max(_WAVE_THREADS // threads, 1)
    found: list[dict[tuple[int, int], int]] = []
    last = min(clusters, _MOST_CLUSTERS)
    for first in range(0, last, at_once):
        part = list(range(first, min(first + at_once, last)))
        probe = Recorder(1 << 40)
        try:
            record(kernel, probe, grid, block, args, part, {**options, "max_steps": _PROBE_BLOCKS})
        except (SimError, TooLong):
            pass  # the steps that it may take are over: the first addresses are known
        found += _first_addresses(probe, len(part), size)
    return found


def recorder_warps(kernel: Kernel, block: Dim | None) -> int:
    wanted = kernel.graph.program.entry.directives.get("reqntid") or block or (128,)
    threads = 1
    for n in wanted:
        threads *= int(n)
    return -(-threads // 32)


def _first_addresses(probe: Recorder, count: int, size: int) -> list[dict[tuple[int, int], int]]:
    made: list[dict[tuple[int, int], int]] = [{} for _ in range(count)]
    for (cta, w), steps in probe.warps.items():
        mine = made[cta // size]
        key = cta % size * probe.per_cta + w
        for step in steps:
            for pos, notes in (step.notes or {}).items():
                note = notes[0]
                if isinstance(note, Global | Bulk) and (key, pos) not in mine:
                    mine[key, pos] = note.address
    return made


def _through_l2(
    accesses: list[Access],
    stores: set[int],
    shifts: list[dict[tuple[int, int], int]],
    wave: int,
    clusters: int,
    memory: Any,
    machine: Any,
    warm: bool,
) -> Traffic:
    """Run the accesses of the clusters, wave by wave, through an L2."""
    base = shifts[0] if shifts else {}
    rounds = min(len(shifts), max(wave, 1) * 3)
    thin = max(1, -(-len(accesses) * rounds // _MOST_ACCESSES))
    capacity = machine.chip.l2 / thin
    # Whole groups of accesses are left out, the same in every cluster, so that what is shared
    # stays shared.
    kept = [a for n, a in enumerate(accesses) if n // 8 % thin == 0] or accesses[:1]
    cache = _Cache(capacity)
    asked: dict[int, float] = {}
    missed: dict[int, float] = {}
    written = 0.0
    for first in range(0, rounds, wave):
        group = shifts[first : min(first + wave, rounds)]
        for key, pos, address, size in kept:
            origin = base.get((key, pos))
            for shift in group:
                there = address
                if origin is not None:
                    there += shift.get((key, pos), origin) - origin
                if pos in stores:
                    written += 0.0 if cache.hit(there, size) else size
                    continue
                asked[pos] = asked.get(pos, 0.0) + size
                if not cache.hit(there, size):
                    missed[pos] = missed.get(pos, 0.0) + size
    scale = clusters / max(rounds, 1) * thin
    whole = sum(missed.values()) * scale
    fits = warm and whole < machine.chip.l2
    miss = {pos: 0.0 if fits else missed.get(pos, 0.0) / total for pos, total in asked.items()}
    out = written * scale
    return Traffic(miss, max(0.0, 1.0 - machine.chip.l2 / 2 / out) if out else 0.0)


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

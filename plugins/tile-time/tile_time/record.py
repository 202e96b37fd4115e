"""What each warp of a CTA ran: a recorder for the simulator (`tile_sim.machine.trace`).

A warp's record is a list of steps: the PTX block, and for some of its instructions notes with
what cannot be seen in the code: wavefronts, sectors, addresses, mbarriers, sizes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from tile_sim.isa.barrier import CtaBarrier
from tile_sim.machine.trace import Trace

if TYPE_CHECKING:
    from tile_sim.machine.access import Part
    from tile_sim.machine.group import Group
    from tile_sim.machine.wave import Wave
    from tile_sim.program.flow import Block
    from tile_sim.ptx.syntax import Instr

Array = np.ndarray
SECTOR, _WORD, _BANKS = 32, 4, 32


class Global(NamedTuple):
    """A warp's access of global memory: its lowest address, the sectors of 32 bytes from the one
    with that address on, and the lines of 128 bytes.
    """

    address: int
    sectors: tuple[int, ...]
    lines: int


class Shared(NamedTuple):
    """A warp's access of shared memory, in wavefronts of 32 banks."""

    wavefronts: int


class Mbarrier(NamedTuple):
    """`what` as in `tile_sim.machine.trace`; `cta` and `place` name the object."""

    what: str
    cta: int
    place: int
    value: int  # of arrivals, or the count of init, or the parity waited for
    extra: int  # bytes expected; for a wait whether it was complete


class Bulk(NamedTuple):
    """A bulk or tensor copy; `ends` are mbarriers (CTA, place), none for a store."""

    size: int
    address: int
    inner: int
    ends: tuple[tuple[int, int], ...]


class Product(NamedTuple):
    """`tcgen05.mma`."""

    m: int
    n: int
    k: int
    pair: bool
    a_in_tensor_memory: bool


class Commit(NamedTuple):
    """`tcgen05.commit` to mbarriers (CTA, place)."""

    ends: tuple[tuple[int, int], ...]


class Barrier(NamedTuple):
    """`bar` with a number and how many threads take part (0: all)."""

    number: int
    threads: int


Note = Global | Shared | Mbarrier | Bulk | Product | Commit | Barrier


def bytes_of(note: Note) -> int:
    """Bytes that an access moves: whole sectors of global memory, wavefronts of shared memory."""
    if isinstance(note, Global):
        return len(note.sectors) * SECTOR
    if isinstance(note, Shared):
        return note.wavefronts * _BANKS * _WORD
    return note.size if isinstance(note, Bulk) else 0


@dataclass(slots=True)
class Step:
    """A block of PTX that a warp ran; `notes[pos]` of the instruction at a place of the text."""

    block: int
    lanes: int = 32
    notes: dict[int, list[Note]] | None = None

    def note(self, pos: int, note: Note) -> None:
        if self.notes is None:
            self.notes = {}
        self.notes.setdefault(pos, []).append(note)


class TooLong(Exception):
    """The record has more steps than the model takes."""


class Recording(Trace, Protocol):
    """A recorder that can forget what it was told."""

    def restart(self) -> None:
        """The launch begins anew."""
        ...


@dataclass
class Recorder:
    """Records a launch; `warps[(cta, warp)]` are the steps of a warp."""

    most_steps: int = 4_000_000
    warps: dict[tuple[int, int], list[Step]] = field(default_factory=lambda: defaultdict(list))
    most_columns: int = 0
    steps: int = 0
    per_cta: int = 0
    _now: dict[int, Step] = field(default_factory=dict)
    _patterns: dict[Any, Any] = field(default_factory=dict)

    def restart(self) -> None:
        self.warps.clear()
        self._now.clear()
        self.steps = self.most_columns = 0

    # --- calls of the simulator -------------------------------------------------------------

    def block(self, wave: Wave, block: Block, g: Group) -> None:
        self.per_cta = wave.warps_per_cta
        counts = None if g.mask is None else g.mask.sum(axis=1)
        self.steps += len(g.rows)
        if self.steps > self.most_steps:
            raise TooLong
        for i, row in enumerate(g.rows.tolist()):
            step = Step(block.number, 32 if counts is None else int(counts[i]))
            self._now[row] = step
            cta = row // self.per_cta + wave.first_cta
            self.warps[cta, row % self.per_cta].append(step)
        if block.sync is not None:
            owner = getattr(block.sync.arrive, "__self__", None)
            if isinstance(owner, CtaBarrier) and block.end_instr is not None:
                self._barrier(g, owner, block.end_instr)

    def _barrier(self, g: Group, owner: CtaBarrier, ins: Instr) -> None:
        ids = _first_lanes(g, np.asarray(owner.ids(g)))
        counts = np.zeros(len(g.rows), np.int64)
        if owner.counts is not None:
            counts = _first_lanes(g, np.asarray(owner.counts(g)))
        for row, number, count in zip(g.rows.tolist(), ids.tolist(), counts.tolist(), strict=True):
            self._now[row].note(ins.pos, Barrier(number, count))

    def access(self, wave: Wave, kind: str, g: Group, part: Part, count: int) -> None:
        if part.space not in ("global", "shared"):
            return
        ins = _current(wave)
        if ins.op == "cp":
            return
        rows = g.lane_rows() if part.pick is None else g.lane_rows()[part.pick]
        lanes = g.lane_ids() if part.pick is None else g.lane_ids()[part.pick]
        size = part.data.dtype.itemsize
        start = (part.index * size + part.base).astype(np.int64)
        self._accesses(ins, part.space, rows, lanes, start, size * count)

    def copy(self, wave: Wave, rows: Array, lanes: Array, start: Array, width: int) -> None:
        self._accesses(_current(wave), "global", rows, lanes, start.astype(np.int64), width)

    def mbarrier(
        self, wave: Wave, what: str, rows: Array, places: Array, counts: Array, extra: Array
    ) -> None:
        pos = _current(wave).pos
        stride = wave.shared.stride // 8
        if len(rows) and all((a == a[0]).all() for a in (places, counts, extra)):  # as most are
            cta, offset = divmod(int(places[0]), stride)
            for row, threads in Counter(rows.tolist()).items():
                value, more = _together(what, threads, int(counts[0]), int(extra[0]))
                note = Mbarrier(what, cta + wave.first_cta, offset, value, more)
                self._now[row].note(pos, note)
            return
        seen: dict[tuple[int, int], list[int]] = {}
        for row, place, count, more in zip(
            rows.tolist(), places.tolist(), counts.tolist(), extra.tolist(), strict=True
        ):
            entry = seen.setdefault((row, place), [0, 0])
            if what == "wait":
                entry[0], entry[1] = count, int(more)
            elif what == "init":
                entry[0] = count
            elif what == "copies":
                entry[0], entry[1] = entry[0] + 1, count
            else:
                entry[0] += count
                entry[1] += more
        for (row, place), (count, more) in seen.items():
            cta, offset = divmod(place, stride)
            self._now[row].note(pos, Mbarrier(what, cta + wave.first_cta, offset, count, more))

    def bulk(
        self, wave: Wave, row: int, size: int, address: int, inner: int, ends: list[tuple[int, int]]
    ) -> None:
        stride = wave.shared.stride // 8
        known = tuple((cta + wave.first_cta, place % stride) for cta, place in ends)
        step, pos, note = self._now[row], _current(wave).pos, Bulk(size, address, inner, known)
        # Engines take one request of a warp: threads that store the same do it once.
        if known or note not in (step.notes or {}).get(pos, ()):
            step.note(pos, note)

    def product(
        self, wave: Wave, row: int, shape: tuple[int, int, int], pair: bool, a: bool
    ) -> None:
        self._now[row].note(_current(wave).pos, Product(*shape, pair, a))

    def commit(self, wave: Wave, row: int, places: list[int]) -> None:
        stride = wave.shared.stride // 8
        ends = tuple((p // stride + wave.first_cta, p % stride) for p in places)
        self._now[row].note(_current(wave).pos, Commit(ends))

    def columns(self, wave: Wave, row: int, count: int) -> None:
        self.most_columns = max(self.most_columns, count)

    # --- patterns of addresses --------------------------------------------------------------

    def _accesses(
        self, ins: Instr, space: str, rows: Array, lanes: Array, start: Array, width: int
    ) -> None:
        """Notes for each warp; equal patterns of addresses are looked at once."""
        bounds = np.flatnonzero(rows[1:] != rows[:-1]) + 1
        firsts = [0, *bounds.tolist()]
        ends = [*bounds.tolist(), len(rows)]
        for first, end in zip(firsts, ends, strict=True):
            mine = start[first:end]
            low = int(mine.min())
            step = self._now[int(rows[first])]
            relative = mine - low
            key = (space, width, low & 127, relative.tobytes(), lanes[first:end].tobytes())
            if space == "shared":
                waves = self._patterns.get(key)
                if waves is None:
                    waves = _wavefronts(relative + (low & 127), lanes[first:end], width)
                    self._patterns[key] = waves
                step.note(ins.pos, Shared(waves))
            else:
                if key not in self._patterns:
                    self._patterns[key] = _sectors(relative + (low & 127), width)
                step.note(ins.pos, Global(low, *self._patterns[key]))


def _together(what: str, threads: int, count: int, extra: int) -> tuple[int, int]:
    """`value` and `extra` of what so many threads of a warp do with the same mbarrier."""
    if what == "wait":
        return count, extra
    if what == "init":
        return count, 0
    return (threads, count) if what == "copies" else (threads * count, threads * extra)


def _current(wave: Wave) -> Instr:
    block, steps = wave.cursor
    return block.instrs[len(block.code) - 1 - length_hint(steps)]


def _first_lanes(g: Group, values: Array) -> Array:
    """The value of the first active lane of each row."""
    full = np.broadcast_to(values, (len(g.rows), 32))
    at = np.zeros(len(g.rows), np.int64) if g.mask is None else g.mask.argmax(axis=1)
    return full[np.arange(len(g.rows)), at].astype(np.int64)


def _sectors(start: Array, width: int) -> tuple[tuple[int, ...], int]:
    """Sectors, from the first on, and how many lines of four they are in."""
    sectors = np.unique(start[:, None] // SECTOR + np.arange(-(-width // SECTOR) or 1))
    return tuple((sectors - sectors[0]).tolist()), len(np.unique(sectors // 4))


def _wavefronts(start: Array, lanes: Array, width: int) -> int:
    """Turns of the 32 banks, as `tile_sim.machine.counters` counts them."""
    words = max(width // _WORD, 1)
    at = start[:, None] // _WORD + np.arange(words)
    part = np.broadcast_to((lanes * words // 32)[:, None], at.shape).reshape(-1)
    pairs = np.unique(np.stack([part, at.reshape(-1)], axis=1), axis=0)
    total, seen = 0, set()
    for number in np.unique(pairs[:, 0]).tolist():
        fresh = [w for w in pairs[pairs[:, 0] == number, 1].tolist() if w not in seen]
        seen.update(fresh)
        if fresh:
            total += int(np.bincount(np.array(fresh) % _BANKS).max())
    return total

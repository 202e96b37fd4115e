"""mbarrier objects (PTX ISA, "mbarrier").

The 64-bit word in shared memory holds the state itself, so barriers can lie anywhere:
bits 0-19 pending arrivals, 20-39 expected arrivals, 40-61 pending transaction bytes (biased),
62 the phase. The current phase is complete when nothing is pending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.access import BARRIER

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray
LIMIT = (1 << 20) - 1
_TX_BIAS = 1 << 21
_TX_LIMIT = (1 << 20) - 1
_BARRIER_WORD = int.from_bytes(bytes([BARRIER] * 8), "little")


def pack(pending: Array, expected: Array, tx: Array, phase: Array) -> Array:
    word = pending | expected << 20 | (tx + _TX_BIAS) << 40 | phase << 62
    return word.astype(np.uint64)


def unpack(word: Array) -> tuple[Array, Array, Array, Array]:
    """Pending, expected, tx, phase, int64."""
    w = word.view(np.int64)
    return w & LIMIT, w >> 20 & LIMIT, (w >> 40 & ((1 << 22) - 1)) - _TX_BIAS, w >> 62 & 1


class Barriers64:
    """All mbarrier objects of a wave; places are indices of 64-bit words of shared memory."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.words, self.state = wave.shared.view(np.dtype("<u8"))
        #: Phases that each word has completed since the wave began, whoever initialised it.
        self.completed = np.zeros(len(self.words), np.int32)

    def init(self, places: Array, counts: Array) -> None:
        """Unless `strict`, a count of 0 is let pass; no mbarrier is there then, and uses fail."""
        least = 1 if self.wave.settings.strict else 0
        wrong = (counts < least) | (counts > LIMIT)
        if wrong.any():
            raise SimError("mbarrier", f"count {int(counts[wrong][0])} is not in 1..{LIMIT}")
        if (self.state[places] == _BARRIER_WORD).any():
            raise SimError(
                "mbarrier", "mbarrier.init of a live mbarrier (use mbarrier.inval first)"
            )
        places, counts = places[counts > 0], counts[counts > 0]
        zero = np.zeros_like(counts)
        self.words[places] = pack(counts, counts, zero, zero)
        self.state[places] = np.uint64(_BARRIER_WORD)
        self.wave.progress += 1

    def invalidate(self, places: Array) -> None:
        """Unless `strict`, memory may be made no mbarrier that is none already."""
        if self.wave.settings.strict:
            self.require(places)
        places = places[self.state[places] == np.uint64(_BARRIER_WORD)]
        self.state[places] = np.uint64(0)

    def require(self, places: Array) -> None:
        if (self.state[places] != np.uint64(_BARRIER_WORD)).any():
            raise SimError(
                "mbarrier", "no mbarrier object here (mbarrier.init is missing, or its count is 0)"
            )

    def change(self, places: Array, arrivals: Array, expect: Array, drops: Array | None) -> Array:
        """Arrivals and expected bytes of several threads, in their order; the words before.

        `expect` is added to the pending bytes before the arrival counts, negative completes.
        """
        self.require(places)
        self.wave.progress += 1
        before = np.zeros(len(places), np.uint64)
        together = drops is None and not expect.any()
        if together and (places == places[0]).all() and self._one_barrier(places, arrivals, before):
            return before
        if len(places) == 1 or (len(np.unique(places)) == len(places)):
            before[:] = self.words[places]
            self._apply(places, arrivals, expect, drops)
            return before
        if together:
            return self._many_arrivals(places, arrivals, before)
        for i in range(len(places)):
            one = slice(i, i + 1)
            before[one] = self.words[places[one]]
            self._apply(
                places[one], arrivals[one], expect[one], None if drops is None else drops[one]
            )
        return before

    def _one_barrier(self, places: Array, arrivals: Array, before: Array) -> bool:
        """All arrive at the same barrier, within one phase: whether it is so."""
        total = arrivals.sum(keepdims=True)
        if total[0] > int(self.words[places[0]]) & LIMIT:
            return False
        before[:] = self.words[places[0]]
        self._apply(places[:1], total, np.zeros_like(total), None)
        return True

    def _many_arrivals(self, places: Array, arrivals: Array, before: Array) -> Array:
        """Several threads arrive at the same barriers: as many at once as a phase takes."""
        todo = np.ones(len(places), bool)
        while todo.any():
            left = np.flatnonzero(todo)
            unique, inverse = np.unique(places[left], return_inverse=True)
            pending = unpack(self.words[unique])[0]
            order = np.argsort(inverse, kind="stable")
            total = np.cumsum(arrivals[left][order])
            first = np.concatenate([[True], np.diff(inverse[order]) > 0])
            base = np.maximum.accumulate(np.where(first, total - arrivals[left][order], 0))
            fits = np.zeros(len(left), bool)
            fits[order] = total - base <= pending[inverse[order]]
            if not fits.any():
                raise SimError("mbarrier", "more arrivals than the mbarrier expects")
            now = left[fits]
            before[now] = self.words[places[now]]
            counts = np.zeros(len(unique), np.int64)
            np.add.at(counts, inverse[fits], arrivals[now])
            self._apply(unique, counts, np.zeros_like(counts), None)
            todo[now] = False
        return before

    def _apply(self, places: Array, arrivals: Array, expect: Array, drops: Array | None) -> None:
        pending, expected, tx, phase = unpack(self.words[places])
        if drops is not None:
            expected = expected - drops
        pending, tx = pending - arrivals, tx + expect
        if (pending < 0).any():
            raise SimError("mbarrier", "more arrivals than the mbarrier expects")
        if (np.abs(tx) > _TX_LIMIT).any():
            raise SimError("mbarrier", "transaction count out of range")
        done = (pending == 0) & (tx == 0)
        phase = np.where(done, phase ^ 1, phase)
        self.completed[places] += done
        pending = np.where(done, expected, pending)
        self.words[places] = pack(pending, expected, tx, phase)

    def complete_tx(self, place: int, amount: int) -> None:
        """An asynchronous operation has transferred bytes."""
        if int(self.state[place]) != _BARRIER_WORD:
            self.require(np.array([place]))
        self.wave.progress += 1
        word = int(self.words[place])  # one word, so often that arrays are too slow
        tx = (word >> 40 & (1 << 22) - 1) - _TX_BIAS - amount
        if abs(tx) > _TX_LIMIT:
            raise SimError("mbarrier", "transaction count out of range")
        pending, expected, phase = word & LIMIT, word >> 20 & LIMIT, word >> 62 & 1
        if pending == 0 and tx == 0:
            pending, phase = expected, phase ^ 1
            self.completed[place] += 1
        self.words[place] = pending | expected << 20 | (tx + _TX_BIAS) << 40 | phase << 62

    def describe(self, cta: int, most: int = 8) -> list[str]:
        """The mbarriers of a CTA in words, for reports."""
        space = self.wave.shared
        first = cta * space.stride // 8
        live = self.state[first : first + space.stride // 8] == np.uint64(_BARRIER_WORD)
        found = []
        for place in np.flatnonzero(live)[:most]:
            fields = unpack(self.words[first + place : first + place + 1])
            pending, expected, tx, phase = (int(field[0]) for field in fields)
            found.append(
                f"mbarrier at shared offset {8 * int(place)} of CTA {cta + self.wave.first_cta}: "
                f"phase {phase}, {pending} of {expected} arrivals and {tx} bytes pending"
            )
        return found

    def passed(self, places: Array, parity: Array) -> Array:
        """Whether the phase of that parity is complete (the current one has the other parity)."""
        self.require(places)
        return unpack(self.words[places])[3] != parity

    def raise_pending(self, places: Array) -> None:
        """One more pending arrival for each thread, in the current phase only."""
        self.require(places)
        unique, counts = np.unique(places, return_counts=True)
        pending, expected, tx, phase = unpack(self.words[unique])
        if (pending + counts > LIMIT).any():
            raise SimError("mbarrier", "pending count out of range")
        self.words[unique] = pack(pending + counts, expected, tx, phase)


class Initialised:
    """For each mbarrier the warp that initialised it (-1: none), its clock, when, and where."""

    def __init__(self, barriers: int) -> None:
        self.row, self.clock, self.time, self.place = np.full((4, barriers), -1, np.int64)

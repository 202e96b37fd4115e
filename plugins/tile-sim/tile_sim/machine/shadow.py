"""What the checker remembers of each piece of memory: who wrote it last, and who read it."""

from __future__ import annotations

import numpy as np

from tile_sim.machine.distinct import distinct

Array = np.ndarray
_COARSE = 4


class Shadow:
    """Last writer and two of the readers since, for each granule of a byte range.

    Granules are 4 bytes until something narrower is accessed, then single bytes. An event is
    (warp, clock of the warp, place in the program); readers are the first and the last of those
    that were recorded together, so that one of them is not the next writer.
    """

    def __init__(self, size: int) -> None:
        self.granule = _COARSE
        count = -(-size // _COARSE)
        self.writer = np.full(count, -1, np.int32)
        self.reader = np.full((2, count), -1, np.int32)
        self.write_clock = np.zeros(count, np.int32)
        self.read_clock = np.zeros((2, count), np.int32)
        self.write_place = np.zeros(count, np.int32)
        self.read_place = np.zeros((2, count), np.int32)
        self.generic = np.zeros(count, bool)
        self.read_generic = np.zeros((2, count), bool)
        self.atomic = np.zeros(count, bool)
        #: How many pending bulk copies write each granule, and how many granules of copies that is.
        self.landing = np.zeros(0, np.int16)
        #: mbarrier that the copy which wrote a granule signalled (`Landings`, -1: none did), and
        #: how many phases of it are complete once the copy is over. Empty before the first copy.
        self.signalled = np.zeros(0, np.int16)
        self.phase = np.zeros(0, np.int32)
        self.in_flight = 0

    def spans(self, start: Array, width: int) -> Array:
        """Granules `[accesses, n]` of accesses of `width` bytes at byte offsets."""
        if width % _COARSE and self.granule > 1:
            self._refine()
        count = max(width // self.granule, 1)
        return (start // self.granule)[:, None] + np.arange(count)

    def _refine(self) -> None:
        for name in ("writer", "write_clock", "write_place", "generic", "atomic"):
            setattr(self, name, np.repeat(getattr(self, name), _COARSE))
        for name in ("reader", "read_clock", "read_place", "read_generic"):
            setattr(self, name, np.repeat(getattr(self, name), _COARSE, axis=1))
        for name in ("landing", "signalled", "phase"):
            setattr(self, name, np.repeat(getattr(self, name), _COARSE))
        self.granule = 1

    def covering(self, where: Array) -> Array:
        """The granules of bytes, each once; they hold no other bytes."""
        where = distinct(where)
        at = distinct(where // self.granule)
        if len(at) * self.granule != len(where):
            self._refine()
            return where
        return at

    def lands(self, at: Array, delta: int) -> None:
        """Pending bulk copies that write granules begin (1) or end (-1)."""
        if not len(self.landing):
            self.landing = np.zeros(len(self.writer), np.int16)
        self.landing[at] += np.int16(delta)
        self.in_flight += delta * (len(at) * self.granule)

    def filled(self, at: Array, slot: int, phase: int) -> None:
        """A copy that signals an mbarrier has written granules."""
        if not len(self.signalled):
            self.signalled = np.full(len(self.writer), -1, np.int16)
            self.phase = np.zeros(len(self.writer), np.int32)
        self.signalled[at], self.phase[at] = slot, phase

    def note_write(self, at: Array, warp: Array, clock: Array, place: int) -> None:
        self.writer[at] = warp
        self.write_clock[at] = clock
        self.write_place[at] = place
        if len(self.signalled):
            self.signalled[at] = -1
        self.reader[:, at] = -1

    def note_read(
        self, at: Array, warp: Array, clock: Array, place: int, generic: bool = True
    ) -> None:
        backwards = slice(None, None, -1)
        for k, order in ((0, slice(None)), (1, backwards)):
            self.reader[k, at[order]] = warp[order]
            self.read_clock[k, at[order]] = clock[order]
            self.read_place[k, at[order]] = place
            self.read_generic[k, at[order]] = generic

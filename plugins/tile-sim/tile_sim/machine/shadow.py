"""What the checker remembers of each piece of memory: who wrote it last, and who read it."""

from __future__ import annotations

import numpy as np

from tile_sim.machine.distinct import distinct

Array = np.ndarray
_COARSE = 4
#: Readers that are remembered of a proxy.
_READERS = 2
#: The clock of an access that is still under way: nobody has heard of it.
IN_FLIGHT = np.iinfo(np.int32).max


class Shadow:
    """Last writer and two of the readers since, for each granule of a byte range; where the
    asynchronous proxy reads some, two of either proxy.

    Granules are 4 bytes until something narrower is accessed, then single bytes. An event is
    (warp, clock of the warp, place in the program); readers are the first and the last of those
    that were recorded together, so that one of them is not the next writer.
    """

    def __init__(self, size: int) -> None:
        self.granule = _COARSE
        count = -(-size // _COARSE)
        #: Whether anything has been written since the wave began.
        self.written = False
        self.writer = np.full(count, -1, np.int32)
        self.reader = np.full((2, count), -1, np.int32)
        self.write_clock = np.zeros(count, np.int32)
        self.read_clock = np.zeros((2, count), np.int32)
        self.write_place = np.zeros(count, np.int32)
        self.read_place = np.zeros((2, count), np.int32)
        self.generic = np.zeros(count, bool)
        self.read_generic = np.zeros((2, count), bool)
        self.atomic = np.zeros(count, bool)
        #: Numbers of the asynchronous loads that read each granule since it was written, the first
        #: and the last (0: none). Empty before the first load.
        self.loads = np.zeros((2, 0), np.int32)
        #: mbarrier that the copy which wrote a granule signalled (`Landings`, -1: none did), and
        #: how many phases of it are complete once the copy is over. Empty before the first copy.
        self.signalled = np.zeros(0, np.int16)
        self.phase = np.zeros(0, np.int32)

    def spans(self, start: Array, width: int) -> Array:
        """Granules `[accesses, n]` of accesses of `width` bytes at byte offsets."""
        if width % _COARSE and self.granule > 1:
            self._refine()
        count = max(width // self.granule, 1)
        return (start // self.granule)[:, None] + np.arange(count)

    def _refine(self) -> None:
        for name in ("writer", "write_clock", "write_place", "generic", "atomic"):
            setattr(self, name, np.repeat(getattr(self, name), _COARSE))
        for name in ("reader", "read_clock", "read_place", "read_generic", "loads"):
            setattr(self, name, np.repeat(getattr(self, name), _COARSE, axis=1))
        for name in ("signalled", "phase"):
            setattr(self, name, np.repeat(getattr(self, name), _COARSE))
        self.granule = 1

    def covering(self, starts: Array, lengths: Array) -> Array:
        """The granules of runs of bytes, each once; they hold no other bytes."""
        if self.granule > 1 and ((starts | lengths) % self.granule).any():
            self._refine()
        first, count = starts // self.granule, lengths // self.granule
        before = np.cumsum(count) - count
        return distinct(np.repeat(first - before, count) + np.arange(int(count.sum())))

    def finer(self, at: Array, granule: int) -> Array:
        """Granules that had another size when they were looked up."""
        if granule == self.granule:
            return at
        return (at.reshape(-1)[:, None] * granule + np.arange(granule)).reshape(-1)

    def filled(self, at: Array, slot: int, phase: int) -> None:
        """A copy that signals an mbarrier has written granules."""
        if not len(self.signalled):
            self.signalled = np.full(len(self.writer), -1, np.int16)
            self.phase = np.zeros(len(self.writer), np.int32)
        self.signalled[at], self.phase[at] = slot, phase

    def note_write(self, at: Array, warp: Array, clock: Array | int, place: int) -> None:
        self.written = True
        self.writer[at] = warp
        self.write_clock[at] = clock
        self.write_place[at] = place
        if len(self.signalled):
            self.signalled[at] = -1
        if self.loads.shape[1]:
            self.loads[:, at] = 0
        self.reader[:, at] = -1

    def note_read(
        self, at: Array, warp: Array, clock: Array, place: int, generic: bool = True
    ) -> None:
        backwards = slice(None, None, -1)
        if not generic and len(self.reader) == _READERS:
            self._add_readers()
        first = 0 if generic else _READERS
        for k, order in ((first, slice(None)), (first + 1, backwards)):
            self.reader[k, at[order]] = warp[order]
            self.read_clock[k, at[order]] = clock[order]
            self.read_place[k, at[order]] = place
            self.read_generic[k, at[order]] = generic

    def _add_readers(self) -> None:
        """Places for readers of the asynchronous proxy."""
        self.reader = np.concatenate([self.reader, np.full_like(self.reader, -1)])
        for name in ("read_clock", "read_place", "read_generic"):
            known = getattr(self, name)
            setattr(self, name, np.concatenate([known, np.zeros_like(known)]))

    @property
    def readers(self) -> range:
        """Numbers of the readers that are remembered of a granule."""
        return range(len(self.reader))

    def note_load(self, at: Array, number: int) -> None:
        """The asynchronous load of that number reads granules."""
        if not self.loads.shape[1]:
            self.loads = np.zeros((2, len(self.writer)), np.int32)
        first = self.loads[0, at]
        self.loads[0, at] = np.where(first > 0, first, number)
        self.loads[1, at] = number

    # --- accesses that were in flight -------------------------------------------------------

    def landed(self, at: Array, warp: Array | int, clock: Array) -> None:
        """Writes of warps that were in flight are over, at their clocks."""
        mine = (self.write_clock[at] == IN_FLIGHT) & (self.writer[at] == warp)
        self.write_clock[at] = np.where(mine, clock, self.write_clock[at])

    def taken(self, at: Array, warp: Array, clock: Array) -> None:
        """The same of reads."""
        for k in self.readers:
            mine = (self.read_clock[k, at] == IN_FLIGHT) & (self.reader[k, at] == warp)
            self.read_clock[k, at] = np.where(mine, clock, self.read_clock[k, at])

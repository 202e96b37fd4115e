"""Check mode for copies between global memory and elsewhere, which go on while threads do.

A load by the asynchronous proxy reads its source until it is over: for who has waited for the
phase of the mbarrier that it signals, or has heard of a wait. A store is in flight until the thread
that began it has waited for its bulk group, not only for its reads; the shadow has it as a write
that nobody has heard of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tile_sim.machine.memory import Buffer
from tile_sim.machine.shadow import Shadow

if TYPE_CHECKING:
    from tile_sim.machine.monitor import Monitor

Array = np.ndarray
#: Bytes of global memory: a buffer, offsets of runs from its origin, and their lengths.
Spans = list[tuple[Buffer, Array, Array]]
#: Granules of a shadow, and their size when they were looked up.
Granules = list[tuple[Shadow, int, Array]]
_U1 = np.dtype("u1")


@dataclass(eq=False)
class Load:
    """A copy from global memory that a warp began at `place`; `outstanding` mbarriers have yet to
    hear of its end, the others in the phases that `ends` names.
    """

    place: int
    outstanding: int
    ends: list[tuple[int, int]] = field(default_factory=list)


class GlobalWatch:
    """The shadows of buffers, and loads of the asynchronous proxy that read them.

    Of memory that no thread has touched and nothing has written, no shadow is kept: the loads that
    read it are listed, and looked at when something writes there.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._shadows: dict[int, Shadow] = {}
        self._unseen: dict[int, list[tuple[Array, Array, int]]] = {}
        #: By number, from 1 on.
        self._loads: list[Load] = []
        #: mbarrier -> the waits for its phases: how many were complete, the warps, their clocks.
        self._waits: dict[int, list[tuple[int, Array, Array]]] = {}

    def shadow(self, data: Array) -> Shadow:
        """What is known of the memory of an array that begins at the origin of a buffer."""
        key = data.__array_interface__["data"][0]
        found = self._shadows.get(key)
        if found is None:
            found = self._shadows[key] = Shadow(data.nbytes + 8)
            for starts, lengths, number in self._unseen.pop(key, ()):
                found.note_load(found.covering(starts, lengths), number)
        return found

    # --- loads ------------------------------------------------------------------------------

    def load(self, row: int, spans: Spans, what: str, signals: int) -> int:
        """A warp starts a copy of global bytes; so many mbarriers will learn of its end. Its
        number, for `loaded`.
        """
        monitor = self._monitor
        self._loads.append(Load(monitor.place(), signals))
        number = len(self._loads)
        for buffer, starts, lengths in spans:
            data = buffer.view(_U1)
            key = data.__array_interface__["data"][0]
            if key not in self._shadows:
                self._unseen.setdefault(key, []).append((starts, lengths, number))
                continue
            shadow = self._shadows[key]
            at = shadow.covering(starts, lengths)
            if shadow.written:
                monitor.check_read(shadow, at, np.full(len(at), row), "global")
                monitor.check_fenced(shadow, "global", row, at, f"{what} reads")
            shadow.note_load(at, number)
        return number

    def loaded(self, number: int, barrier: int) -> None:
        """The load is about to signal the mbarrier at a word of shared memory."""
        load = self._loads[number - 1]
        load.outstanding -= 1
        load.ends.append((barrier, int(self._monitor.wave.mbarriers.completed[barrier]) + 1))
        self._waits.setdefault(barrier, [])

    def waited(self, barrier: int, rows: Array, phases: int) -> None:
        """Warps have seen that so many phases of an mbarrier are complete."""
        waits = self._waits.get(barrier)
        if waits is not None:
            waits.append((phases, rows, self._monitor.clocks.now(rows)))

    def check_sources(self, shadow: Shadow, at: Array, warp: Array) -> None:
        """Warps write granules, which no load may read any more."""
        for numbers in shadow.loads[:, at]:
            here = np.flatnonzero(numbers)
            pairs, counts = np.unique(
                np.stack([numbers[here], warp[here]]), axis=1, return_counts=True
            )
            for (number, row), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
                self._check_over(self._loads[number - 1], row, count)

    def _check_over(self, load: Load, row: int, count: int) -> None:
        waits = [self._waits_for(*end) for end in load.ends]
        if not load.outstanding and all(self._knows(row, found) for found in waits):
            return
        if load.outstanding or not all(waits):
            kind = "source-overwritten"
            message = "write to global memory that a copy reads, whose mbarrier nobody waited for"
        else:
            kind = "race"
            message = "write to global memory that a copy reads, whose end another warp waited for"
        self._monitor.report(kind, message, load.place, count)

    def _waits_for(self, barrier: int, phase: int) -> list[tuple[Array, Array]]:
        waits = self._waits[barrier]
        return [(rows, clocks) for phases, rows, clocks in waits if phases >= phase]

    def _knows(self, row: int, waits: Iterable[tuple[Array, Array]]) -> bool:
        ordered = self._monitor.clocks.ordered[row]
        return any(bool((ordered[rows] >= clocks).any()) for rows, clocks in waits)

    # --- stores -----------------------------------------------------------------------------

    def store(self, row: int, spans: Spans, combines: bool, again: bool = False) -> Granules:
        """A warp starts a copy to global bytes, or combines something into them; `again` where they
        get the bytes that the last of them gave them. What it writes, for `stored`.
        """
        found: Granules = []
        for buffer, starts, lengths in spans:
            shadow = self.shadow(buffer.view(_U1))
            at = shadow.covering(starts, lengths)
            self._monitor.check_fenced(
                shadow, "global", row, at, "bulk copy writes", over_reads=True
            )
            self._monitor.write_in_flight(shadow, at, row, combines, again)
            found.append((shadow, shadow.granule, at))
        return found

    def stored(self, row: int, granules: Granules) -> None:
        """The warp that began the copy has waited until it was done."""
        now = self._monitor.clocks.now(np.array([row]))
        for shadow, granule, at in granules:
            shadow.landed(shadow.finer(at, granule), row, now)

"""Check mode for `cp.async`: reads and writes that are under way until their thread has waited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tile_sim.machine.access import Part
from tile_sim.machine.group import Group
from tile_sim.machine.shadow import Shadow

if TYPE_CHECKING:
    from tile_sim.machine.monitor import Monitor

Array = np.ndarray


@dataclass(eq=False)
class _Open:
    """Accesses of one instruction, one for each of `threads`, to granules `at` `[threads, n]` of a
    shadow; `group` is the group of each, `open` whether it has been waited for.
    """

    shadow: Shadow
    granule: int
    at: Array
    writes: bool
    threads: Array
    group: Array
    open: Array

    def close(self, due: Array, clocks: Array) -> None:
        """Those of the threads that are `due` are over, at the clocks `[warps]`."""
        self.open &= ~due
        warp = np.repeat(self.threads[due] // 32, self.at.shape[1])
        granules = self.at[due].reshape(-1)
        if self.shadow.granule != self.granule:
            granules = self.shadow.finer(granules, self.granule)
            warp = np.repeat(warp, self.granule // self.shadow.granule)
        over = self.shadow.landed if self.writes else self.shadow.taken
        over(granules, warp, clocks[warp])


class CopyWatch:
    """Copies of threads. Both their accesses are of the generic proxy, in no order with what the
    thread does until it waits (PTX ISA, "cp.async").
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._open: list[_Open] = []

    def access(self, kind: str, g: Group, part: Part, width: int) -> None:
        """Lanes copy bytes from ("read") or to ("write") a part of memory."""
        rows, lanes = g.lane_rows(), g.lane_ids()
        if part.pick is not None:
            rows, lanes = rows[part.pick], lanes[part.pick]
        shadow = self._monitor.shadow(part)
        at = shadow.spans(part.index, width)
        warp = np.repeat(rows, at.shape[1])
        self._monitor.copy_access(kind, shadow, at.reshape(-1), warp, part.space)
        threads = rows * 32 + lanes
        group = g.wave.copies.current[threads]
        still = np.ones(len(threads), bool)
        new = _Open(shadow, shadow.granule, at, kind == "write", threads, group, still)
        self._open.append(new)

    def waited(self, threads: Array, left: int) -> None:
        """Of each thread, at most `left` of its newest committed groups are under way."""
        current = self._monitor.wave.copies.current
        limit = np.full(len(current), -1, np.int64)
        limit[threads] = current[threads] - left
        clocks = self._clocks()
        for one in self._open:
            due = one.open & (one.group < limit[one.threads])
            if due.any():
                one.close(due, clocks)
        self._clean()

    def arrival(self, g: Group, barriers: Array) -> Callable[[], None]:
        """Threads tell mbarriers to wait for what they have under way; what is to be run when that
        is over. It is then over for who knows of their arrival.
        """
        threads = g.lane_rows() * 32 + g.lane_ids()
        wanted = np.zeros(len(self._monitor.wave.copies.current), bool)
        wanted[threads] = True
        found = [(one, one.open & wanted[one.threads]) for one in self._open]
        clocks = self._clocks().copy()
        phases = self._monitor.wave.mbarriers.completed[barriers]
        self._monitor.mbarrier_arrive(g, barriers, phases)

        def fired() -> None:
            for one, before in found:
                due = before & one.open
                if due.any():
                    one.close(due, clocks)
            self._clean()

        return fired

    def _clocks(self) -> Array:
        return np.diagonal(self._monitor.clocks.ordered)

    def _clean(self) -> None:
        self._open = [one for one in self._open if one.open.any()]

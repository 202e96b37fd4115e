"""Check mode for tensor maps that kernels write: the fence behind each, and copies under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tile_sim.machine.monitor import Monitor

_UNFENCED = "copy by a tensor map without fence.proxy.tensormap behind what wrote it"
_IN_USE = "a tensor map is written that a copy may still read"


@dataclass(frozen=True)
class _Written:
    """Which warp wrote a map, at which of its clocks, and where."""

    row: int
    clock: int
    place: int


@dataclass
class Use:
    """A copy that reads a map, from when it is begun by warp `row` at `place` of the program.

    A load is over for who has heard of a phase of an mbarrier that it signals: `landed` are their
    slots and phases, one for each block that it has reached. A store is over for who knows that its
    thread has waited, at the clock `awaited`.
    """

    row: int
    place: int
    landed: list[tuple[int, int]] = field(default_factory=list)
    awaited: int | None = None


class MapWatch:
    """Maps in global memory that warps have written.

    PTX ISA, "tensormap.cp_fenceproxy": a map is released to the tensor map proxy as it is written,
    and whoever begins copies by it acquires it, each time. A copy reads its map until it is over,
    or, of stores, until their bulk group is read (`cp.async.bulk.wait_group.read`).
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._written: dict[int, _Written] = {}
        self._acquired: set[tuple[int, int]] = set()
        self._uses: dict[int, list[Use]] = {}

    def written(self, row: int, place: int) -> None:
        """A warp has copied a map to global memory, released to the tensor map proxy."""
        for use in self._uses.pop(place, ()):
            if not self._is_over(use, row):
                self._monitor.report("map-in-use", _IN_USE, use.place)
        clock = int(self._monitor.clocks.now(np.array([row]))[0])
        self._written[place] = _Written(row, clock, self._monitor.place())
        self._acquired = {one for one in self._acquired if one[1] != place}

    def acquired(self, row: int, place: int) -> None:
        """A warp fences: copies that it starts see the map, if it has heard of who wrote it."""
        made = self._written.get(place)
        if made is not None and self._knows(row, made.row, made.clock):
            self._acquired.add((row, place))

    def used(self, row: int, place: int) -> Use | None:
        """A warp starts a copy by a map; None for a map that nobody here has written."""
        made = self._written.get(place)
        if made is None:
            return None
        if (row, place) not in self._acquired:
            self._monitor.report("missing-proxy-fence", _UNFENCED, made.place)
        use = Use(row, self._monitor.place())
        self._uses.setdefault(place, []).append(use)
        return use

    def landed(self, use: Use, barrier: int) -> None:
        """A load by a map is about to signal the mbarrier at a word of shared memory."""
        slot = self._monitor.clocks.landings.slot(barrier)
        use.landed.append((slot, int(self._monitor.wave.mbarriers.completed[barrier]) + 1))

    def awaited(self, use: Use) -> None:
        """The thread that began a store has waited until it was read."""
        use.awaited = int(self._monitor.clocks.now(np.array([use.row]))[0])

    def _is_over(self, use: Use, row: int) -> bool:
        """Whether a warp knows that a copy reads its map no more."""
        if use.awaited is not None:
            return self._knows(row, use.row, use.awaited)
        heard = self._monitor.clocks.landings.heard[row]
        return any(heard[slot] >= phase for slot, phase in use.landed)

    def _knows(self, row: int, other: int, clock: int) -> bool:
        return row == other or self._monitor.clocks.ordered[row, other] >= clock

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
    """A copy that reads a map, from when it is begun at `place` of the program. It is over for who
    has waited for it, a warp at one of its clocks, or has heard of one that had.
    """

    place: int
    awaited: list[tuple[int, int]] = field(default_factory=list)


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
        #: mbarrier -> (its phase that the last loads by maps end, those loads).
        self._landed: dict[int, tuple[int, list[Use]]] = {}

    def written(self, row: int, place: int) -> None:
        """A warp has copied a map to global memory, released to the tensor map proxy."""
        for use in self._uses.pop(place, ()):
            if not self._is_over(use, row):
                self._monitor.report("map-in-use", _IN_USE, use.place)
        self._written[place] = _Written(row, self._now(row), self._monitor.place())
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
        use = Use(self._monitor.place())
        self._uses.setdefault(place, []).append(use)
        return use

    def landed(self, use: Use, barrier: int) -> None:
        """A load by a map is about to signal the mbarrier at a word of shared memory."""
        phase = int(self._monitor.wave.mbarriers.completed[barrier]) + 1
        before, uses = self._landed.get(barrier, (phase, []))
        self._landed[barrier] = phase, [*uses, use] if before == phase else [use]

    def waited(self, barrier: int, rows: np.ndarray, phases: int) -> None:
        """Warps have seen that so many phases of an mbarrier are complete."""
        phase, uses = self._landed.get(barrier, (0, []))
        if phase <= phases:
            for use in uses:
                use.awaited += [(row, self._now(row)) for row in rows.tolist()]

    def read(self, use: Use, row: int) -> None:
        """The warp that began a store has waited until it was read."""
        use.awaited.append((row, self._now(row)))

    def _is_over(self, use: Use, row: int) -> bool:
        return any(self._knows(row, *one) for one in use.awaited)

    def _knows(self, row: int, other: int, clock: int) -> bool:
        return row == other or self._monitor.clocks.ordered[row, other] >= clock

    def _now(self, row: int) -> int:
        return int(self._monitor.clocks.ordered[row, row])

"""What strong accesses and fences pass on, by their order and scope (PTX ISA, "Memory consistency
model").

A release makes known what its warp has done to who acquires at the same location; a fence before a
relaxed write, or behind a relaxed read, does so in its place. Both sides have to name a scope that
holds the other one: each level of scopes is kept apart, and what a wide scope leaves counts for the
narrower ones of the warps that left it, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tile_sim.machine.clocks import INITIALISED, TENSOR, Clocks
from tile_sim.machine.left import Left

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray
_CTA, _CLUSTER, _GPU = range(3)
#: Words of PTX for scopes; other devices are not simulated.
LEVELS = {"cta": _CTA, "cluster": _CLUSTER, "gpu": _GPU, "gl": _GPU, "sys": _GPU}


@dataclass(frozen=True)
class Order:
    """Of a strong access or a fence; relaxed where it neither acquires nor releases."""

    acquires: bool
    releases: bool
    scope: int


def order_of(semantic: str, scope: str | None) -> Order:
    """Of PTX's words, `scope` None: of the device. An acquire also says that of a read only."""
    both = semantic in ("acq_rel", "sc")
    level = _GPU if scope is None else LEVELS[scope]
    return Order(both or semantic == "acquire", both or semantic == "release", level)


class Orders:
    """Of one wave: what is left at locations, and what fences hold ready.

    Where the program names no scope but the device's and wider ones, one level is kept.
    """

    def __init__(self, clocks: Clocks, wave: Wave) -> None:
        self._clocks = clocks
        self._groups = {_CTA: wave.cta_of, _CLUSTER: wave.cta_of // wave.cluster_size}
        narrow = any(scope < _GPU for scope in wave.program.scopes)
        self._levels = (_CTA, _CLUSTER, _GPU) if narrow else (_GPU,)
        self._left = Left()
        #: Level -> `[kinds, warps, warps]`: what a relaxed write of a warp leaves, by its last
        #: fence, and what its relaxed reads have found, for its next one.
        self._fenced: dict[int, Array] = {}
        self._found: dict[int, Array] = {}

    def fence(self, rows: Array, order: Order) -> None:
        """Warps execute a fence."""
        known = self._clocks.known
        for level in self._within(order.scope):
            if order.acquires and level in self._found:
                known[:, rows] = np.maximum(known[:, rows], self._found[level][:, rows])
        for level in self._within(order.scope):
            if order.releases:
                self._of(self._fenced, level)[:, rows] = known[:, rows]
        self._clocks.advance(rows)

    def leave(self, key: Hashable, rows: Array, order: Order) -> None:
        """Warps write a location."""
        for level in self._within(order.scope):
            source = self._clocks.known if order.releases else self._fenced.get(level)
            if source is None:
                continue
            for domain, mine in self._domains(level, rows):
                self._left.leave((key, level, domain), source[:, mine].max(axis=1))
        if order.releases or self._fenced:
            self._clocks.landings.release(key, rows, 0)
        if order.releases:
            self._clocks.advance(rows)

    def take(self, key: Hashable, rows: Array, order: Order) -> None:
        """Warps read a location."""
        for level in self._within(order.scope):
            for domain, mine in self._domains(level, rows):
                left = self._left.take((key, level, domain))
                if left is None:
                    continue
                known = self._clocks.known if order.acquires else self._of(self._found, level)
                known[:, mine] = np.maximum(known[:, mine], left[:, None])
        self._clocks.landings.acquire(key, rows, 0)

    def arrive_relaxed(self, key: Hashable, rows: Array, phase: int) -> None:
        """Warps arrive at a barrier of their cluster and hand over what they fenced: by a fence of
        memory, of barriers that they made, or of tcgen05.
        """
        fenced = self._fenced.get(self._within(_CLUSTER)[-1])
        left = np.zeros_like(self._clocks.known[:, 0])
        for kind in (TENSOR, INITIALISED):
            left[kind] = self._clocks.known[kind, rows].max(axis=0)
        if fenced is not None:
            left = np.maximum(left, fenced[:, rows].max(axis=1))
            self._clocks.landings.release(key, rows, phase)
        self._clocks.leave(key, left, phase)

    def _within(self, scope: int) -> tuple[int, ...]:
        """The levels that are kept of a scope."""
        return self._levels[: scope + 1] if len(self._levels) > 1 else self._levels

    def _domains(self, level: int, rows: Array) -> Iterator[tuple[int, Array]]:
        if level == _GPU:
            yield 0, rows
            return
        of = self._groups[level][rows]
        for one in np.unique(of).tolist():
            yield one, rows[of == one]

    def _of(self, held: dict[int, Array], level: int) -> Array:
        return held.setdefault(level, np.zeros_like(self._clocks.known))

"""What the warps of a wave know of each other: vector clocks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from tile_sim.machine.landings import Landings
from tile_sim.machine.left import Left

Array = np.ndarray
#: Kinds of knowledge that travel along every synchronisation. An event of another warp happened
#: before; a proxy fence makes it visible to the asynchronous proxy, too, in shared or in global
#: memory; a `tcgen05.fence::before_thread_sync` (or a commit) stands behind it; a
#: `fence.mbarrier_init` does.
ORDERED, PROXIED, TENSOR, PROXIED_GLOBAL, INITIALISED = range(5)
#: Memory that a proxy fence is of -> what it makes known.
PROXY_KINDS = {"shared": PROXIED, "global": PROXIED_GLOBAL}


@dataclass(frozen=True)
class Snapshot:
    """What a warp of a cluster knew at some time: `[kinds, warps]`, and of phases of mbarriers."""

    known: Array
    cluster: int
    landed: Array


class Clocks:
    """Vector clocks, one set for each kind of knowledge.

    `known[kind, a, b]` is the latest event of warp b that warp a has heard of, `known[ORDERED, a,
    a]` the number that events of warp a get now. Knowledge of kind TENSOR counts for a warp's own
    tcgen05 instructions once it executes `tcgen05.fence::after_thread_sync`: `tensor[a, b]`.
    """

    def __init__(self, warps: int, landings: Landings) -> None:
        self.landings = landings
        self.known = np.zeros((5, warps, warps), np.int32)
        np.fill_diagonal(self.known[ORDERED], 1)
        self.tensor = np.zeros((warps, warps), np.int32)
        self._left = Left()

    @property
    def ordered(self) -> Array:
        """`[warps, warps]`: of whose events a warp knows that they happened before."""
        return self.known[ORDERED]

    def proxied(self, space: str) -> Array:
        """`[warps, warps]`: whose events in "shared" or "global" memory a warp's asynchronous
        operations see.
        """
        return self.known[PROXY_KINDS[space]]

    def now(self, warps: Array) -> Array:
        """The numbers of the warps' present events."""
        return self.known[ORDERED, warps, warps]

    def advance(self, rows: Array) -> None:
        """What the warps do from now on is not what others have heard of."""
        self.known[ORDERED, rows, rows] += 1

    # --- synchronisation --------------------------------------------------------------------

    def release(self, key: Hashable, rows: Array, phase: int = 0) -> None:
        """What these warps have done and know becomes known to who acquires `key` later, of a
        barrier a phase that is not before this one.
        """
        self.leave(key, self.known[:, rows].max(axis=1), phase)
        self.landings.release(key, rows, phase)
        self.advance(rows)

    def publish(self, key: Hashable, then: Snapshot, phase: int = 0) -> None:
        """The same for what a warp knew at an earlier time (`snapshot`)."""
        self.leave(key, then.known, phase)
        self.landings.publish(key, then.cluster, then.landed, phase)

    def leave(self, key: Hashable, known: Array, phase: int) -> None:
        """Who acquires `key` later will know this (`[kinds, warps]`)."""
        self._left.leave(key, known, phase)

    def acquire(self, key: Hashable, rows: Array, phase: int = 0) -> None:
        known = self._left.take(key, phase)
        if known is not None:
            self.known[:, rows] = np.maximum(self.known[:, rows], known[:, None])
        self.landings.acquire(key, rows, phase)

    def snapshot(self, row: int, committed: bool = False) -> Snapshot:
        """What a warp knows as it starts an asynchronous operation.

        `committed`: its tcgen05 instructions so far are ordered for who learns of the end, as
        `tcgen05.commit` does by itself.
        """
        if committed:
            self.known[TENSOR, row, row] = self.known[ORDERED, row, row]
        known = self.known[:, row].copy()
        self.advance(np.array([row]))
        return Snapshot(known, *self.landings.known(row))

    # --- fences -----------------------------------------------------------------------------

    def proxy_fence(self, rows: Array, spaces: Iterable[str] = PROXY_KINDS) -> None:
        """What the warps did, or have heard of, is visible to the asynchronous proxy."""
        for kind in (PROXY_KINDS[space] for space in spaces):
            self.known[kind, rows] = np.maximum(self.known[kind, rows], self.known[ORDERED, rows])
        self.advance(rows)

    def initialised(self, rows: Array) -> None:
        """The warps fence the making of mbarriers: relaxed meetings of clusters hand them over."""
        self.known[INITIALISED, rows] = np.maximum(
            self.known[INITIALISED, rows], self.known[ORDERED, rows]
        )
        self.advance(rows)

    def before_thread_sync(self, rows: Array) -> None:
        """The warps' tcgen05 instructions so far come before what synchronises next."""
        self.known[TENSOR, rows, rows] = self.known[ORDERED, rows, rows]
        self.advance(rows)

    def after_thread_sync(self, rows: Array) -> None:
        """What the warps have heard of comes before their next tcgen05 instructions."""
        self.tensor[rows] = np.maximum(self.tensor[rows], self.known[TENSOR, rows])

"""Which phases of mbarriers warps know to be complete, and so which copies into shared memory.

A copy that signals an mbarrier is over for a warp once the warp has waited for the phase that the
copy signalled, or has synchronised with one that had; that it happens to be over by then is luck.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from tile_sim.machine.left import Left

Array = np.ndarray
_FEW = 8


class Landings:
    """Phases of the mbarriers of a cluster that each warp has heard of.

    `heard[warp, slot]` counts the completed phases of the mbarrier with that slot. All clusters
    number their mbarriers by place in the cluster, so clusters share slots, not knowledge.
    """

    def __init__(self, cluster_of: Array, words_per_cluster: int) -> None:
        self.heard = np.zeros((len(cluster_of), 0), np.int32)
        self._cluster_of = cluster_of
        self._words = words_per_cluster
        self._slots: dict[int, int] = {}
        self._left = Left(_joined)

    def slot(self, place: int) -> int:
        """The column of the mbarrier at a word of shared memory."""
        found = self._slots.setdefault(place % self._words, len(self._slots))
        if found >= self.heard.shape[1]:
            more = max(_FEW, self.heard.shape[1])
            self.heard = np.pad(self.heard, ((0, 0), (0, more)))
        return found

    def waited(self, place: int, rows: Array, phases: int) -> None:
        """Warps have seen that so many phases of an mbarrier are complete."""
        slot = self.slot(place)
        self.heard[rows, slot] = np.maximum(self.heard[rows, slot], phases)

    def release(self, key: Hashable, rows: Array, phase: int) -> None:
        """What these warps have heard of is left at `key` for those of their clusters."""
        for cluster, mine in self._by_cluster(rows):
            self.publish(key, cluster, self.heard[mine].max(axis=0), phase)

    def publish(self, key: Hashable, cluster: int, heard: Array, phase: int) -> None:
        self._left.leave((key, cluster), heard, phase)

    def acquire(self, key: Hashable, rows: Array, phase: int) -> None:
        for cluster, mine in self._by_cluster(rows):
            left = self._left.take((key, cluster), phase)
            if left is not None:
                width = len(left)
                self.heard[mine, :width] = np.maximum(self.heard[mine, :width], left)

    def known(self, row: int) -> tuple[int, Array]:
        """The cluster of a warp, and what it has heard of so far."""
        return int(self._cluster_of[row]), self.heard[row].copy()

    def _by_cluster(self, rows: Array) -> Iterator[tuple[int, Array]]:
        if not self.heard.shape[1]:
            return
        clusters = self._cluster_of[rows]
        for cluster in np.unique(clusters).tolist():
            yield cluster, rows[clusters == cluster]


def _joined(a: Array, b: Array) -> Array:
    """The later of both, where the shorter one has heard of no mbarrier made since."""
    if len(a) < len(b):
        a, b = b, a
    out = a.copy()
    out[: len(b)] = np.maximum(out[: len(b)], b)
    return out

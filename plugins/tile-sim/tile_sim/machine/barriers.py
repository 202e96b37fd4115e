"""Barriers of a CTA (`bar`, `barrier`) and of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.group import Group

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray
NAMED = 16


class Barriers:
    """Arrival counts. A completed barrier advances its generation, which waiters compare.

    Counts are in threads: an aligned barrier counts whole warps, whose missing threads (a block
    size that is no multiple of 32) count as arrived. `reduced` keeps the predicates for `.red`.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        shape = (wave.ctas, NAMED)
        self.arrived = np.zeros(shape, np.int64)
        self.expected = np.full(shape, -1, np.int64)
        self.generation = np.zeros(shape, np.int64)
        self.live_arrived = np.zeros(shape, np.int64)
        self.waiting = np.zeros((wave.warps, 32), np.int64)
        self.barrier_of = np.zeros((wave.warps, 32), np.int64)
        # For `.red`: number, conjunction, disjunction of the current and the finished generation.
        self.votes = np.zeros((*shape, 2), np.int64)
        self.result = np.zeros((*shape, 2), np.int64)
        self.users: set[int] = set()
        self._cluster_setup()

    # --- CTA barriers -----------------------------------------------------------------------

    def arrive(self, g: Group, ids: Array, counts: Array | None, votes: Array | None) -> None:
        """Threads of `g` arrive at barriers `ids` (active lanes); `counts` None: all threads."""
        rows, lanes = g.lane_rows(), g.lane_ids()
        cta = self.wave.cta_of[rows]
        if (ids >= NAMED).any():
            raise SimError("bad-barrier", f"barrier {int(ids.max())}: there are 16 in a CTA")
        wanted = np.full(len(rows), -1) if counts is None else counts.astype(np.int64)
        if counts is not None and ((wanted % 32 != 0) | (wanted <= 0)).any():
            raise SimError("bad-barrier", "a thread count has to be a positive multiple of 32")
        idle = self.arrived[cta, ids] == 0
        self.expected[cta[idle], ids[idle]] = wanted[idle]
        if (self.expected[cta, ids] != wanted).any():
            which = int(ids[self.expected[cta, ids] != wanted][0])
            raise SimError(
                "bad-barrier", f"threads disagree on the thread count of barrier {which}"
            )
        self.waiting[rows, lanes] = self.generation[cta, ids]
        self.barrier_of[rows, lanes] = ids
        np.add.at(self.arrived, (cta, ids), 1)
        if self.wave.monitor is not None:
            self.wave.monitor.cta_arrive(g, ids)
        if votes is not None:
            np.add.at(self.votes[..., 0], (cta, ids), 1)
            np.add.at(self.votes[..., 1], (cta, ids), votes.astype(np.int64))
        self.complete()

    def complete(self) -> None:
        """Open every barrier that all expected threads have reached."""
        wave = self.wave
        if not self.arrived.any():
            return
        live = wave.live.reshape(wave.ctas, -1).sum(axis=1)[:, None]
        missing = self._missing_threads()[:, None]
        need = np.where(self.expected < 0, live, self.expected)
        # With an explicit count the last, incomplete warp counts as a whole one.
        have = self.arrived + np.where(self.expected < 0, 0, missing)
        full = (self.arrived > 0) & (have >= need)
        if not full.any():
            return
        over = full & (self.expected >= 0) & (self.arrived > self.expected)
        if over.any():
            which = int(np.nonzero(over)[1][0])
            raise SimError("bad-barrier", f"more threads than expected at barrier {which}")
        self.generation[full] += 1
        self.arrived[full] = 0
        self.result[full] = self.votes[full]
        self.votes[full] = 0
        wave.progress += 1
        if wave.scheduler is not None:
            wave.scheduler.wake("barrier")

    def _missing_threads(self) -> Array:
        """Lanes of each CTA's last warp that never existed."""
        wave = self.wave
        absent = wave.warps_per_cta * 32 - wave.shape.threads
        return np.full(wave.ctas, absent)

    def passed(self, g: Group) -> Array:
        """Bool `[rows, 32]`: the barrier that a thread waits at has opened."""
        rows = g.rows[:, None]
        lanes = np.arange(32)[None, :]
        cta = self.wave.cta_of[g.rows][:, None]
        ids = self.barrier_of[rows, lanes]
        return g.active & (self.generation[cta, ids] != self.waiting[rows, lanes])

    # --- cluster barrier --------------------------------------------------------------------

    def _cluster_setup(self) -> None:
        wave = self.wave
        clusters = wave.ctas // wave.cluster_size
        self.cluster_arrived = np.zeros(clusters, np.int64)
        self.cluster_generation = np.zeros(clusters, np.int64)
        self.cluster_waiting = np.full((wave.warps, 32), -1, np.int64)

    def cluster_arrive(self, g: Group, relaxed: bool = False) -> None:
        rows, lanes = g.lane_rows(), g.lane_ids()
        if (self.cluster_waiting[rows, lanes] >= 0).any():
            raise SimError("bad-barrier", "barrier.cluster.arrive twice without a wait")
        cluster = self.wave.cta_of[rows] // self.wave.cluster_size
        self.cluster_waiting[rows, lanes] = self.cluster_generation[cluster]
        np.add.at(self.cluster_arrived, cluster, 1)
        if self.wave.monitor is not None:
            self.wave.monitor.cluster_arrive(g, relaxed)
        self.complete_cluster()

    def complete_cluster(self) -> None:
        wave = self.wave
        clusters = len(self.cluster_arrived)
        live = wave.live.reshape(clusters, -1).sum(axis=1)
        # An exited thread counts as arrived, also when it had arrived before.
        arrived = (wave.live & (self.cluster_waiting >= 0)).reshape(clusters, -1)
        arrived_now = self._arrived_now(arrived, clusters)
        full = (self.cluster_arrived > 0) & (arrived_now >= live)
        if not full.any():
            return
        self.cluster_generation[full] += 1
        self.cluster_arrived[full] = 0
        wave.progress += 1
        if wave.scheduler is not None:
            wave.scheduler.wake("cluster")

    def _arrived_now(self, arrived: Array, clusters: int) -> Array:
        """Live threads of each cluster that have arrived in the current generation."""
        waiting = self.cluster_waiting.reshape(clusters, -1)
        current = waiting == self.cluster_generation[:, None]
        return (arrived & current).sum(axis=1)

    def cluster_passed(self, g: Group) -> Array:
        rows, lanes = g.rows[:, None], np.arange(32)[None, :]
        cluster = self.wave.cta_of[g.rows][:, None] // self.wave.cluster_size
        waiting = self.cluster_waiting[rows, lanes]
        if (g.active & (waiting < 0)).any():
            raise SimError("bad-barrier", "barrier.cluster.wait without an arrive")
        return g.active & (self.cluster_generation[cluster] != waiting)

    def cluster_leave(self, g: Group) -> None:
        if self.wave.monitor is not None:
            self.wave.monitor.cluster_pass(g)
        self.cluster_waiting[g.lane_rows(), g.lane_ids()] = -1

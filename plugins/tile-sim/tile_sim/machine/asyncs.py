"""Asynchronous work: what has been issued and has not happened yet.

When it happens is the schedule's choice. `early`: at once. `late`: when something waits for it,
and for a signal (an mbarrier) only when no thread can go on, one in each cluster at a time.
`random`: any time, seeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray
_T = TypeVar("_T")
#: Under `random`: how often something completes behind a block, and in which share of clusters.
RANDOM_RATE, RANDOM_CLUSTERS = 0.15, 0.5
#: What of an operation a thread has waited for.
Awaited = Literal["read", "write"]


def by_cluster(items: Iterable[_T], cluster_of: Callable[[_T], int]) -> list[list[_T]]:
    """The items of each cluster, in their order."""
    found: dict[int, list[_T]] = {}
    for item in items:
        found.setdefault(cluster_of(item), []).append(item)
    return list(found.values())


@dataclass(eq=False)
class Operation:
    """One asynchronous operation of one thread (or of one instruction for many).

    `read` takes what the operation reads from memory, `write` stores it and signals. `signals`
    says that an mbarrier learns of the end, so that time alone may finish it. `awaited` is told
    when the thread that began it has waited: "read" once for what it reads, then "write".
    `cluster` is that of the thread, by its first CTA in the wave.
    """

    write: Callable[[], None]
    read: Callable[[], None] | None = None
    signals: bool = False
    awaited: Callable[[Awaited], None] | None = None
    is_read: bool = False
    is_done: bool = False
    is_told: bool = False
    known: Any = None
    cluster: int = 0

    def take(self) -> None:
        if not self.is_read:
            self.is_read = True
            if self.read is not None:
                self.read()

    def finish(self) -> None:
        if not self.is_done:
            self.take()
            self.is_done = True
            self.write()

    def tell(self, read_only: bool) -> None:
        """A wait has covered it. Only the first one says when the memory that it reads is free:
        a group whose writes are not waited for is covered by each later wait again.
        """
        if self.awaited is None:
            return
        if not self.is_told:
            self.is_told = True
            self.awaited("read")
        if not read_only:
            self.awaited("write")


@dataclass(eq=False)
class BulkGroups:
    """The bulk groups of one thread: finished lists are removed from the front."""

    open: list[Operation] = field(default_factory=list)
    committed: list[list[Operation]] = field(default_factory=list)
    read: int = 0  # how many committed lists a wait for reads has covered already


class AsyncQueue:
    """The pending operations of a wave, oldest first."""

    def __init__(self, wave: Wave, schedule: str) -> None:
        self.wave = wave
        self.schedule = schedule
        self.pending: list[Operation] = []
        self.bulk: dict[int, BulkGroups] = {}

    def issue(self, row: int, operation: Operation) -> None:
        """Warp `row` starts an operation."""
        wave = self.wave
        operation.cluster = int(wave.cluster_first[row])
        if wave.monitor is not None:
            operation.known = wave.monitor.clocks.snapshot(row)
        if operation.signals:
            operation.write = self._announcing(operation, operation.write)
        if self.schedule == "early":
            operation.finish()
        else:
            self.pending.append(operation)

    def _announcing(self, operation: Operation, write: Callable[[], None]) -> Callable[[], None]:
        """While an operation signals, what its warp knew at the start is at hand."""

        def run() -> None:
            self.wave.async_known = operation.known
            write()
            self.wave.async_known = None

        return run

    def tick(self) -> None:
        """One block has been executed: under `random`, something may finish."""
        if self.schedule == "random" and self.pending and self.wave.rng.random() < RANDOM_RATE:
            self._finish_some(self.pending)
            self.wave.progress += 1

    def idle(self) -> bool:
        """Nothing can run: of some clusters, something that signals happens."""
        self._drop_done()
        signalling = [operation for operation in self.pending if operation.signals]
        self._finish_some(signalling)
        return bool(signalling)

    def _finish_some(self, operations: list[Operation]) -> None:
        """The oldest one of each cluster; under `random`, any of about half of the clusters.

        Clusters share nothing but global memory: one at a time in all of the wave shows no more,
        and has each of them run by itself from there on.
        """
        for found in self._chosen(by_cluster(operations, lambda one: one.cluster)):
            found.finish()
        self._drop_done()

    def _chosen(self, of_clusters: list[list[Operation]]) -> list[Operation]:
        if self.schedule != "random":
            return [operations[0] for operations in of_clusters]
        rng = self.wave.rng
        some = [one for one in of_clusters if rng.random() < RANDOM_CLUSTERS] or of_clusters[:1]
        return [operations[int(rng.integers(len(operations)))] for operations in some]

    def drain(self) -> None:
        """The kernel is over: everything happens."""
        while self.pending:
            self.pending.pop(0).finish()

    def finish(self, operations: list[Operation]) -> None:
        for operation in operations:
            operation.finish()
        self._drop_done()

    def _drop_done(self) -> None:
        self.pending = [op for op in self.pending if not op.is_done]

    # --- bulk groups ------------------------------------------------------------------------

    def groups(self, thread: int) -> BulkGroups:
        found = self.bulk.get(thread)
        if found is None:
            found = self.bulk[thread] = BulkGroups()
        return found

    def commit_bulk(self, thread: int) -> None:
        groups = self.groups(thread)
        groups.committed.append(groups.open)
        groups.open = []

    def wait_bulk(self, thread: int, left: int, read_only: bool) -> None:
        """At most `left` of the newest groups stay pending (or unread)."""
        groups = self.groups(thread)
        count = max(len(groups.committed) - left, 0)
        # A wait for reads leaves lists where they are; those it has covered have no more to do.
        for group in groups.committed[groups.read if read_only else 0 : count]:
            if read_only:
                for operation in group:
                    operation.take()
            else:
                self.finish(group)
            for operation in group:
                operation.tell(read_only)
        if read_only:
            groups.read = max(groups.read, count)
        else:
            del groups.committed[:count]
            groups.read = max(groups.read - count, 0)

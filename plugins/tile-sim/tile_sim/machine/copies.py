"""`cp.async`: copies of 4 to 16 bytes from global to shared memory, grouped for each thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tile_sim.machine.access import PENDING, WRITTEN
from tile_sim.machine.memory import Buffer

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray
_BYTES = np.arange(16)
_POISON = 0xA7


@dataclass(eq=False)
class Batch:
    """The copies that one instruction issued: one for each thread of `threads`.

    `target` are flat shared byte offsets, `sources` pairs of a buffer and (lanes, offsets),
    `size` the bytes read (the rest up to `width` is zero), `group` the group of each thread.
    """

    threads: Array
    group: Array
    target: Array
    sources: list[tuple[Buffer, Array, Array]]
    size: Array
    width: int
    done: Array


@dataclass(eq=False)
class Arrival:
    """`cp.async.mbarrier.arrive`: fires for a thread when all its earlier copies are done."""

    threads: Array
    fire: Callable[[Array], None]
    done: Array


class CopyQueue:
    """Pending `cp.async` work of a wave, oldest first."""

    def __init__(self, wave: Wave, schedule: str) -> None:
        self.wave = wave
        self.schedule = schedule
        self.current = np.zeros(wave.warps * 32, np.int64)
        self.items: list[Batch | Arrival] = []

    def issue(self, batch: Batch) -> None:
        shared = self.wave.shared
        where = batch.target[:, None] + _BYTES[: batch.width]
        shared.state[where] = PENDING
        shared.bytes[where] = _POISON
        self.items.append(batch)
        if self.schedule == "early":
            self._finish(batch, np.ones(len(batch.threads), bool))
            self._clean()

    def issue_arrival(self, arrival: Arrival) -> None:
        self.items.append(arrival)
        if self.schedule == "early":
            self.idle()

    def commit(self, threads: Array) -> None:
        self.current[threads] += 1

    def wait(self, threads: Array, left: int) -> None:
        """Of each thread, at most `left` of its newest committed groups stay pending."""
        limit = np.full(self.wave.warps * 32, -1, np.int64)
        limit[threads] = self.current[threads] - left
        for item in self.items:
            if isinstance(item, Batch):
                due = ~item.done & (item.group < limit[item.threads])
                if due.any():
                    self._finish(item, due)
        self._clean()

    def idle(self) -> bool:
        """Let the oldest arrival fire, with the copies before it."""
        for i, item in enumerate(self.items):
            if isinstance(item, Arrival):
                self._settle_before(i, item.threads)
                item.done[:] = True
                item.fire(np.ones(len(item.threads), bool))
                self._clean()
                return True
        return False

    def _settle_before(self, position: int, threads: Array) -> None:
        """Finish what the threads issued before a position."""
        wanted = np.zeros(self.wave.warps * 32, bool)
        wanted[threads] = True
        for item in self.items[:position]:
            if isinstance(item, Batch):
                self._finish(item, wanted[item.threads] & ~item.done)

    def tick(self) -> None:
        if self.schedule != "random" or not self.items or self.wave.rng.random() > 0.15:
            return
        item = self.items[int(self.wave.rng.integers(len(self.items)))]
        if isinstance(item, Batch):
            self._finish(item, ~item.done & (self.wave.rng.random(len(item.done)) < 0.5))
            self._clean()

    def drain(self) -> None:
        while self.idle():
            pass
        for item in self.items:
            if isinstance(item, Batch):
                self._finish(item, ~item.done)
        self.items = []

    def _clean(self) -> None:
        self.items = [item for item in self.items if not item.done.all()]

    def _finish(self, batch: Batch, due: Array) -> None:
        """Copy now: the source is read at this moment, not when the copy was issued."""
        shared = self.wave.shared
        data = np.zeros((len(batch.threads), batch.width), np.uint8)
        offsets = _BYTES[: batch.width]
        for buffer, lanes, start in batch.sources:
            take = offsets[None, :] < batch.size[lanes][:, None]
            index = np.minimum(start[:, None] + offsets, max(buffer.size - 1, 0))
            data[lanes] = np.where(take, buffer.data[index], 0)
        where = batch.target[due][:, None] + offsets
        shared.bytes[where] = data[due]
        shared.state[where] = WRITTEN
        batch.done |= due
        self.wave.progress += 1

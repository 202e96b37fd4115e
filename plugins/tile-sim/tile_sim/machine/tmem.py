"""Tensor memory: 128 lanes by 512 columns of 32 bits in each CTA, and the work on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.access import PENDING, UNWRITTEN, WRITTEN
from tile_sim.machine.asyncs import RANDOM_CLUSTERS, RANDOM_RATE, by_cluster

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray
LANES, COLUMNS, UNIT = 128, 512, 32


#: CTA of the wave, lanes and columns of some cells.
Cells = tuple[int, Array, Array]


@dataclass(eq=False)
class Step:
    """One asynchronous tcgen05 operation of a thread; `commit` steps signal. `writes` are the cells
    that were marked as pending for it."""

    run: Callable[[], None]
    commit: bool = False
    writes: Sequence[Cells] = ()


class TensorMemory:
    """Contents and allocation of all CTAs of a wave, and the queues of asynchronous steps.

    The steps of one thread happen in order; those of different threads are independent.
    """

    def __init__(self, wave: Wave, schedule: str) -> None:
        self.wave = wave
        self.schedule = schedule
        self._data: Array | None = None
        self.owner = np.zeros((wave.ctas, COLUMNS // UNIT), np.int64)
        self.permit = np.ones(wave.ctas, bool)
        self.queues: dict[int, list[Step]] = {}
        self._allocations = 0

    @property
    def data(self) -> Array:
        """`[ctas, 128, 512]` uint32; made when first used."""
        if self._data is None:
            shape = (self.wave.ctas, LANES, COLUMNS)
            self._data = np.zeros(shape, np.uint32)
            self._state = np.full(shape, UNWRITTEN, np.uint8)
        return self._data

    @property
    def state(self) -> Array:
        _ = self.data
        return self._state

    # --- allocation -------------------------------------------------------------------------

    def allocate(self, cta: int, columns: int) -> int | None:
        """The first column of a free range, or None while there is none."""
        check_columns(columns)
        if not self.permit[cta]:
            raise SimError("tmem", "tcgen05.alloc after relinquish_alloc_permit")
        units = columns // UNIT
        for first in range(0, COLUMNS // UNIT - units + 1, units):
            if not self.owner[cta, first : first + units].any():
                self._allocations += 1
                self.owner[cta, first : first + units] = self._allocations
                self.state[cta, :, first * UNIT : first * UNIT + columns] = UNWRITTEN
                self.wave.progress += 1
                return first * UNIT
        return None

    def release(self, cta: int, column: int, columns: int) -> None:
        check_columns(columns)
        first, units = column // UNIT, columns // UNIT
        mine = self.owner[cta, first : first + units]
        same = len(mine) == units and mine[0] and (mine == mine[0]).all()
        if not same or (self.owner[cta] == mine[0]).sum() != units:
            raise SimError(
                "tmem", f"dealloc of {columns} columns at {column} that alloc did not give"
            )
        self.owner[cta, first : first + units] = 0
        self.wave.progress += 1

    def require(self, cta: int, column: int, count: int, what: str) -> None:
        """Columns have to be allocated."""
        if column < 0 or column + count > COLUMNS:
            raise SimError("tmem", f"{what}: columns {column} to {column + count - 1} of 512")
        units = self.owner[cta, column // UNIT : (column + count - 1) // UNIT + 1]
        if not units.all():
            where = f"columns {column} to {column + count - 1}"
            raise SimError("tmem", f"{what}: {where} of CTA {cta} are not allocated")

    def leaks(self) -> int:
        """Columns still allocated."""
        return int((self.owner != 0).sum()) * UNIT

    # --- contents ---------------------------------------------------------------------------

    def read(
        self, cta: Array, lane: Array, column: Array, what: str, thread: int | None = None
    ) -> Array:
        """Words; those that work of `thread` behind this one will write are still there."""
        if self.wave.check_uninitialised:
            state = self.state[cta, lane, column]
            pending = state == PENDING
            if thread is not None and pending.any():
                pending &= ~self._claimed(thread)[cta, lane, column]
            if pending.any():
                raise SimError("pending", f"{what} reads tensor memory that is still being written")
            if (state == UNWRITTEN).any():
                raise SimError("uninitialised", f"{what} reads tensor memory never written")
        return self.data[cta, lane, column]

    def _claimed(self, thread: int) -> Array:
        """The cells that the steps of a thread which wait will write."""
        found = np.zeros(self.state.shape, bool)
        for step in self.queues.get(thread, ()):
            for cells in step.writes:
                found[cells] = True
        return found

    def write(self, cta: Array | int, lane: Array, column: Array, values: Array) -> None:
        self.data[cta, lane, column] = values
        self.state[cta, lane, column] = WRITTEN
        self.wave.progress += 1

    def shift_down(self, cta: int, column: int, count: int, what: str) -> None:
        """In each quarter of the lanes, every row takes the place of the one before it; the last
        row stays as it is."""
        self.require(cta, column, count, what)
        for store in (self.data, self.state):
            part = store[cta, :, column : column + count].reshape(4, 32, count)
            part[:, :-1] = part[:, 1:].copy()
            store[cta, :, column : column + count] = part.reshape(LANES, count)
        self.wave.progress += 1

    # --- asynchronous steps -----------------------------------------------------------------

    def issue(self, thread: int, step: Step) -> None:
        if self.schedule == "early":
            step.run()
            return
        self.queues.setdefault(thread, []).append(step)

    def idle(self) -> bool:
        """Nothing can run: in each cluster, work of some thread up to its oldest commit ends."""
        committed = [t for t, queue in self.queues.items() if any(step.commit for step in queue)]
        for threads in self._by_cluster(committed):
            self._up_to_commit(threads[0])
        return bool(committed)

    def _by_cluster(self, threads: Iterable[int]) -> list[list[int]]:
        return by_cluster(threads, lambda thread: int(self.wave.cluster_first[thread // 32]))

    def _up_to_commit(self, thread: int) -> None:
        queue = self.queues[thread]
        while queue:
            step = queue.pop(0)
            step.run()
            if step.commit:
                break
        if not queue:
            del self.queues[thread]

    def tick(self) -> None:
        """One block has been executed: under `random`, a step may end in some clusters."""
        rng = self.wave.rng
        if self.schedule != "random" or not self.queues or rng.random() >= RANDOM_RATE:
            return
        for threads in self._by_cluster(list(self.queues)):
            if rng.random() < RANDOM_CLUSTERS:
                thread = threads[int(rng.integers(len(threads)))]
                self.queues[thread].pop(0).run()
                self.wave.progress += 1
                if not self.queues[thread]:
                    del self.queues[thread]

    def drain(self) -> None:
        for queue in list(self.queues.values()):
            for step in queue:
                step.run()
        self.queues = {}


def check_columns(columns: int) -> None:
    if columns not in (32, 64, 128, 256, 512):
        raise SimError("tmem", f"{columns} columns: a power of two from 32 to 512 is needed")

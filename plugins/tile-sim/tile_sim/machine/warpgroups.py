"""Asynchronous matrix products of warpgroups, in groups that are waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray
# Registers that a pending product will write hold a signalling NaN that says which product and
# which register it was: a copy of such a register can be told, and reading it spoils any result.
_TAG, _TAG_MASK, _INDEX_BITS = 0x7FA00000, 0xFFF00000, 7
_INDEX_MASK = np.uint32((1 << _INDEX_BITS) - 1)
_IDS = 1 << 13
_RANDOM_RATE = 0.3


@dataclass(eq=False)
class Product:
    """One `mma_async` of several warpgroups.

    `rows` are its warps (whole warpgroups), `group` their open group when it was issued;
    `run(positions, accumulators)` computes the result registers `[registers, warps, 32]` of the
    warpgroups at some positions. `before` is the pending product whose results it adds to, or
    `start` the accumulators themselves.
    """

    number: int
    rows: Array
    group: Array
    slots: list[int]
    run: Callable[[Array, Array], Array]
    results: Array
    done: Array
    start: Array | None
    before: Product | None

    def accumulators(self, due: Array) -> Array:
        """What the warps `due` add to, `[registers, warps, 32]`."""
        if self.before is None:
            assert self.start is not None
            return self.start[:, due]
        where = np.searchsorted(self.before.rows, self.rows[due])
        return self.before.results[:, where]


@dataclass(frozen=True, eq=False)
class Reads:
    """Bytes of shared memory that a product of one warpgroup reads, until it has waited for it:
    for the checker.
    """

    rows: Array
    group: int
    where: Array


class ProductQueue:
    """Pending products of a wave, oldest first."""

    def __init__(self, wave: Wave, schedule: str) -> None:
        self.wave = wave
        self.schedule = schedule
        self.items: list[Product] = []
        self.open = np.zeros(wave.warps, np.int64)
        self.unread: list[Reads] = []
        self._next = 0

    def issue(self, rows: Array, slots: list[int], run: Callable[[Array, Array], Array]) -> None:
        """Start a product of the warps `rows`; `run` as in `Product`."""
        if "products" in self.wave.settings.skipped:
            return
        for before, positions in self._pending_inputs(rows, self.wave.slots[slots[0]]):
            mine = (4 * positions[:, None] + np.arange(4)).reshape(-1)
            self._add(rows[mine], slots, _of_positions(run, positions), before)
        if self._at_once():
            self._settle(rows, None)

    def _add(
        self, rows: Array, slots: list[int], run: Callable[[Array, Array], Array],
        before: Product | None,
    ) -> None:  # fmt: skip
        start = None
        if before is None:
            start = np.stack([self.wave.slots[slot][rows] for slot in slots])
        results = np.zeros((len(slots), len(rows), 32), np.uint32)
        done = np.zeros(len(rows), bool)
        product = Product(
            self._next % _IDS, rows, self.open[rows], slots, run, results, done, start, before
        )
        self._next += 1
        for i, slot in enumerate(slots):
            self.wave.slots[slot][rows] = np.uint32(_TAG | product.number << _INDEX_BITS | i)
        self.items.append(product)

    def _at_once(self) -> bool:
        if self.schedule == "random":
            return bool(self.wave.rng.random() < _RANDOM_RATE)
        return self.schedule == "early"

    def commit(self, rows: Array) -> None:
        self.open[rows] += 1

    def wait(self, rows: Array, left: int) -> None:
        self._settle(rows, self.open - left)
        self._reads_awaited(rows, self.open - left)

    def reads(self, rows: Array, where: Array) -> None:
        """The product that a warpgroup is about to issue reads bytes of shared memory."""
        self.unread.append(Reads(rows, int(self.open[rows[0]]), where))
        self.wave.monitor.sources.product(where, 1)

    def _reads_awaited(self, rows: Array, limit: Array) -> None:
        """Warpgroups know of the products of groups below their limit that they have read."""
        over = [r for r in self.unread if r.rows[0] in rows and r.group < limit[r.rows[0]]]
        for one in over:
            self.wave.monitor.read_awaited(one.rows, one.where)
            self.wave.monitor.sources.product(one.where, -1)
        if over:
            self.unread = [one for one in self.unread if one not in over]

    def _settle(self, rows: Array, limit: Array | None) -> None:
        """Finish the products of some warps whose group is below their limit, in order."""
        wanted = np.zeros(self.wave.warps, bool)
        wanted[rows] = True
        for product in self.items:
            due = ~product.done & wanted[product.rows]
            if limit is not None:
                due &= product.group < limit[product.rows]
            if due.any():
                self._finish(product, due)
        self.items = [p for p in self.items if not p.done.all()]

    def _finish(self, product: Product, due: Array) -> None:
        positions = np.flatnonzero(due.reshape(-1, 4)[:, 0])
        product.results[:, due] = product.run(positions, product.accumulators(due))
        product.done |= due
        self.wave.progress += 1
        self._replace_tags(product, due)

    def _replace_tags(self, product: Product, due: Array) -> None:
        """Results go to whatever register holds the product's tags: its own, and copies."""
        rows, results = product.rows[due], product.results[:, due]
        prefix = np.uint32((_TAG | product.number << _INDEX_BITS) >> _INDEX_BITS)
        for slot in (*product.slots, *self.wave.program.copies_of(product.slots)):
            register = self.wave.slots[slot]
            held = register[rows]
            tagged = (held >> np.uint32(_INDEX_BITS)) == prefix
            if tagged.any():
                index = np.where(tagged, held & _INDEX_MASK, 0).astype(np.int64)
                found = np.take_along_axis(results, index[None], axis=0)[0]
                register[rows] = np.where(tagged, found, held)

    def _pending_inputs(self, rows: Array, register: Array) -> list[tuple[Product | None, Array]]:
        """The pending products whose tags a register holds, each with the warpgroups (positions in
        `rows`) that hold them. Warpgroups that issue together may be at different states: for some
        the product before is done."""
        values = register[rows[::4], 0]
        found: list[tuple[Product | None, Array]] = []
        for value in np.unique(np.where(values & _TAG_MASK == _TAG, values, 0)):
            same = (values == value) if value else (values & _TAG_MASK != _TAG)
            positions = np.flatnonzero(same)
            found.append((self._tagged(int(value), rows[4 * positions]), positions))
        return found

    def _tagged(self, value: int, rows: Array) -> Product | None:
        """The pending product of these warps whose tag a value is."""
        if value & _TAG_MASK != _TAG:
            return None
        number = value >> _INDEX_BITS & (_IDS - 1)
        found = [p for p in self.items if p.number == number and np.isin(rows, p.rows).all()]
        return found[-1] if found else None


def _of_positions(
    run: Callable[[Array, Array], Array], positions: Array
) -> Callable[[Array, Array], Array]:
    """The same for some of the warpgroups."""
    return lambda which, accumulators: run(positions[which], accumulators)

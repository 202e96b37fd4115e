"""The modulo reservation table: which resources are taken in which cycle of the interval.

A resource of capacity c is c integers of `ii` bits: bit t of integer k is set where more than k
requests of cycle t are taken. So probing all cycles of the interval at once is a few shifts,
however long the interval is, and a savepoint is a copy of a small dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_core.sched.graph import Use
from tile_core.sched.machine import MachineModel


@dataclass(frozen=True)
class Conflict:
    """Why a seat is refused: `use` meets a full `resource` in cycle `row` of the interval."""

    use: Use
    resource: str
    row: int  # cycle of the interval
    taken: int  # requests taken there
    capacity: int


@dataclass(frozen=True)
class _Folded:
    """What an operation asks of one resource, folded to the interval: (ask, runs of rows)."""

    resource: str
    #: level k: rows where more than k requests are made, as a mask and as (first row, length)
    levels: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


class ReservationTable:
    """The resources of `model` over one interval of `ii` cycles."""

    def __init__(self, ii: int, model: MachineModel) -> None:
        self.ii = ii
        self.model = model
        self._full = (1 << ii) - 1
        self._levels: dict[str, list[int]] = {}
        #: What was folded, and whether the resources have room for it.
        self._folded: dict[tuple[Use, ...], tuple[tuple[_Folded, ...], bool]] = {}

    # --- probing -----------------------------------------------------------------------------

    def fits(self, uses: tuple[Use, ...]) -> bool:
        """Whether an empty table has room for `uses` (not if they meet themselves, folded)."""
        return self._fold(uses) is not None

    def probe(self, uses: tuple[Use, ...], start: int) -> bool:
        """Whether `uses` can be added at cycle `start`."""
        if not uses:
            return True
        folded = self._fold(uses)
        if folded is None:
            return False
        at = start % self.ii
        return all(
            not self._rotated(mask, at) & self._taken(part.resource, asked + 1)
            for part in folded
            for asked, (mask, _) in enumerate(part.levels)
        )

    def free(self, uses: tuple[Use, ...]) -> int:
        """The cycles of the interval at which `uses` can be added, as bits."""
        folded = self._fold(uses)
        if folded is None:
            return 0
        blocked = 0
        for part in folded:
            for asked, (_, runs) in enumerate(part.levels):
                taken = self._taken(part.resource, asked + 1)
                if taken:
                    for first, length in runs:
                        blocked |= self._back(self._spread(taken, length), first)
        return self._full & ~blocked

    def earliest(self, uses: tuple[Use, ...], first: int, last: int) -> int | None:
        """The first cycle from `first` to `last` at which `uses` can be added."""
        if first <= last and self.probe(uses, first):  # the usual answer, without a look at others
            return first
        return next(self.seats(uses, first, last), None)

    def seats(self, uses: tuple[Use, ...], first: int, last: int) -> Iterator[int]:
        """All cycles from `first` to `last` (an interval at most) at which `uses` can be added."""
        bits = self._back(self.free(uses), first % self.ii)
        while bits:
            low = bits & -bits
            at = first + low.bit_length() - 1
            if at > last:
                return
            yield at
            bits ^= low

    def meet(self, uses: tuple[Use, ...], start: int, others: tuple[Use, ...], at: int) -> bool:
        """Whether `uses` at `start` and `others` at `at` hold one resource in one cycle."""
        mine = {part.resource: part.levels[0][0] for part in self._folded_anyway(uses)}
        return any(
            part.resource in mine
            and self._rotated(mine[part.resource], start % self.ii)
            & self._rotated(part.levels[0][0], at % self.ii)
            for part in self._folded_anyway(others)
        )

    def conflict(self, uses: tuple[Use, ...], start: int) -> Conflict | None:
        """The first request of `uses` at `start` that finds no room, for messages."""
        asked: dict[tuple[str, int], int] = {}
        for use in uses:
            capacity = self.model.capacity(use.resource)
            for cycle in range(use.cycles):
                row = (start + use.at + cycle) % self.ii
                key = (use.resource, row)
                asked[key] = asked.get(key, 0) + use.amount
                taken = self.taken(use.resource, row)
                if taken + asked[key] > capacity:
                    return Conflict(use, use.resource, row, taken + asked[key] - use.amount,
                                    capacity)  # fmt: skip
        return None

    # --- changing ----------------------------------------------------------------------------

    def commit(self, uses: tuple[Use, ...], start: int) -> None:
        """Add `uses` at `start`, whether there is room or not (`probe` first)."""
        if not uses:
            return
        for part in self._folded_anyway(uses):
            for mask, _ in part.levels:
                self._add(part.resource, self._rotated(mask, start % self.ii))

    def release(self, uses: tuple[Use, ...], start: int) -> None:
        """Take away what `commit` added."""
        for part in self._folded_anyway(uses):
            for mask, _ in part.levels:
                self._remove(part.resource, self._rotated(mask, start % self.ii))

    def savepoint(self) -> dict[str, list[int]]:
        """What `rollback` needs to come back to the table as it is now."""
        return {resource: list(levels) for resource, levels in self._levels.items()}

    def rollback(self, savepoint: dict[str, list[int]]) -> None:
        """Undo everything since `savepoint`."""
        self._levels = {resource: list(levels) for resource, levels in savepoint.items()}

    # --- looking -----------------------------------------------------------------------------

    def taken(self, resource: str, row: int) -> int:
        """Requests of `resource` in cycle `row` of the interval."""
        return sum(1 for level in self._levels.get(resource, ()) if level >> row & 1)

    def rows(self) -> tuple[int, ...]:
        """The numbered slots that are taken in each cycle, as the specification prints them."""
        found = [0] * self.ii
        for resource, number in self.model.slots:
            taken = (self._levels.get(resource) or (0,))[0]
            for row in range(self.ii) if taken else ():
                if taken >> row & 1:
                    found[row] |= 1 << (number - 1)
        return tuple(found)

    def overbooked(self) -> tuple[str, int] | None:
        """A resource and a cycle of the interval where it is asked for more than it has."""
        for resource in sorted(self._levels):
            capacity = self.model.capacity(resource)
            levels = self._levels[resource]
            if len(levels) > capacity and levels[capacity]:
                over = levels[capacity]
                return resource, (over & -over).bit_length() - 1
        return None

    # --- bits --------------------------------------------------------------------------------

    def _taken(self, resource: str, asked: int) -> int:
        """Rows where `asked` further requests are too many."""
        levels = self._levels.get(resource)
        at = self.model.capacity(resource) - asked
        if at < 0:
            return self._full
        return levels[at] if levels is not None and at < len(levels) else 0

    def _add(self, resource: str, mask: int) -> None:
        levels = self._levels.setdefault(resource, [])
        for at, level in enumerate(levels):
            levels[at], mask = level | mask, level & mask
            if not mask:
                return
        levels.append(mask)

    def _remove(self, resource: str, mask: int) -> None:
        levels = self._levels[resource]
        for at, level in enumerate(levels):
            above = levels[at + 1] if at + 1 < len(levels) else 0
            levels[at] = (level & ~mask) | (above & mask)
        while levels and not levels[-1]:
            levels.pop()

    def _rotated(self, mask: int, by: int) -> int:
        return ((mask << by) | (mask >> (self.ii - by))) & self._full if by else mask

    def _back(self, mask: int, by: int) -> int:
        return self._rotated(mask, (self.ii - by) % self.ii)

    def _spread(self, taken: int, length: int) -> int:
        """Rows from which a run of `length` rows meets `taken`."""
        done = 1
        while done < length:
            step = min(done, length - done)
            taken |= self._back(taken, step)
            done += step
        return taken

    def _fold(self, uses: tuple[Use, ...]) -> tuple[_Folded, ...] | None:
        """`uses` modulo the interval; None if they ask for more than there is."""
        folded, fits = self._folded.get(uses) or self._make(uses)
        return folded if fits else None

    def _folded_anyway(self, uses: tuple[Use, ...]) -> tuple[_Folded, ...]:
        folded, _ = self._folded.get(uses) or self._make(uses)
        return folded

    def _make(self, uses: tuple[Use, ...]) -> tuple[tuple[_Folded, ...], bool]:
        found: dict[str, list[int]] = {}
        for use in uses:
            if use.cycles <= 0 or use.amount <= 0:
                continue
            whole, rest = divmod(use.cycles, self.ii)
            masks = [self._full] * (whole * use.amount)
            masks += [self._rotated((1 << rest) - 1, use.at % self.ii)] * (
                use.amount if rest else 0
            )
            for mask in masks:
                _ripple(found.setdefault(use.resource, []), mask)
        folded = tuple(
            _Folded(resource, tuple((mask, self._runs(mask)) for mask in levels))
            for resource, levels in found.items()
        )
        fits = all(len(part.levels) <= self.model.capacity(part.resource) for part in folded)
        self._folded[uses] = folded, fits
        return folded, fits

    def _runs(self, mask: int) -> tuple[tuple[int, int], ...]:
        """Runs of set rows as (first row, length); a run may go over the end of the interval."""
        if mask == self._full:
            return ((0, self.ii),)
        runs: list[tuple[int, int]] = []
        rest, row = mask, 0
        while rest:
            skip = (rest & -rest).bit_length() - 1
            rest >>= skip
            length = (~rest & (rest + 1)).bit_length() - 1
            runs.append((row + skip, length))
            rest >>= length
            row += skip + length
        if len(runs) > 1 and runs[0][0] == 0 and sum(runs[-1]) == self.ii:
            first, last = runs.pop(0), runs.pop()
            runs.append((last[0], last[1] + first[1]))
        return tuple(runs)


def _ripple(levels: list[int], mask: int) -> None:
    for at, level in enumerate(levels):
        levels[at], mask = level | mask, level & mask
        if not mask:
            return
    levels.append(mask)


def table_of(
    ii: int, model: MachineModel, footprints: Sequence[tuple[Use, ...]], start: Sequence[int]
) -> ReservationTable:
    """The table with all of `footprints` in it, each at its start."""
    table = ReservationTable(ii, model)
    for uses, at in zip(footprints, start, strict=True):
        table.commit(uses, at)
    return table

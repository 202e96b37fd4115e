"""Sets of threads that stand at the same instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray


class Group:
    """Threads of some warps of a wave, all at one place of the program.

    `rows` are warp indices in ascending order; `mask` is a bool array `[rows, 32]` of the active
    lanes, or None when all are. `sel` selects the rows of a register `[warps, 32]`: a slice where
    possible, so that reading a register copies nothing. `polled` says that since its last yield
    the group looked at something that another thread may change.
    """

    __slots__ = ("mask", "polled", "rows", "sel", "v", "wave", "whole")

    def __init__(self, wave: Wave, rows: Array, mask: Array | None, polled: bool = False) -> None:
        self.wave = wave
        self.v = wave.slots
        self.rows = rows
        self.mask = mask
        self.polled = polled
        self.sel = _as_slice(rows)
        self.whole = mask is None and len(rows) == wave.warps

    # --- registers --------------------------------------------------------------------------

    def put(self, slot: int, value: Array | np.generic | float) -> None:
        """Write a register; inactive lanes keep their value."""
        register, mask = self.v[slot], self.mask
        if mask is None:
            register[self.sel] = value
            return
        if isinstance(self.sel, slice):
            np.copyto(register[self.sel], value, where=mask, casting="unsafe")
            return
        old = register[self.sel]
        np.copyto(old, value, where=mask, casting="unsafe")
        register[self.sel] = old

    def lanes(self, value: Array) -> Array:
        """The active lanes of `[rows, 32]` (or of a scalar), as one dimension."""
        if value.shape != (len(self.rows), 32):
            full = np.empty((len(self.rows), 32), value.dtype)
            full[:] = value
            value = full
        return value.reshape(-1) if self.mask is None else value[self.mask]

    def spread(self, slot: int, values: Array) -> None:
        """Write one value for each active lane, in the order of `lanes`."""
        register, mask = self.v[slot], self.mask
        if mask is None:
            register[self.sel] = values.reshape(len(self.rows), 32)
            return
        if isinstance(self.sel, slice):
            register[self.sel][mask] = values
            return
        old = register[self.sel]
        old[mask] = values
        register[self.sel] = old

    # --- shape ------------------------------------------------------------------------------

    @property
    def active(self) -> Array:
        """Bool `[rows, 32]`."""
        return np.ones((len(self.rows), 32), bool) if self.mask is None else self.mask

    def count(self) -> int:
        """Number of active threads."""
        return 32 * len(self.rows) if self.mask is None else int(np.count_nonzero(self.mask))

    def lane_rows(self) -> Array:
        """The warp index of each active lane."""
        if self.mask is None:
            return self.rows.repeat(32)
        return self.rows[self.mask.nonzero()[0]]

    def lane_ids(self) -> Array:
        """The lane number of each active lane."""
        if self.mask is None:
            return np.arange(32 * len(self.rows)) & 31
        return self.mask.nonzero()[1]

    def masked(self, mask: Array) -> Group:
        """The same rows under a narrower mask."""
        other = Group.__new__(Group)
        other.wave, other.v, other.rows, other.sel = self.wave, self.v, self.rows, self.sel
        other.mask, other.polled, other.whole = mask, self.polled, False
        return other

    def part(self, mask: Array) -> Group | None:
        """The threads of `mask` (`[rows, 32]`), without the rows that have none."""
        keep = mask.any(axis=1)
        if not keep.any():
            return None
        if not keep.all():
            mask = mask[keep]
        rows = self.rows[keep]
        return Group(self.wave, rows, None if mask.all() else mask, self.polled)

    def of_rows(self, keep: Array) -> Group | None:
        """The rows where `keep` holds."""
        if keep.all():
            return self
        if not keep.any():
            return None
        mask = None if self.mask is None else self.mask[keep]
        if mask is not None and mask.all():
            mask = None
        return Group(self.wave, self.rows[keep], mask, self.polled)


LANES = np.arange(32)


def _as_slice(rows: Array) -> slice | Array:
    count = len(rows)
    first, last = int(rows[0]), int(rows[-1])
    if count == 1:
        return slice(first, first + 1)
    step, rest = divmod(last - first, count - 1)
    if rest or (count > 2 and (rows[1:] - rows[:-1] != step).any()):
        return rows
    return slice(first, last + 1, step)


def merge(groups: list[Group]) -> Group:
    """One group of all threads of `groups`."""
    if len(groups) == 1:
        return groups[0]
    wave = groups[0].wave
    dense = np.zeros((wave.warps, 32), bool)
    for group in groups:
        dense[group.rows] |= group.active
    rows = np.flatnonzero(dense.any(axis=1))
    mask = dense[rows]
    polled = any(group.polled for group in groups)
    return Group(wave, rows, None if mask.all() else mask, polled)

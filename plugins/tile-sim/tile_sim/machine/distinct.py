"""Sets of places in memory as sorted arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_FEW = 64  # that many are sorted sooner than marked
_SPARSE = 8  # marks for each place, beyond which sorting takes less time


def distinct(places: np.ndarray) -> np.ndarray:
    """Each of the integers once, ascending: `np.unique`, in linear time where they lie close."""
    flat = np.asarray(places).reshape(-1)
    if len(flat) < _FEW:
        return np.unique(flat)
    low, high = int(flat.min()), int(flat.max())
    if high - low > _SPARSE * len(flat):
        return np.unique(flat)
    marks = np.zeros(high - low + 1, bool)
    marks[flat - low] = True
    return (np.flatnonzero(marks) + low).astype(flat.dtype, copy=False)


def by_phase(
    rows: np.ndarray, phases: np.ndarray, here: np.ndarray
) -> Iterator[tuple[int, np.ndarray]]:
    """The warps of threads that are `here`, each with the phase that it is in."""
    found = phases[here]
    first = int(found[0])
    if (found == first).all():
        yield first, distinct(rows[here])
        return
    for phase in np.unique(found).tolist():
        yield phase, distinct(rows[here][found == phase])

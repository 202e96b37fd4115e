"""Which elements of a load a thread has from others of its family (see `analysis.shifted`).

No MLIR here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from tile_cute.linear import LinearLayout

from tile_tileas.strategies.coalescing import accessed

#: Where an element comes from: number of a load, register. None if it is loaded.
Source = tuple[int, int] | None


@dataclass(frozen=True)
class Shifted:
    """A load of a family: how far on along each axis it is, and how many elements along axis `fast`
    a thread may load at once.
    """

    offset: tuple[int, ...]
    fast: int
    vector: int


def sources(layout: LinearLayout, loads: Sequence[Shifted]) -> list[list[Source]]:
    """Of each load where each register's element comes from, the loads one after the other; all of
    them in `layout`. A vector is loaded if one of its elements is missing.
    """
    places = _places(layout)
    if places is None:
        return [[None] * layout.elements_per_thread for _ in loads]
    known: dict[tuple[int, ...], tuple[int, int]] = {}
    found: list[list[Source]] = []
    for number, load in enumerate(loads):
        keys = [tuple(map(sum, zip(place, load.offset, strict=True))) for place in places]
        width, taken = accessed(layout, load.fast, load.vector), list[Source]()
        for first in range(0, len(keys), width):
            vector = range(first, first + width)
            missing = any(keys[register] not in known for register in vector)
            taken += [None if missing else known[keys[register]] for register in vector]
            for register in vector:
                known.setdefault(keys[register], (number, register))
        found.append(taken)
    return found


def loaded(layout: LinearLayout, loads: Sequence[Shifted]) -> list[int]:
    """How often a thread accesses memory for each of the loads, the widest first."""
    order = widest_first(loads)
    taken = sources(layout, [loads[at] for at in order])
    found = [0] * len(loads)
    for at, registers in zip(order, taken, strict=True):
        load = loads[at]
        found[at] = registers.count(None) // accessed(layout, load.fast, load.vector)
    return found


def widest_first(loads: Sequence[Shifted]) -> list[int]:
    """The numbers of loads in the order in which most is shared: of a vector of which one element
    is missing the others would be loaded again.
    """
    widest = max(load.vector for load in loads)
    return sorted(range(len(loads)), key=lambda at: loads[at].vector < widest)


def _places(layout: LinearLayout) -> list[tuple[int, ...]] | None:
    """Where the elements of a thread are from its first one, the same for all threads; None if
    they are not the same.
    """
    for axis in range(layout.rank):
        of_registers = _ored(basis[axis] for basis in layout.bases["register"])
        spaces = [space for space in layout.bases if space != "register"]
        of_threads = _ored(basis[axis] for space in spaces for basis in layout.bases[space])
        if of_registers & of_threads:
            return None
    return layout.coords("register")


def _ored(numbers: Iterable[int]) -> int:
    return reduce(or_, numbers, 0)

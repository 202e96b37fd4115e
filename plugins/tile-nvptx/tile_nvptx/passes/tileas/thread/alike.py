"""Neighbours of which a comparison says the same: one answer serves all that a thread has of them.

Where columns are a multiple of eight, eight of them that start at one are inside of a row together.
"""

from __future__ import annotations

from tile_cute.linear import LinearLayout
from tile_tileas.analysis.axis import AxisAnalysis

from tile_core.mlir import ir
from tile_core.walk import inside

COMPARISON = "arith.cmpi"


def comparisons_alike(func: ir.Operation) -> dict[ir.Value, tuple[int, ...]]:
    """By results of comparisons, before they are converted: along each axis, how many neighbours
    (an aligned group) have one answer. Those of which nothing is known are left out.
    """
    found = [
        op
        for op in inside(func)
        if op.name == COMPARISON and isinstance(op.results[0].type, ir.RankedTensorType)
    ]
    if not found:
        return {}
    known = AxisAnalysis(func)
    sizes = {op.results[0]: known[op.results[0]].constancy for op in found}
    return {value: size for value, size in sizes.items() if any(axis > 1 for axis in size)}


def firsts(layout: LinearLayout, sizes: tuple[int, ...]) -> list[int]:
    """For each register of a thread, the first one whose element is of the same group.

    What the thread adds to a coordinate is the same for all its registers, by exclusive or: two
    are of one group of a power of two if their own parts are.
    """
    seen: dict[tuple[int, ...], int] = {}
    places = enumerate(layout.coords("register"))
    return [
        seen.setdefault(tuple(c // size for c, size in zip(own, sizes, strict=True)), register)
        for register, own in places
    ]

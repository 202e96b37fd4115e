"""Where to cut the computation of a tile that is wanted in another layout. Plain data, no MLIR.

A tile that is wanted in layout L may be converted, or computed again in L from operands for which
the same question is asked. Costs are those of conversion plans: quarter cycles of one warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Wanted:
    """A tile in a layout that it does not have.

    `convert` is the cost of converting it, None if it cannot be; `redo` that of its operation
    alone, None if the operation must not be repeated. `operands` index the tiles that the
    operation then wants; they come later in the sequence.
    """

    convert: int | None
    redo: int | None
    operands: tuple[int, ...] = ()


def cheapest(wanted: Sequence[Wanted]) -> tuple[bool, ...]:
    """For each tile whether to compute it again; ties go to the conversion.

    Operands that several operations share are counted for each: the answer may be too careful.
    """
    costs: list[int | None] = [None] * len(wanted)
    again = [False] * len(wanted)
    for at in reversed(range(len(wanted))):
        tile = wanted[at]
        costs[at] = tile.convert
        below = [costs[operand] for operand in tile.operands]
        if tile.redo is None or None in below:
            continue
        redone = tile.redo + sum(cost for cost in below if cost is not None)
        if tile.convert is None or redone < tile.convert:
            costs[at], again[at] = redone, True
    return tuple(again)

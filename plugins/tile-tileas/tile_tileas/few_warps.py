"""Chained products by `mma.sync` that four warps of a block make better than eight.

Four warps have 16 rows each of 64; eight have half of each row, meet for what folds rows, and hand
weights on through shared memory. RTX 5090 (model), attention of 16 heads, 4096 x 4096, us, of eight
warps and of four: heads of 128 by 64 x 64 1108 and 835, by 64 x 128 1141 and 835, of 256 by 64 x 32
2642 and 1617; A100, of 128 by 64 x 64 1361 and 648. With more tiles than that, eight are better:
one query of heads of 128 by 64 x 256 41.1 and 45.9 (355 registers).
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.analysis.pressure import peak_registers
from tile_tileas.kernel_products import chained_columns, least_rows, makes_powers

#: Warps of a block, and those of one that has large sums.
FEW_WARPS, MANY_WARPS = 4, 8
#: Rows of which four warps have a fragment each.
ROWS_OF_FOUR = 64
#: Registers of tiles that threads of four warps may have to hold then, though some are spilt.
_MOST_TILES = 280


def are_chained_powers(func: ir.Operation) -> bool:
    """Whether all loops of products have two, of which the second reads powers of the first."""
    return chained_columns(func) > 0 and makes_powers(func)


def have_rows_of_four(func: ir.Operation) -> bool:
    """Whether four warps have all rows of chained products by `mma.sync`, and hold their tiles."""
    if least_rows(func) != ROWS_OF_FOUR or peak_registers(func, FEW_WARPS) > _MOST_TILES:
        return False
    return are_chained_powers(func)

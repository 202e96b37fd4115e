"""Clusters that a kernel's hint asks for, and that take longer than one block for each tile block.

Programs and tuners ask for pairs of blocks without knowing what instructions these get. Model, us,
of a cluster of two and of one block:

- Chained products, as of attention (16 heads of 128, 4096 x 4096, 128 x 128): B200 389 and 127,
  H100 330 and 197. Blocks have half of the rows, wait for each other at each step, and one that has
  all rows hides powers behind products. With sums of 256 x 128 twice, which threads of one block
  cannot hold, it is 245 and 290 on an H100.
- Sums that leave each block less than 128 x 64: f16, 4096 x 4096 x 2048 by 128 x 64 x 64, B200 134
  and 104, H100 237 and 203; of 128 x 128 x 64 it is 72 and 69, 141 and 142.
- Products of tcgen05 that each block makes alone, of fewer rows than tensor memory has: tf32,
  128 x 128 x 32 231 and 136, f16, 64 x 256 x 64 124 and 99.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_core.target import Target
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.pressure import peak_registers
from tile_tileas.analysis.users import operations
from tile_tileas.cluster.pairs import PAIR, Pairing
from tile_tileas.kernel_products import (
    DOT,
    ROWS,
    chained_columns,
    is_chained,
    made_by,
)
from tile_tileas.mma.families import TENSOR

#: Warps of a block that has large sums, and elements of a sum that are enough for one.
_WARPS, _ENOUGH = 8, 128 * 64


@dataclass(frozen=True)
class Worth:
    """What is asked of a kernel in nv_tileaa: products run on `highest` kind of instruction or on
    lower ones, by blocks of `warps` warps (0: the compiler's choice).
    """

    target: Target
    highest: str
    warps: int

    def loss(self, func: ir.Operation, parts: int) -> str | None:
        """Why a cluster of `parts` blocks takes longer than one block; None if it may not."""
        dots = [op for op in operations(func.regions[0]) if op.operation.name == DOT]
        if parts < PAIR or not dots or not self.target.multicast:
            return None
        in_tensor = made_by(func, self.target, self.highest, _WARPS) == {TENSOR}
        if any(map(is_chained, dots)) and self._holds(func, in_tensor=in_tensor):
            return "products read what others make, which one block makes without waiting"
        if min(_elements(dot) for dot in dots) // parts < _ENOUGH:
            return f"each block would have less of a sum than {_ENOUGH // 64} x 64"
        rows = min(shape_of(dot.results[0])[-2] for dot in dots) // parts
        if in_tensor and rows < ROWS and self._alone(dots, parts):
            return f"each block would multiply {rows} rows by instructions of {ROWS}"
        return None

    def _alone(self, dots: list[ir.OpView], parts: int) -> bool:
        return Pairing(self.target, self.highest, self.warps, parts).problem(dots) is not None

    def _holds(self, func: ir.Operation, *, in_tensor: bool) -> bool:
        """Whether one block has columns of tensor memory for all sums, or registers for all tiles
        that are live at once.
        """
        if in_tensor:
            return chained_columns(func) <= COLUMNS
        return peak_registers(func, _WARPS) <= self.target.max_registers


def _elements(dot: ir.OpView) -> int:
    return prod(shape_of(dot.results[0]))

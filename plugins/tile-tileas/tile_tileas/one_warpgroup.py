"""Kernels whose products one warpgroup makes alone, though few registers are left to its threads.

Where a product reads what another one gives, and both have 64 rows, two warpgroups cut the columns
of both: what the second one reads goes through shared memory, and each row's folds, too. One
warpgroup hands it on in registers. H100 (model), attention of 64 x 256 x 128, one query of 32 heads
and of 8 x 32: 11.3 and 25.4 us with two warpgroups, 9.2 and 21.4 with one (247 registers, no
spills).

Where both have 128 rows, two warpgroups have 64 each. Where their tiles take more registers than
two blocks of two warpgroups have, and leave enough to one, two blocks of one hide each other's
chains. H100 (model), attention of 16 heads of 32, 4096 x 4096, 128 x 128: 123 us with two
warpgroups (154 registers), 106 with one (254), causal 69 and 64. Of heads of 64, whose sums are
larger, it is 131 and 141.

Where some have 64 rows and others 128, as gradients of attention in one kernel, two blocks of one
warpgroup do both: those of 64 rows are not cut, and blocks hide each other's chains, though a few
registers are spilt. H100 (model), 16 heads of 64, 4096 x 4096, 64 x 128: 595 us with two warpgroups
(184 registers), 493 with one (255, 192 bytes of spills).

Where several products of a loop have 64 rows and 128 columns, as those of a block of a cluster, two
warpgroups would have 64 columns of each, and read A twice from shared memory. H100 (model), a gated
layer of f16, 4096^3 in 128 x 128 x 64 by 2 CTAs: 493 us with two, whose clock is lower (1498 MHz),
464 with one (1584 MHz; 187 registers).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tile_tileaa.dialect.hints import allows_tma

from tile_core.mlir import ir
from tile_core.target import Target
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.pressure import peak_registers
from tile_tileas.analysis.tokens import is_weak
from tile_tileas.analysis.users import operations
from tile_tileas.analysis.views import tiled_view
from tile_tileas.copying.ahead import is_in_a_loop
from tile_tileas.kernel_products import (
    DOT,
    family_for,
    is_chained,
    operand_bytes,
    until_product,
)
from tile_tileas.mma.families import WARPGROUP as FAMILY
from tile_tileas.tma.refusals import Knowledge, refusals_of_memory

_LOAD = "nv_tileaa.tiled_load"
#: Rows of a warpgroup's products.
_ROWS = 64
#: Columns of which half is too few: the tensor cores wait for A.
_COLUMNS = 128
_WARPS = 4
#: Registers of a thread beside those tiles. The kernel above counts 192 for them and takes 247.
_OTHER_REGISTERS = 55
#: The same beside sums alone, which what follows a loop works on by and by.
_BESIDE_SUMS = 95
#: Registers of tiles that a thread may have where products have 64 and 128 rows, of which some are
#: spilt: the kernel above has 338.
_MOST_MIXED, _STAGES = 340, 2
#: Blocks of a multiprocessor that hide each other's chains, and tiles, of the registers that two
#: warpgroups of each would have, with which they do not have them: 1.02 with heads of 128 by 128 x
#: 32 (121 registers in the end), 1.21 with heads of 32 by 128 x 128 (154).
_BLOCKS, _OVER = 2, 1.1
_REPEATING = ("nv_tileaa.broadcast", "nv_tileaa.splat")


@dataclass(frozen=True)
class OneWarpgroup:
    """Asks it of a kernel in nv_tileaa. `highest` is the highest tier of instructions allowed;
    tensor maps, of which `known` says what they may copy, bring tiles ahead of loops.
    """

    target: Target
    highest: str
    known: Knowledge

    def suffices(self, func: ir.Operation) -> bool:
        """Whether all products are one warpgroup's size, and what it holds fits into its registers:
        all tiles but those that copy engines bring, where some product reads what another one
        gives, else sums of several that are too narrow for two.
        """
        ops = list(operations(func.regions[0]))
        dots = [op for op in ops if op.operation.name == DOT]
        rows = {shape_of(dot.results[0])[-2] for dot in dots}
        if not rows <= {_ROWS, 2 * _ROWS} or not all(map(self._is_made_by_one, dots)):
            return False
        loads = [op for op in ops if op.operation.name == _LOAD and is_in_a_loop(op)]
        if not all(map(self._is_brought, loads)):
            return False
        chained = any(is_in_a_loop(dot) and is_chained(dot) for dot in dots)
        if rows == {2 * _ROWS}:
            return chained and self._are_better_in_turn(func, dots)
        if not chained:
            return rows == {_ROWS} and self._are_narrow(dots)
        taken = peak_registers(func, _WARPS, [tile for op in ops for tile in _elsewhere(op)])
        if rows == {_ROWS}:
            return taken + _OTHER_REGISTERS <= self.target.max_registers
        return taken <= _MOST_MIXED and self._is_crowded(func) and self._leaves_memory(func)

    def _is_made_by_one(self, dot: ir.OpView) -> bool:
        return family_for(dot, self.target, self.highest, _WARPS) == FAMILY

    def _are_narrow(self, dots: list[ir.OpView]) -> bool:
        """Whether several products of a loop add to sums that two warpgroups would cut too far."""
        narrow = all(shape_of(dot.results[0])[-1] == _COLUMNS for dot in dots)
        together = len({dot.operation.block for dot in dots}) == 1 and all(map(is_in_a_loop, dots))
        return len(dots) > 1 and narrow and together and self._have_room(dots)

    def _are_better_in_turn(self, func: ir.Operation, dots: list[ir.OpView]) -> bool:
        """Whether two blocks of one warpgroup have room, and of two have not."""
        return self._is_crowded(func) and self._have_room(dots)

    def _is_crowded(self, func: ir.Operation) -> bool:
        """Whether two blocks of two warpgroups have not the registers for their tiles."""
        share = self.target.registers // (_BLOCKS * 2 * _WARPS * self.target.warp_size)
        return peak_registers(func, 2 * _WARPS) > _OVER * share

    def _leaves_memory(self, func: ir.Operation) -> bool:
        """Whether two blocks have shared memory for two stages of what products read."""
        return _BLOCKS * _STAGES * operand_bytes(func) <= self.target.max_shared

    def _have_room(self, dots: list[ir.OpView]) -> bool:
        """Whether one warpgroup has registers for all sums, and beside them."""
        threads = self.target.warp_size * _WARPS
        sums = sum(prod(shape_of(dot.results[0])) for dot in dots) // threads
        return sums + _BESIDE_SUMS <= self.target.max_registers

    def _is_brought(self, load: ir.OpView) -> bool:
        """Whether a tensor map may bring the tile."""
        if not allows_tma(load) or not is_weak(load):
            return False
        record = tiled_view(load.view)
        return (record.padding or "zero") == "zero" and not refusals_of_memory(
            load, record, self.known
        )


def _elsewhere(op: ir.OpView) -> list[ir.Value]:
    """What `op` gives that takes no registers while products are made: tiles that lie in shared
    memory then, and those that repeat a row or a column.
    """
    if op.operation.name == _LOAD:
        return until_product(op.results[0])
    tiles = [value for value in op.operands if isinstance(value.type, ir.RankedTensorType)]
    repeats = len(op.results) == 1 and tiles and all(map(_repeats, tiles))
    return [op.results[0]] if repeats else []


def _repeats(tile: ir.Value) -> bool:
    """Whether elements of a tile are copies of those of a smaller one."""
    return not isinstance(tile.owner, ir.Block) and tile.owner.name in _REPEATING

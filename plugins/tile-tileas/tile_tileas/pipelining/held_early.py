"""Scalars that what follows a loop needs, computed while others are busy with the loop.

LLVM moves what has no effects to where it is used: behind the wait for a loop's last product,
where nobody computes anything else. A place in a grid takes two divisions, some 400 clk of a B200
(model).
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.analysis.pressure import used_values
from tile_tileas.analysis.users import within
from tile_tileas.pipelining.opaque import opaque
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.writer import Writer

#: Of integers that have registers of their own.
_WIDTHS = (32, 64)


def compute_early(at: Writer, loop: ir.OpView) -> None:
    """Let scalars that are made in front of `loop`, and used behind it, be there where `at` is."""
    block = loop.operation.block
    ops = [op.operation for op in block.operations]
    place = ops.index(loop.operation)
    made = {
        result
        for op in ops[:place]
        if is_pure(op.opview) and not len(op.regions) and op.name != "arith.constant"
        for result in op.results
        if isinstance(result.type, ir.IntegerType) and result.type.width in _WIDTHS
    }
    behind = ops[place + 1 :]
    for value in dict.fromkeys(one for op in behind for one in used_values(op) if one in made):
        held = opaque(at, value)
        for use in list(value.uses):
            if within(use.owner.operation, block) in behind:
                use.owner.operands[use.operand_number] = held

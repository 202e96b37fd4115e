"""`nvvm.barrier`, with which threads of a block meet, as the installed MLIR has it.

LLVM 22 knows three operands, whose last one is of a reduction, and no `aligned`; later ones two,
and the attribute, true by default. What is not given here is MLIR's to fill in.
"""

from __future__ import annotations

from functools import cache

from tile_core.insertion import Inserter
from tile_core.mlir import ir

_NAME = "nvvm.barrier"
_SIZES = "operandSegmentSizes"


def block_meets(cx: Inserter) -> None:
    """All threads of the block."""
    cx.create(_NAME)


def some_meet(cx: Inserter, barrier: ir.Value, threads: ir.Value) -> None:
    """So many threads (i32, a multiple of 32), at a named barrier (i32, 0 to 15)."""
    sizes = [1, 1] + [0] * (_kinds_of_operands() - 2)
    cx.create(_NAME, [barrier, threads], [], {_SIZES: ir.DenseI32ArrayAttr.get(sizes)})


@cache
def _kinds_of_operands() -> int:
    """Of the one MLIR that this process has."""
    plain = ir.Operation.create(_NAME, loc=ir.Location.unknown())
    return len(ir.DenseI32ArrayAttr(plain.attributes[_SIZES]))

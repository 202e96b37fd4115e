"""Scalars that what follows a loop needs, computed while others are busy with the loop.

LLVM moves what has no effects to where it is used: behind the wait for a loop's last product,
where nobody computes anything else. A place in a grid takes two divisions, some 400 clk of a B200
(model).
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.mlir import ir
from tile_tileas.pipelining.opaque import opaque
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.writer import Writer


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
        if isinstance(result.type, ir.IntegerType)
    }
    behind = ops[place + 1 :]
    for value in dict.fromkeys(one for op in behind for one in _used(op) if one in made):
        users = [use for use in value.uses if any(_holds(op, use.owner.operation) for op in behind)]
        held = opaque(at, value)
        for use in users:
            use.owner.operands[use.operand_number] = held


def _used(op: ir.Operation | ir.OpView) -> Iterator[ir.Value]:
    yield from op.operands
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _used(inner)


def _holds(op: ir.Operation, inner: ir.Operation) -> bool:
    one: ir.Operation | None = inner
    while one is not None and one != op:
        parent = one.parent
        one = None if parent is None else parent.operation
    return one is not None

"""Operations inside of others: which of a block use a value, themselves or by what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tile_core.mlir import ir


def within(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The operation of `block` that `op` is, or stands in; None if it is outside."""
    found = op
    while found.block != block:
        if found.parent is None or found.parent.operation.name == "func.func":
            return None
        found = found.parent.operation
    return found


def first_user(block: ir.Block, values: Iterable[ir.Value]) -> ir.Operation | None:
    """The first operation of `block` that uses one of `values`, or has inside what does."""
    users = {within(use.owner.operation, block) for value in values for use in value.uses}
    return next((op.operation for op in block.operations if op.operation in users), None)


def operations(region: ir.Region) -> Iterator[ir.OpView]:
    """Those of all blocks inside of `region`, in program order."""
    for block in region.blocks:
        for op in block.operations:
            yield op
            for inner in op.regions:
                yield from operations(inner)


def counting_loops(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    """The `scf.for` loops inside of an operation, inner ones first."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from counting_loops(inner)
                if inner.operation.name == "scf.for":
                    yield inner

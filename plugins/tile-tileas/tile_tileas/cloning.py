"""Operands of operations that are cloned into another place, those in their regions included."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.mlir import ir


def mapped_operands(
    op: ir.OpView | ir.Operation, mapped: Callable[[ir.Value], ir.Value | None]
) -> dict[ir.Value, ir.Value]:
    """What the operands of `op`, and of operations in its regions, become."""
    found: dict[ir.Value, ir.Value] = {}
    for value in op.operands:
        new = mapped(value)
        if new is not None:
            found[value] = new
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found |= mapped_operands(inner, mapped)
    return found


def replace_operands(op: ir.OpView | ir.Operation, new: dict[ir.Value, ir.Value]) -> None:
    """Put values of `new` in place of those they are for, in `op` and in its regions."""
    for at, value in enumerate(op.operands):
        if value in new:
            op.operands[at] = new[value]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                replace_operands(inner, new)

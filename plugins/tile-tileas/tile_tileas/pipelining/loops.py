"""Loops that have products of their own, and those that have none."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.mlir import ir

PRODUCT = "nv_tileas.dot"
_LOOPS = {"scf.for", "scf.while"}


def loops_with_products(region: ir.Region) -> Iterator[ir.OpView]:
    """Loops that have products of their own, inner ones first."""
    return (loop for loop in _counted(region) if PRODUCT in _names(loop))


def streams(region: ir.Region) -> Iterator[ir.OpView]:
    """Innermost loops without products, program order."""
    return (loop for loop in _counted(region) if not _names(loop) & {PRODUCT, *_LOOPS})


def _counted(region: ir.Region) -> Iterator[ir.OpView]:
    """Loops that count up with a sign, inner ones first."""
    for block in region.blocks:
        for op in block.operations:
            if not op.operation.name.startswith("scf."):
                continue
            for inner in op.regions:
                yield from _counted(inner)
            if op.operation.name == "scf.for" and "unsignedCmp" not in op.attributes:
                yield op


def _names(loop: ir.OpView) -> set[str]:
    """Names of the operations of a loop's own body."""
    return {op.operation.name for op in loop.regions[0].blocks[0].operations}

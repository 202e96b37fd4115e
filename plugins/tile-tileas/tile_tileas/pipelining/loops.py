"""Loops that have products of their own, and those that have none."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.mlir import ir

PRODUCT = "nv_tileas.dot"


def loops_with_products(region: ir.Region) -> Iterator[ir.OpView]:
    """Loops that have products of their own, inner ones first."""
    for block in region.blocks:
        for op in block.operations:
            if not op.operation.name.startswith("scf."):
                continue
            for inner in op.regions:
                yield from loops_with_products(inner)
            if op.operation.name != "scf.for" or "unsignedCmp" in op.attributes:
                continue
            body = op.regions[0].blocks[0]
            if any(inner.operation.name == PRODUCT for inner in body.operations):
                yield op


def streams(region: ir.Region) -> Iterator[ir.OpView]:
    """Innermost loops without products, program order."""
    for block in region.blocks:
        for op in block.operations:
            if not op.operation.name.startswith("scf."):
                continue
            for part in op.regions:
                yield from streams(part)
            if op.operation.name != "scf.for" or "unsignedCmp" in op.attributes:
                continue
            names = {one.operation.name for one in op.regions[0].blocks[0].operations}
            if not names & {PRODUCT, "scf.for", "scf.while"}:
                yield op

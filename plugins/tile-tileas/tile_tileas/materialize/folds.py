"""Reductions and scans in which several warps hold parts of the axis, and counts."""

from __future__ import annotations

from tile_tileaa.dialect.folds import SLOTS

from tile_core.dialect import runs_of_types
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.moves import layout_at
from tile_tileas.reductions import plan_reduction
from tile_tileas.scans import scan_extents
from tile_tileas.storage import row_major


def reduce(op: ir.OpView) -> None:
    """reduce => reduce_across_warps, with a buffer per tile for what each warp finds"""
    layout = layout_at(op, op.operands[0].type)
    plan = plan_reduction(layout, ir.IntegerAttr(op.attributes["axis"]).value)
    assert plan is not None, "layout assignment keeps reductions plannable"
    if plan.warp_bits:
        _across(op, "reduce", plan.result.size * plan.partials)


def scan(op: ir.OpView) -> None:
    """scan => scan_across_warps, with a buffer per tile for the totals of segments"""
    layout, axis = layout_at(op, op.operands[0].type), ir.IntegerAttr(op.attributes["axis"]).value
    segments = scan_extents(layout, axis).warps
    if segments > 1:
        _across(op, "scan", layout.size // layout.shape[axis] * segments)


def histogram(op: ir.OpView) -> None:
    """histogram => counters in a buffer, zero at first, that threads count in, and read"""
    cx, result = Exchange(op), op.results[0]
    tile = ir.RankedTensorType(result.type)
    zero = ir.DenseElementsAttr.get_splat(tile, ir.IntegerAttr.get(tile.element_type, 0))
    zeros = cx.create("arith.constant", [], [tile], {"value": zero}).result
    counters = cx.staged(zeros, row_major(tile.shape))
    cx.create("nv_tileas.count", [op.operands[0], counters])
    result.replace_all_uses_with(cx.load(counters, tile))
    op.operation.erase()


def _across(op: ir.OpView, kind: str, count: int) -> None:
    """The form of `op` that has a buffer of `count` elements for each tile."""
    cx, tiles = Exchange(op), list(op.operands)
    buffers = [cx.run_of(count, tile.type.element_type) for tile in tiles]
    types = [result.type for result in op.results]
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(
        _runs(op, [tile.type for tile in tiles]) + _runs(op, [buffer.type for buffer in buffers])
    )
    attributes["resultSegmentSizes"] = ir.DenseI32ArrayAttr.get(_runs(op, types))
    name = f"nv_tileas.{kind}_across_warps"
    new = cx.create(name, [*tiles, *buffers], types, attributes, regions=1)
    op.regions[0].blocks[0].append_to(new.regions[0])
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    op.operation.erase()


def _runs(op: ir.OpView, types: list[ir.Type]) -> list[int]:
    sizes = runs_of_types(types, SLOTS)
    if sizes is None:
        raise error_at(op, f"has more than {SLOTS} runs of operands of one type")
    return sizes

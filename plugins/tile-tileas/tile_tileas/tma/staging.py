"""Where a tile lies in shared memory on its way from registers to a tensor map's boxes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_cute.linear import LinearLayout, strided, swizzled_rows

from tile_core.mlir import ir
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.views import tiled_view
from tile_tileas.storage import storage_bits
from tile_tileas.tma.boxes import boxes_of
from tile_tileas.tma.refusals import innermost

#: Bytes of the widest swizzle, and of the narrowest; rows after which any repeats.
_WIDEST, _NARROWEST, _ROWS = 128, 32, 8


def staged_layout(shape: Sequence[int], order: Sequence[int], bits: int) -> LinearLayout:
    """A buffer (offset -> tile) for a tile of elements of `bits` bits, which boxes empty.

    Rows along order[0], swizzled where there are enough of them that threads which hold a column,
    as fragments of products do, would otherwise meet in one bank.
    """
    fast = order[0]
    span = min(shape[fast] * bits // 8, _WIDEST)
    if span < _NARROWEST or prod(shape) // shape[fast] < _ROWS:
        return strided(shape, order)
    return swizzled_rows(tuple(shape), tuple(order), bits, span)


def staged_store(op: ir.OpView, plan: AccessPlan, most: int) -> LinearLayout | str:
    """How the tile of a `tiled_store` is staged in up to `most` bytes; or why it cannot be."""
    record = tiled_view(op.view)
    shape, bits = shape_of(op.value), storage_bits(op.value.type.element_type)
    size = prod(shape) * bits // 8
    if size > most:
        return f"the tile has {size} bytes, and shared memory {most}"
    inner = innermost(record)
    if inner is None:
        return "no axis of the tile is known to lie contiguously in memory"
    fast = record.dim_map.index(inner)
    order = [fast, *(axis for axis in plan.order if axis != fast)]
    layout = staged_layout(shape, order, bits)
    boxes = boxes_of(layout, bits, fast)
    return boxes if isinstance(boxes, str) else layout

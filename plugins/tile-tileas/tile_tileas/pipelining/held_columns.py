"""Columns of tensor memory for accumulators, and for block scales of their products."""

from __future__ import annotations

from tile_cute.atoms.records import TENSOR
from tile_cute.linear import LinearLayout

from tile_core.mlir import ir
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import LEAST_COLUMNS
from tile_tileas.mma.tensor import TensorPlan
from tile_tileas.mma.tensor_scaled import ScaledTensorPlan
from tile_tileas.pipelining.writer import Writer

#: Where columns of block scales begin (PTX ISA, "tcgen05.cp").
_SCALE_COLUMNS = 4


def sums_of(at: Writer, product: ir.OpView, plan: TensorPlan, several: int = 1) -> ir.Value:
    """So many accumulators of a product."""
    return _allocated(at, product.results[0].type, plan.buffer, LEAST_COLUMNS, several)


def scales_of(at: Writer, product: ir.OpView, plan: TensorPlan) -> list[ir.Value]:
    """Its block scales of A and of B, if it has some: while it is in flight, nothing else may have
    the columns of either.
    """
    if not isinstance(plan, ScaledTensorPlan):
        return []
    known = [Buffer.of(value.type) for value in list(product.operands)[3:]]
    tiles = [buffer.tile for buffer in known if buffer is not None]
    places = zip(tiles, plan.scale_places, strict=True)
    return [_allocated(at, tile, place, _SCALE_COLUMNS) for tile, place in places]


def _allocated(
    at: Writer, tile: ir.Type, layout: LinearLayout, alignment: int, several: int = 1
) -> ir.Value:
    plain = ir.RankedTensorType.get(tile.shape, tile.element_type)
    held = ir.RankedTensorType(distributed(plain, layout))
    attributes = {"alignment": ir.IntegerAttr.get(at.i32, alignment)}
    type_ = Buffer(held, TENSOR, several).type
    return at.create("nv_tileas.alloc_tensor", [], [type_], attributes).result

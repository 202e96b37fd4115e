"""Along which axis of a tile its elements lie side by side in memory, before layouts are known."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.views import tiled_view

_LOADS = ("nv_tileaa.tiled_load", "nv_tileas.tiled_load")
_VIEWS = ("nv_tileaa.view", "nv_tileas.view")
_PERMUTE = "nv_tileaa.permute"


def axis_in_memory(value: ir.Value) -> int | None:
    """The axis whose elements lie side by side where the tile was loaded from; None if unknown.

    Follows casts and other elementwise operations, views that add or drop axes of one element,
    and permutations.
    """
    owner = value.owner
    if isinstance(owner, ir.Block) or not isinstance(value.type, ir.RankedTensorType):
        return None
    op = owner.opview if isinstance(owner, ir.Operation) else owner
    name = op.operation.name
    if name in _LOADS:
        return _of_load(op)
    if name == _PERMUTE:
        found = axis_in_memory(op.operands[0])
        axes = list(ir.DenseI32ArrayAttr(op.attributes["permutation"]))
        return None if found is None else axes.index(found)
    if name in _VIEWS:
        return _of_view(shape_of(op.operands[0]), shape_of(value), axis_in_memory(op.operands[0]))
    if len(op.regions):
        return None
    for operand in op.operands:
        tile = isinstance(operand.type, ir.RankedTensorType)
        if tile and shape_of(operand) == shape_of(value):
            found = axis_in_memory(operand)
            if found is not None:
                return found
    return None


def _of_load(load: ir.OpView) -> int | None:
    view = tiled_view(load.operands[0])
    strides = [view.memref.strides[dim] for dim in view.dim_map]
    found = [axis for axis, stride in enumerate(strides) if stride == 1 and view.tile[axis] > 1]
    return found[0] if len(found) == 1 else None


def _of_view(source: tuple[int, ...], result: tuple[int, ...], axis: int | None) -> int | None:
    """Axes of more than one element keep their order."""
    before = [at for at, extent in enumerate(source) if extent > 1]
    after = [at for at, extent in enumerate(result) if extent > 1]
    same = [source[at] for at in before] == [result[at] for at in after]
    return after[before.index(axis)] if same and axis in before else None

"""Views of memory and tokens of nv_tileaa, what is assumed, and the program's place in its grid."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any, TypeVar

from tile_core.dialect import Operand, OperationSpec, Pure, Result, declare
from tile_core.mlir import ir
from tile_tileaa.dialect.assumptions import assumption
from tile_tileaa.dialect.base import MemTokenType, NvTileAA
from tile_tileaa.dialect.types import (
    DYNAMIC,
    element_of,
    is_integer,
    memref_parts,
    pointee_of,
    shape_of,
    view_parts,
)

T = TypeVar("T", bound=Any)


def _make_memref(op: ir.OpView) -> str | None:
    """The base points to elements; an operand for each size and stride that is dynamic."""
    parts = memref_parts(op.result.type)
    if parts is None:
        return f"expects a memref, but got {op.result.type}"
    element, sizes, strides = parts
    if pointee_of(op.base.type) != element:
        return f"expects a pointer to {element}, but got {op.base.type}"
    if len(sizes) != len(strides):
        return f"expects as many strides as sizes, but got {len(strides)} and {len(sizes)}"
    for name, given, declared in (("size", op.sizes, sizes), ("stride", op.strides, strides)):
        dynamic = declared.count(DYNAMIC)
        if len(given) != dynamic:
            return f"expects {dynamic} operands for a {name} each, but got {len(given)}"
    return None


def _block_tile(op: ir.OpView) -> str | None:
    """Tile sizes and the axes that they cut, in the order of the specification."""
    parts = view_parts(op.result.type)
    if parts is None:
        return f"expects a tiled view, but got {op.result.type}"
    source, tile, axes, _ = parts
    if not tile:
        return "expects non-empty tileSizes"
    if not axes:
        return "expects non-empty dimGroups"
    if len(tile) != len(axes):
        return (
            "expects rank of tileSizes be equal to rank of dimGroups, but got "
            f"{len(tile)} vs {len(axes)}"
        )
    if min(tile) <= 0:
        return "expects all tile size bigger than zero"
    for at, axis in enumerate(axes):
        if axis in axes[:at]:
            return f"expects dim is being tiled only one time, but got {axis}"
    return _source_of_view(op, source, axes) or _padding(op)


def _source_of_view(op: ir.OpView, source: ir.Type, axes: list[int]) -> str | None:
    if op.source.type != source:
        return f"expects a view of {op.source.type}, but got one of {source}"
    memref = memref_parts(source)
    if memref is None:
        return f"expects a memref, but got {source}"
    rank = len(memref[1])
    for axis in axes:
        if not 0 <= axis < rank:
            return f"expects axes of at least 0 and below {rank}, but got {axis}"
    return None


#: What elements outside the memref read; "none" and "" leave it open.
PADDINGS = ("", "none", "zero", "neg_zero", "nan", "pos_inf", "neg_inf")


def _padding(op: ir.OpView) -> str | None:
    parts = view_parts(op.result.type)
    assert parts is not None, "checked before"
    memref, padding = memref_parts(parts[0]), parts[3]
    if padding not in PADDINGS:
        return f"expects a padding of {', '.join(PADDINGS[1:])}, but got '{padding}'"
    if padding not in PADDINGS[:3] and memref is not None and is_integer(memref[0]):
        return (
            "special padding values (nan, pos_inf, neg_inf, neg_zero) only for float-like element "
            "types"
        )
    return None


def _dim(op: ir.OpView) -> str | None:
    parts = memref_parts(op.source.type)
    if parts is None:
        return f"expects a memref, but got {op.source.type}"
    dim = op.dim.value
    if 0 <= dim < len(parts[1]):
        return None
    return f"expects a dim of at least 0 and below {len(parts[1])}, but got {dim}"


def _addptr(op: ir.OpView) -> str | None:
    if pointee_of(op.base.type) is None:
        return f"expects pointers, but got {op.base.type}"
    element = element_of(op.offset.type)
    if not isinstance(element, ir.IntegerType | ir.IndexType):
        return f"expects an offset of integers, but got {element}"
    if shape_of(op.base.type) != shape_of(op.offset.type):
        return (
            f"expects as many offsets as pointers, but got {shape_of(op.offset.type)} and "
            f"{shape_of(op.base.type)}"
        )
    return None


def _grid_axis(op: ir.OpView) -> str | None:
    axis = op.axis.value
    return None if axis in (0, 1, 2) else f"expects an axis of 0, 1 or 2, but got {axis}"


_OF_GRID: dict[str, Any] = {"result": Result[Any], "axis": ir.IntegerAttr}

SPECS = (
    OperationSpec(
        "make_memref",
        {
            "base": Operand[Any],
            "sizes": Sequence[Operand[Any]],
            "strides": Sequence[Operand[Any]],
            "result": Result[Any],
        },
        "A strided view: base pointer, one operand per dynamic size and per dynamic stride.",
        (Pure,),
        (_make_memref,),
    ),
    OperationSpec(
        "block_tile",
        {"source": Operand[Any], "result": Result[Any]},
        "Cut a memref into a grid of tiles; the tile is part of the result type. With `steps` "
        "(array<i32>), tiles begin that many elements apart instead of side by side.",
        (Pure,),
        (_block_tile,),
    ),
    OperationSpec(
        "get_dim_size",
        {"source": Operand[Any], "result": Result[Any], "dim": ir.IntegerAttr},
        "The extent of axis `dim` of a memref.",
        (Pure,),
        (_dim,),
    ),
    OperationSpec(
        "addptr",
        {"base": Operand[T], "offset": Operand[Any], "result": Result[T]},
        "base + offset, counted in elements, signed.",
        (Pure,),
        (_addptr,),
    ),
    OperationSpec(
        "create_mem_token",
        {"result": Result[MemTokenType]},
        "A token that waits for nothing.",
        (Pure,),
    ),
    OperationSpec(
        "join_mem_token",
        {"tokens": Sequence[Operand[MemTokenType]], "result": Result[MemTokenType]},
        "A token that is complete when all of its inputs are.",
        (Pure,),
    ),
    OperationSpec(
        "assume",
        {"source": Operand[T], "result": Result[T], "predicate": ir.DictAttr},
        "x, of which `predicate` holds: a dictionary whose `kind` says which one it is. `div_by` "
        "{divisor, every?, along?}, `bounded` {lb?, ub?}, `same_elements` {values}. Only the "
        "result is known to be so: where it does not hold, nothing but the result is undefined.",
        (Pure,),
        (assumption,),
    ),
    OperationSpec(
        "get_program_id",
        _OF_GRID,
        "The coordinate of this tile block in the grid along `axis` (0, 1, 2).",
        (Pure,),
        (_grid_axis,),
    ),
    OperationSpec(
        "get_num_programs",
        _OF_GRID,
        "The extent of the grid along `axis` (0, 1, 2).",
        (Pure,),
        (_grid_axis,),
    ),
)

for _spec in SPECS:
    declare(NvTileAA, _spec, module=__name__)

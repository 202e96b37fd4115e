"""Operations of nv_tileaa that make and reshape tiles; `SHARED_SHAPES` are nv_tileas' too."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any, TypeVar

from tile_core.dialect import Operand, OperationSpec, Pure, Result, declare
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA
from tile_tileaa.dialect.types import count_of, element_of, is_integer, shape_of

T = TypeVar("T", bound=Any)

_SOURCE: dict[str, Any] = {"source": Operand[Any], "result": Result[Any]}


def _shapes(op: ir.OpView) -> tuple[list[int], list[int]]:
    return shape_of(op.source.type), shape_of(op.result.type)


def _same_element(op: ir.OpView) -> str | None:
    source, result = element_of(op.operands[0].type), element_of(op.results[0].type)
    return None if source == result else f"cannot make elements of {result} from {source}"


def _splat(op: ir.OpView) -> str | None:
    if shape_of(op.source.type) or not isinstance(op.result.type, ir.RankedTensorType):
        return f"cannot splat {op.source.type} to {op.result.type}"
    return None


def _broadcast(op: ir.OpView) -> str | None:
    source, result = _shapes(op)
    if len(source) == len(result) and all(a in (1, b) for a, b in zip(source, result, strict=True)):
        return None
    return f"cannot broadcast {source} to {result}"


def _expand_dims(op: ir.OpView) -> str | None:
    source, result = _shapes(op)
    axis = op.axis.value
    if 0 <= axis <= len(source) and result == [*source[:axis], 1, *source[axis:]]:
        return None
    return f"cannot insert axis {axis} into {source} for {result}"


def _view(op: ir.OpView) -> str | None:
    source, result = _shapes(op)
    return None if count_of(source) == count_of(result) else f"cannot view {source} as {result}"


def _extract(op: ir.OpView) -> str | None:
    if count_of(shape_of(op.source.type)) != 1:
        return "expects a tile of one element"
    return (
        f"expects a scalar result, but got {op.result.type}" if shape_of(op.result.type) else None
    )


def _permute(op: ir.OpView) -> str | None:
    source, result = _shapes(op)
    axes = list(op.permutation)
    if sorted(axes) == list(range(len(source))) and result == [source[a] for a in axes]:
        return None
    return f"cannot permute {source} by {axes} to {result}"


def _cat(op: ir.OpView) -> str | None:
    """The result is twice the operands' extent along `axis`."""
    source, result = shape_of(op.lhs.type), shape_of(op.result.type)
    axis = op.axis.value
    doubled = [extent * (1 + (at == axis)) for at, extent in enumerate(source)]
    if 0 <= axis < len(source) and result == doubled:
        return None
    return f"cannot join two tiles of {source} along {axis} to {result}"


def _slice_problem(whole: list[int], part: list[int], indices: Sequence[ir.Value]) -> str | None:
    if len(indices) != len(whole):
        return f"expects {len(whole)} indices, but got {len(indices)}"
    if len(whole) == len(part) and all(not w % p for w, p in zip(whole, part, strict=True)):
        return None
    return f"cannot cut {whole} into tiles of {part}"


def _extract_slice(op: ir.OpView) -> str | None:
    """The result's shape divides the source's; an index per axis."""
    tile, *indices = op.operands
    return _slice_problem(shape_of(tile.type), shape_of(op.results[0].type), indices)


def _insert_slice(op: ir.OpView) -> str | None:
    """The source's shape divides the destination's, which is the result's; an index per axis."""
    tile, whole, *indices = op.operands
    return _slice_problem(shape_of(whole.type), shape_of(tile.type), indices)


def _make_range(op: ir.OpView) -> str | None:
    type_ = op.result.type
    if len(shape_of(type_)) == 1 and is_integer(element_of(type_)):
        return None
    return f"expects a tile of one axis of integers, but got {type_}"


CAT = OperationSpec(
    "cat",
    {"lhs": Operand[T], "rhs": Operand[T], "result": Result[Any], "axis": ir.IntegerAttr},
    "Two tiles of one shape behind each other along `axis`.",
    (Pure,),
    (_cat, _same_element),
)
VIEW = OperationSpec(
    "view",
    _SOURCE,
    "The same elements in row-major order under another shape.",
    (Pure,),
    (_view, _same_element),
)
EXTRACT_SLICE = OperationSpec(
    "extract_slice",
    {"source": Operand[Any], "indices": Sequence[Operand[Any]], "result": Result[Any]},
    "One tile of the grid that tiles of the result's shape form in the source. `indices` count "
    "such tiles, one per axis, modulo the extents of the grid.",
    (Pure,),
    (_extract_slice, _same_element),
)
INSERT_SLICE = OperationSpec(
    "insert_slice",
    {
        "source": Operand[Any],
        "destination": Operand[T],
        "indices": Sequence[Operand[Any]],
        "result": Result[T],
    },
    "The destination with one tile of the grid that tiles of the source's shape form in it "
    "replaced by the source. `indices` count such tiles, one per axis.",
    (Pure,),
    (_insert_slice, _same_element),
)

#: What nv_tileas has in the same form, on tiles with layouts.
SHARED_SHAPES = (CAT, EXTRACT_SLICE, INSERT_SLICE)

SHAPES = (
    OperationSpec(
        "splat", _SOURCE, "A tile that holds one scalar everywhere.", (Pure,),
        (_splat, _same_element),
    ),
    OperationSpec(
        "broadcast", _SOURCE, "Axes of extent 1 repeat up to the result's extents.", (Pure,),
        (_broadcast, _same_element),
    ),
    OperationSpec(
        "expand_dims", {**_SOURCE, "axis": ir.IntegerAttr}, "Insert an axis of extent 1 at `axis`.",
        (Pure,), (_expand_dims, _same_element),
    ),
    VIEW,
    OperationSpec(
        "extract", _SOURCE, "The single element of a one-element tile, as a scalar.", (Pure,),
        (_extract, _same_element),
    ),
    OperationSpec(
        "permute", {**_SOURCE, "permutation": Any},  # array<i32>
        "Axis i of the result is axis `permutation[i]` of the source.", (Pure,),
        (_permute, _same_element),
    ),
    OperationSpec(
        "make_range", {"result": Result[Any]}, "0, 1, ..., n-1 along one axis.", (Pure,),
        (_make_range,),
    ),
    *SHARED_SHAPES,
)  # fmt: skip

for _spec in SHAPES:
    declare(NvTileAA, _spec, module=__name__)

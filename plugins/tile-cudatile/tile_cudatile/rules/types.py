"""Rules of types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tile_cudatile.errors import BytecodeError
from tile_cudatile.ops.constraints import NUMBERS
from tile_cudatile.rules.words import dims, quote
from tile_cudatile.types import (
    F4E2M1FN,
    I4,
    GatherScatterView,
    PartitionView,
    Pointer,
    Scalar,
    StridedView,
    TensorView,
    Tile,
    Type,
)

MAX_TILE_ELEMENTS = 1 << 24
_NUMBER_NAMES = " or ".join(s.name for s in NUMBERS)


def type_problem(type_: Type) -> str | None:
    """What is wrong with the parameters of a type; None if nothing is."""
    check = _CHECKS.get(type(type_))
    return check(type_) if check else None


def check_type(type_: Type) -> None:
    """Raises `BytecodeError` if the parameters of a type break a rule."""
    problem = type_problem(type_)
    if problem is not None:
        raise BytecodeError(problem)


def _is_number(type_: Type) -> bool:
    return isinstance(type_, Scalar) and type_ != I4


def _pointer(type_: Pointer) -> str | None:
    if not _is_number(type_.pointee):
        return f"failed to verify 'pointeeType': {_NUMBER_NAMES}"
    return None


def _tile(type_: Tile) -> str | None:
    element = type_.element
    if isinstance(element, Pointer) and element.pointee == F4E2M1FN and type_.shape:
        return "tiles of ptr<f4E2M1FN> must have rank 0; use an f4 tile view for element access"
    return tile_shape_problem(type_.shape, element)


def tile_shape_problem(shape: Sequence[int], element: Type) -> str | None:
    """What is wrong with a tile of this shape and element type."""
    if element == F4E2M1FN and all(dim % 2 for dim in shape):
        return "F4E2M1FN tiles must have an even number of elements"
    count = 1
    for dim in shape:
        if dim <= 0:
            return f"all dimensions must be positive constants, got {dims(shape)}"
        if dim & (dim - 1):
            return f"all dimensions must be powers of two, got {dims(shape)}"
        if count > MAX_TILE_ELEMENTS // dim:
            return f"tile would exceed the maximum of {MAX_TILE_ELEMENTS} elements"
        count *= dim
    return None


def _tensor_view(type_: TensorView) -> str | None:
    if not _is_number(type_.element):
        return f"failed to verify 'elementType': {_NUMBER_NAMES}"
    if len(type_.shape) != len(type_.strides):
        return (
            "expected shape and stride to be of same rank but got shape of rank "
            f"{len(type_.shape)} and stride of rank {len(type_.strides)}"
        )
    for name, extents in (("sizes", type_.shape), ("strides", type_.strides)):
        if any(e is not None and e <= 0 for e in extents):
            shown = ", ".join("?" if e is None else str(e) for e in extents)
            return f"dimensions must have strictly positive constant {name} but got [{shown}]"
    return None


def _tile_of_view(tile: Sequence[int], view: TensorView) -> str | None:
    if not tile:
        return "0-dimension tile shape is not supported"
    if len(tile) != len(view.shape):
        return (
            "expected tensor_view rank and tile rank to match, got tensor_view of rank "
            f"{len(view.shape)} and tiles of rank {len(tile)}"
        )
    return None


def _tile_lengths(tile: Sequence[int]) -> str | None:
    for rule, broken in (
        ("positive", any(dim <= 0 for dim in tile)),
        ("power of two", any(dim & (dim - 1) for dim in tile)),
    ):
        if broken:
            return f"tile shape dimensions must have {rule} length but got [{dims(tile)}]"
    return None


def _dim_map(dim_map: Sequence[int], rank: int) -> str | None:
    used: dict[int, int] = {}
    for tile_dim, target in enumerate(dim_map):
        if target < 0:
            return f"target dimension must not be negative, got {target}"
        if target >= rank:
            return (
                "target dimension is outside of tensor view dimensions, expected strictly less "
                f"than {rank}, got {target}"
            )
        if target in used:
            return (
                f"target dimension {target} mapped at least twice (for tile dimensions "
                f"{used[target]} and {tile_dim})"
            )
        used[target] = tile_dim
    return None


def _padding(padding: str | None, element: Scalar) -> str | None:
    if padding in (None, "zero") or element.is_float:
        return None
    return (
        f"padding_value {padding} can only be used with floating point element types, got "
        f"{quote(element)}"
    )


def _partition_view(type_: PartitionView | StridedView) -> str | None:
    tile, view = type_.tile_shape, type_.tensor_view
    rank = len(view.shape)
    problem = _tile_of_view(tile, view)
    if problem is None and len(type_.dim_map) != len(tile):
        problem = (
            f"expected dim_map to map exactly all {len(tile)} dimensions of the tile, got "
            f"{len(type_.dim_map)} mappings"
        )
    return (
        problem
        or _tile_lengths(tile)
        or _dim_map(type_.dim_map, rank)
        or tile_shape_problem(tile, view.element)
        or _padding(type_.padding, view.element)
    )


def _strided_view(type_: StridedView) -> str | None:
    problem = _partition_view(type_)
    if problem is not None:
        return problem
    steps = type_.traversal_strides
    if len(steps) != len(type_.tile_shape):
        return f"expected {len(type_.tile_shape)} traversal strides, got {len(steps)}"
    if any(step <= 0 for step in steps):
        return f"traversal strides must be strictly positive but got [{dims(steps)}]"
    return None


def _gather_scatter_view(type_: GatherScatterView) -> str | None:
    tile, view = type_.tile_shape, type_.tensor_view
    problem = _tile_of_view(tile, view) or _tile_lengths(tile)
    if problem is None and type_.sparse_dim >= len(view.shape):
        problem = (
            "gather dimension is outside of tensor view dimensions, expected strictly less than "
            f"{len(view.shape)}, got {type_.sparse_dim}"
        )
    return (
        problem or tile_shape_problem(tile, view.element) or _padding(type_.padding, view.element)
    )


_CHECKS: dict[type, Callable[[Any], str | None]] = {
    Pointer: _pointer,
    Tile: _tile,
    TensorView: _tensor_view,
    PartitionView: _partition_view,
    StridedView: _strided_view,
    GatherScatterView: _gather_scatter_view,
}

"""Rules of operations that move elements, and of assumptions and globals."""

from __future__ import annotations

from collections.abc import Iterator

from tile_cudatile.attrs import Bounded, DivBy, SameElements, element_count
from tile_cudatile.rules.registry import number_of, rule, tile_of
from tile_cudatile.rules.words import dims
from tile_cudatile.tree import Op
from tile_cudatile.types import F4E2M1FN, Pointer, Scalar, TensorView, Tile


@rule("broadcast")
def broadcast(op: Op) -> Iterator[str]:
    """Only dimensions of extent 1 stretch."""
    source, result = tile_of(op, "source").shape, tile_of(op, "result").shape
    if any(s not in (r, 1) for s, r in zip(source, result, strict=False)):
        yield (
            "expects the shape of source tile to be compatible with that of the result tile, but "
            f"got: {dims(source)} and {dims(result)}"
        )


@rule("reshape")
def reshape(op: Op) -> Iterator[str]:
    """Elements are neither lost nor found."""
    source, result = tile_of(op, "source").shape, tile_of(op, "result").shape
    if element_count(source) != element_count(result):
        yield "expected source tile and result tile to have the same number of elements"


@rule("cat")
def cat(op: Op) -> Iterator[str]:
    """Extents add up along the dimension and match elsewhere."""
    dim = op.attrs["dim"]
    assert isinstance(dim, int)
    lhs, rhs, result = (tile_of(op, n).shape for n in ("lhs", "rhs", "result"))
    if not 0 <= dim < len(lhs):
        yield f"expect dim to be [0, {len(lhs)}), but got: {dim}"
        return
    if lhs[dim] + rhs[dim] != result[dim]:
        yield (
            f"invalid concat at position {dim}, expected: {lhs[dim] + rhs[dim]} but got: "
            f"{result[dim]}"
        )
    for i in range(len(lhs)):
        for name, other in (("rhs", rhs), ("result", result)):
            if i != dim and lhs[i] != other[i]:
                yield (
                    f"expect lhs and {name} shapes to match at non-concat position {i}, expected: "
                    f"{lhs[i]} but got: {other[i]}"
                )


@rule("extract")
def extract(op: Op) -> Iterator[str]:
    """Slices tile the source evenly."""
    source, result = tile_of(op, "source"), tile_of(op, "result")
    if source.element != result.element:
        yield "source and result element type do not match"
    for i, (whole, part) in enumerate(zip(source.shape, result.shape, strict=False)):
        if whole % part:
            yield (
                f"source dimension {i} size ({whole}) must be evenly divisible by result "
                f"dimension {i} size ({part})"
            )
    yield from _index_count(op, len(source.shape))


@rule("insert")
def insert(op: Op) -> Iterator[str]:
    """Slices tile the destination evenly."""
    source, target = tile_of(op, "source"), tile_of(op, "destination")
    if source.element != target.element:
        yield "source and result element type do not match"
    if len(source.shape) != len(target.shape):
        yield "source and result must have the same rank"
    for i, (whole, part) in enumerate(zip(target.shape, source.shape, strict=False)):
        if whole % part:
            yield (
                f"result dimension {i} size ({whole}) must be evenly divisible by source "
                f"dimension {i} size ({part})"
            )
    yield from _index_count(op, len(target.shape))


def _index_count(op: Op, rank: int) -> Iterator[str]:
    indices = op.group("indices")
    assert isinstance(indices, tuple)
    if len(indices) != rank:
        yield f"expected {rank} indices, but got {len(indices)}"


@rule("permute")
def permute(op: Op) -> Iterator[str]:
    """A permutation of the dimensions, rank 2 or more."""
    source, result = tile_of(op, "source").shape, tile_of(op, "result").shape
    permutation = op.attrs["permutation"]
    assert isinstance(permutation, tuple)
    rank = len(source)
    if rank < 2:
        yield f"expects at least rank 2, but got: {rank}"
    if len(permutation) != rank:
        yield (
            f"expect permutation size ({len(permutation)}) to equal the rank of the source ({rank})"
        )
    if len(set(permutation)) != len(permutation):
        yield "expect permutation elements to be unique"
    for i, p in enumerate(permutation):
        if not 0 <= p < rank:  # type: ignore[operator]
            yield f"permutation element at index {i} ({p}) is out of bound [0, {rank})"
            return
    for i, p in enumerate(permutation):
        if result[i] != source[p]:  # type: ignore[index]
            yield (
                f"result shape invalid at index {i}, expected: {source[p]}, but got: "  # type: ignore
                f"{result[i]}"
            )


@rule("iota")
def iota(op: Op) -> Iterator[str]:
    """One dimension, whose numbers the element type holds."""
    tile = tile_of(op, "result")
    if len(tile.shape) != 1:
        yield "expects result type to be 1-d tile"
        return
    element = number_of(op, "result")
    if tile.shape[0] > 1 << element.width:
        yield (
            f"the number of elements {tile.shape[0]} exceeds the maximum value of element type "
            f"'{element}'"
        )


@rule("select")
def select(op: Op) -> Iterator[str]:
    """Four-bit elements cannot be chosen one by one."""
    if tile_of(op, "result").element == F4E2M1FN:
        yield "cannot operate on sub-byte type F4E2M1FN"


@rule("assume")
def assume(op: Op) -> Iterator[str]:
    """What a predicate may be about."""
    yield from _PREDICATES[type(op.attrs["predicate"])](op)


def _div_by(op: Op) -> Iterator[str]:
    predicate = op.attrs["predicate"]
    assert isinstance(predicate, DivBy)
    name = "'cuda_tile.div_by'"
    divisor, every, along = predicate.divisor, predicate.every, predicate.along
    if divisor == 0 or divisor & (divisor - 1):
        yield f"{name} divisor must be a power of 2"
    if (every is None) != (along is None):
        yield f"{name} 'every'/'along' must be used in combination"
    if divisor > 1 << 62:
        yield f"{name} divisor is too large"
    type_ = op.result.type
    if isinstance(type_, TensorView):
        if every is not None:
            yield (
                f"{name} 'every'/'along' cannot be used if the constrained value is a tensor_view"
            )
        return
    if not isinstance(type_, Tile) or _is_float(type_):
        yield f"{name} is valid only for tile of integer/pointer or tensor_view values"
        return
    if every is None or along is None:
        return
    if not type_.shape:
        yield f"{name} 'every'/'along' cannot be used if the constrained value is a 0D tile"
        return
    if not 0 <= along < len(type_.shape):
        yield f"{name} every_dim ({along}) must be >= 0 and < tile rank ({len(type_.shape)})"
        return
    if not 0 <= every <= type_.shape[along]:
        yield (
            f"expected {name} every_dim to be within 0 and the size of the respective dimension "
            f"({type_.shape[along]})"
        )


def _is_float(tile: Tile) -> bool:
    return isinstance(tile.element, Scalar) and tile.element.is_float


def _same_elements(op: Op) -> Iterator[str]:
    predicate = op.attrs["predicate"]
    assert isinstance(predicate, SameElements)
    name = "'cuda_tile.same_elements'"
    type_ = op.result.type
    if not isinstance(type_, Tile) or _is_float(type_):
        yield f"{name} is valid only for tile of integer/pointer values"
        return
    if len(predicate.values) != len(type_.shape):
        yield (
            f"expected number of values in {name} ({len(predicate.values)}) to match rank of "
            f"constrained tile ({len(type_.shape)})"
        )
        return
    for i, (value, extent) in enumerate(zip(predicate.values, type_.shape, strict=True)):
        if not 0 <= value <= extent:
            yield (
                f"expected {name} value {i} to be within 0 and the size of the respective "
                f"dimension ({extent})"
            )


def _bounded(op: Op) -> Iterator[str]:
    predicate = op.attrs["predicate"]
    assert isinstance(predicate, Bounded)
    name = "'cuda_tile.bounded'"
    type_ = op.result.type
    if not isinstance(type_, Tile) or isinstance(type_.element, Pointer) or _is_float(type_):
        yield f"{name} is valid only for tile of integer values"
        return
    width = type_.element.width
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    for which, bound in (("lower", predicate.lb), ("upper", predicate.ub)):
        if bound is not None and not low <= bound <= high:
            yield f"{name} expects {which} bound to be within [{low}, {high}]"
    if predicate.lb is not None and predicate.ub is not None and predicate.lb > predicate.ub:
        yield f"{name} expects lower bound to be less than or equal to upper bound"


_PREDICATES = {DivBy: _div_by, SameElements: _same_elements, Bounded: _bounded}

"""Operations that move elements, constants, and assumptions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_cudatile.attrs import Bounded, Dense, DivBy, SameElements
from tile_cudatile.evaluator.errors import EvaluationError
from tile_cudatile.evaluator.formats import Array, dense_array, element_of, memory_bytes
from tile_cudatile.evaluator.integers import signed, wrap
from tile_cudatile.evaluator.registry import handles
from tile_cudatile.evaluator.views import TensorViewValue
from tile_cudatile.tree import Op
from tile_cudatile.types import Pointer, Tile


def _tile(op: Op) -> Tile:
    type_ = op.result.type
    assert isinstance(type_, Tile)
    return type_


@handles("constant")
def constant(_: Any, op: Op) -> Array:
    """The given elements."""
    value = op.attrs["value"]
    assert isinstance(value, Dense)
    return dense_array(value)


@handles("iota")
def iota(_: Any, op: Op) -> Array:
    """0, 1, 2, ... modulo the width."""
    tile = _tile(op)
    return wrap(np.arange(tile.shape[0], dtype=np.int64), element_of(tile))


@handles("broadcast")
def broadcast(_: Any, op: Op, source: Array) -> Array:
    """Stretches dimensions of extent 1."""
    return np.broadcast_to(source, _tile(op).shape)


@handles("reshape")
def reshape(_: Any, op: Op, source: Array) -> Array:
    """The same elements, row-major."""
    return np.reshape(source, _tile(op).shape)


@handles("permute")
def permute(_: Any, op: Op, source: Array) -> Array:
    """Dimension i of the result is dimension permutation[i] of the source."""
    return np.transpose(source, op.attrs["permutation"])  # type: ignore[arg-type]


@handles("cat")
def cat(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """One tile behind the other along `dim`."""
    return np.concatenate((lhs, rhs), axis=op.attrs["dim"])  # type: ignore[arg-type]


@handles("extract")
def extract(_: Any, op: Op, source: Array, indices: tuple[Array, ...]) -> Array:
    """The slice with the given numbers, one per dimension."""
    return source[_slice(op, source.shape, _tile(op).shape, indices)]


@handles("insert")
def insert(_: Any, op: Op, source: Array, destination: Array, indices: tuple[Array, ...]) -> Array:
    """The destination with one slice replaced."""
    found = np.array(destination)
    found[_slice(op, destination.shape, source.shape, indices)] = source
    return found


def _slice(
    op: Op, whole: tuple[int, ...], part: tuple[int, ...], indices: tuple[Array, ...]
) -> tuple[slice, ...]:
    found: list[slice] = []
    for extent, size, index in zip(whole, part, map(int, indices), strict=True):
        if not 0 <= index < extent // size:
            raise EvaluationError(
                f"'cuda_tile.{op.name}' op slice {index} is outside of {extent // size} slices"
            )
        found.append(slice(index * size, (index + 1) * size))
    return tuple(found)


@handles("select")
def select(_: Any, op: Op, cond: Array, if_true: Array, if_false: Array) -> Array:
    """Elementwise choice."""
    return np.where(cond, if_true, if_false)


@handles("offset")
def offset(_: Any, op: Op, ptr: Array, offset: Array) -> Array:
    """Addresses advanced by signed numbers of elements."""
    pointer = _tile(op).element
    assert isinstance(pointer, Pointer)
    source = op.operands[1]
    steps = signed(offset, element_of(source.type))  # type: ignore[union-attr]
    size = memory_bytes(pointer.pointee)
    reach = ((1 << 63) - 1) // size
    if np.any(steps > reach) or np.any(steps < -reach):
        raise EvaluationError("'cuda_tile.offset' op overflows")
    return ptr + steps * np.int64(size)


@handles("assume")
def assume(_: Any, op: Op, value: Any) -> Any:
    """The value; a false assumption is an error."""
    problem = _CHECKS[type(op.attrs["predicate"])](op, value)
    if problem:
        raise EvaluationError(f"'cuda_tile.assume' op {problem}")
    return value


def _check_div_by(op: Op, value: Any) -> str | None:
    predicate = op.attrs["predicate"]
    assert isinstance(predicate, DivBy)
    divisor = predicate.divisor
    if isinstance(value, TensorViewValue):
        return f"base {value.base} is not divisible by {divisor}" if value.base % divisor else None
    values = np.asarray(value).astype(np.int64)
    step = _step(op)
    if predicate.every is None or predicate.along is None:
        firsts = values
    else:
        along, every = predicate.along, predicate.every
        grouped = np.moveaxis(values, along, -1)
        grouped = grouped.reshape(*grouped.shape[:-1], -1, every)
        if np.any(np.diff(grouped, axis=-1) != step):
            return f"elements along {along} do not rise by {step} in groups of {every}"
        firsts = grouped[..., 0]
    return f"is not divisible by {divisor}" if np.any(firsts % divisor) else None


def _step(op: Op) -> int:
    element = _tile(op).element
    return memory_bytes(element.pointee) if isinstance(element, Pointer) else 1


def _check_same(op: Op, value: Any) -> str | None:
    predicate = op.attrs["predicate"]
    assert isinstance(predicate, SameElements)
    values = np.asarray(value)
    for dim, size in enumerate(predicate.values):
        moved = np.moveaxis(values, dim, -1)
        whole = moved.shape[-1] // size * size
        groups = moved[..., :whole].reshape(*moved.shape[:-1], -1, size)
        if np.any(groups != groups[..., :1]):
            return f"elements along {dim} differ within groups of {size}"
    return None


def _check_bounded(op: Op, value: Any) -> str | None:
    predicate = op.attrs["predicate"]
    assert isinstance(predicate, Bounded)
    values = signed(value, element_of(op.result.type))
    if predicate.lb is not None and np.any(values < predicate.lb):
        return f"is below its bound {predicate.lb}"
    if predicate.ub is not None and np.any(values > predicate.ub):
        return f"is above its bound {predicate.ub}"
    return None


_CHECKS = {DivBy: _check_div_by, SameElements: _check_same, Bounded: _check_bounded}

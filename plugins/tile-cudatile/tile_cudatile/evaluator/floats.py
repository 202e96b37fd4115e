"""Floating-point operations."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from tile_cudatile.evaluator.comparisons import COMPARE
from tile_cudatile.evaluator.formats import Array, bits_of, dtype_of, element_of
from tile_cudatile.evaluator.integers import signed
from tile_cudatile.evaluator.registry import handles
from tile_cudatile.evaluator.rounding import (
    narrow,
    odd,
    round_exact,
    two_product,
    two_sum,
    widen,
)
from tile_cudatile.ops.arith import FTZ
from tile_cudatile.tree import Op
from tile_cudatile.types import F32, F64, Scalar

#: Rounding modes that stand for an approximation; the reference rounds to nearest.
_NEAREST = ("nearest_even", "approx", "full")


def _element(op: Op) -> Scalar:
    return element_of(op.results[0].type)


def flush(values: Array) -> Array:
    """float32 subnormals to zeros of their sign."""
    values = np.asarray(values)
    tiny = np.abs(values) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), values), values)


def _flushes(block: Any, op: Op) -> bool:
    """Whether the operation says so, or the run of all that could (`evaluate`)."""
    if op.attrs.get(FTZ.name):
        return True
    return block.shared.ftz and FTZ in op.spec.attrs and _element(op) == F32


def _flushed(block: Any, op: Op, *operands: Array) -> tuple[Array, ...]:
    return tuple(map(flush, operands)) if _flushes(block, op) else operands


def _finish(block: Any, op: Op, values: Array) -> Array:
    return flush(values) if _flushes(block, op) else values


def _is_double(op: Op) -> bool:
    return _element(op) == F64


# Arithmetic. Each function gives the float64 result and the error, both for narrower formats.


def _add(a: Array, b: Array) -> tuple[Array, Array]:
    return two_sum(a, b)


def _sub(a: Array, b: Array) -> tuple[Array, Array]:
    return two_sum(a, -b)


def _mul(a: Array, b: Array) -> tuple[Array, Array]:
    return a * b, np.zeros(())  # at most 48 bits


def _div(a: Array, b: Array) -> tuple[Array, Array]:
    quotient = a / b
    product, rest = two_product(quotient, b)
    error = ((a - product) - rest) * np.sign(b)
    return quotient, np.where(np.isfinite(error), error, 0.0)


def _root(a: Array) -> tuple[Array, Array]:
    root = np.sqrt(a)
    product, rest = two_product(root, root)
    error = (a - product) - rest
    return root, np.where(np.isfinite(error), error, 0.0)


def _fma(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    return two_sum(a * b, c)


_NATIVE: dict[str, Callable[..., Any]] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "sqrt": np.sqrt,
}
_WITH_ERROR: dict[str, Callable[..., tuple[Array, Array]]] = {
    "addf": _add,
    "subf": _sub,
    "mulf": _mul,
    "divf": _div,
    "sqrt": _root,
    "fma": _fma,
}
_EXACT: dict[str, Callable[..., Fraction]] = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
}


@handles("addf", "subf", "mulf", "divf", "sqrt", "fma")
def arithmetic(block: Any, op: Op, *operands: Array) -> Array:
    """The correctly rounded result in the given rounding mode."""
    mode = str(op.attrs["rounding_mode"])
    operands = _flushed(block, op, *operands)
    element = _element(op)
    if mode in _NEAREST and op.name in _NATIVE:
        return _finish(block, op, _native(op.name, element, operands))
    mode = "nearest_even" if mode in _NEAREST else mode
    if element == F64:
        return _double(op.name, mode, operands)
    value, error = _WITH_ERROR[op.name](*map(widen, operands))
    result = narrow(odd(value, error), element, mode)
    return _finish(block, op, _zero_sign(op.name, mode, result, operands))


def _native(name: str, element: Scalar, operands: tuple[Array, ...]) -> Array:
    """NumPy's own result: rounding twice, through float32, is harmless for 16-bit formats."""
    if element in (F32, F64):
        return _NATIVE[name](*operands)
    wide = _NATIVE[name](*(np.asarray(o).astype(np.float32) for o in operands))
    return wide.astype(dtype_of(element))


def _zero_sign(name: str, mode: str, result: Array, operands: tuple[Array, ...]) -> Array:
    """An exact sum of opposite numbers is -0 when rounding downwards."""
    if mode != "negative_inf" or name not in ("addf", "subf", "fma"):
        return result
    wide = [widen(o) for o in operands]
    if name == "fma":
        first, second = wide[0] * wide[1], wide[2]
    else:
        first, second = wide[0], wide[1] if name == "addf" else -wide[1]
    both_positive = ~np.signbit(first) & ~np.signbit(second)
    exact = first + second == 0  # not a tiny sum that was rounded to zero
    negate = (result == 0) & exact & ~both_positive
    return np.where(negate, -np.abs(result), result).astype(result.dtype)


def _double(name: str, mode: str, operands: tuple[Array, ...]) -> Array:
    """f64 fma, and f64 in directed rounding: number by number, exactly."""
    shape = np.broadcast_shapes(*(np.shape(o) for o in operands))
    flat = [np.broadcast_to(o, shape).ravel() for o in operands]
    found = [_double_one(name, mode, *map(float, row)) for row in zip(*flat, strict=True)]
    return np.array(found, np.float64).reshape(shape)


def _double_one(name: str, mode: str, *row: float) -> float:
    with np.errstate(all="ignore"):
        nearest = _plain(name, row)
    special = not all(map(np.isfinite, row)) or (name == "divf" and row[1] == 0.0)
    if special or (name == "sqrt" and row[0] <= 0.0):
        return nearest
    if name == "sqrt":
        return _root_one(row[0], mode)
    exact = _EXACT[name](*map(Fraction, row))
    if exact == 0:
        return _exact_zero(name, mode, row, nearest)
    return round_exact(exact, F64, mode, negative_zero=False)


def _plain(name: str, row: tuple[float, ...]) -> float:
    doubles = [np.float64(v) for v in row]
    if name == "fma":
        if np.isinf(doubles[2]) and np.all(np.isfinite(doubles[:2])):
            return row[2]  # a product that is too large is still finite
        return float(doubles[0] * doubles[1] + doubles[2])
    return float(_NATIVE[name](*doubles))


def _exact_zero(name: str, mode: str, row: tuple[float, ...], nearest: float) -> float:
    if name in ("mulf", "divf"):
        return nearest
    first = row[0] * row[1] if name == "fma" else row[0]
    second = -row[1] if name == "subf" else row[-1]
    if np.signbit(first) == np.signbit(second):
        return float(np.copysign(0.0, first))
    return -0.0 if mode == "negative_inf" else 0.0


def _root_one(value: float, mode: str) -> float:
    fraction = Fraction(value)
    # Scaled by a power of four so that the integer root has more bits than needed.
    scaled = fraction * Fraction(4) ** 600
    whole = scaled.numerator // scaled.denominator
    root = isqrt(whole)
    sticky = root * root != scaled
    exact = Fraction(2 * root + sticky, 2) / Fraction(2) ** 600
    return round_exact(exact, F64, mode, negative_zero=False)


# Sign and order.


def _sign_bit(values: Array) -> tuple[Array, Any]:
    values = np.asarray(values)
    patterns = bits_of(values, values.dtype.itemsize)
    return patterns, patterns.dtype.type(1 << (8 * values.dtype.itemsize - 1))


@handles("absf")
def absf(_: Any, op: Op, source: Array) -> Array:
    """Clears the sign bit, of NaN too."""
    patterns, sign = _sign_bit(source)
    return (patterns & ~sign).view(np.asarray(source).dtype)


@handles("negf")
def negf(_: Any, op: Op, source: Array) -> Array:
    """Flips the sign bit, of NaN too."""
    patterns, sign = _sign_bit(source)
    return (patterns ^ sign).view(np.asarray(source).dtype)


@handles("maxf", "minf")
def extremum(block: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """The larger or smaller; +0 is above -0; NaN by `propagate_nan`."""
    lhs, rhs = _flushed(block, op, lhs, rhs)
    left, right = widen(lhs), widen(rhs)
    largest = op.name == "maxf"
    ahead = left > right if largest else left < right
    zeros = (left == 0) & (right == 0)
    ahead = np.where(zeros, np.signbit(left) != largest, ahead)
    nan_left, nan_right = np.isnan(left), np.isnan(right)
    found = np.where(ahead, lhs, rhs)
    if op.attrs.get("propagate_nan"):
        found = np.where(nan_left | nan_right, dtype_of(_element(op)).type(np.nan), found)
    else:
        found = np.where(nan_right, lhs, np.where(nan_left, rhs, found))
    return found.astype(dtype_of(_element(op)))


@handles("cmpf")
def cmpf(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """Ordered comparisons are false on NaN, unordered ones true."""
    left, right = widen(lhs), widen(rhs)
    found = COMPARE[str(op.attrs["comparison_predicate"])](left, right)
    nan = np.isnan(left) | np.isnan(right)
    return found | nan if op.attrs["comparison_ordering"] == "unordered" else found & ~nan


# Functions.


def _reciprocal_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "cos": np.cos,
    "cosh": np.cosh,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "rsqrt": _reciprocal_root,
    "fpowf": np.power,
    "atan2": np.arctan2,
    "remf": np.fmod,
}


@handles(*_FUNCTIONS)
def function(block: Any, op: Op, *operands: Array) -> Array:
    """Computed in float64, f64 in extended precision, and rounded once."""
    operands = _flushed(block, op, *operands)
    element = _element(op)
    if element == F64:
        wide = (_quiet(np.asarray(o).astype(np.longdouble)) for o in operands)
        return np.asarray(_FUNCTIONS[op.name](*wide)).astype(np.float64)
    wide = (_quiet(widen(o)) for o in operands)
    return _finish(block, op, narrow(_FUNCTIONS[op.name](*wide), element))


@handles("fpowi")
def fpowi(_: Any, op: Op, source: Array, exponent: Array) -> Array:
    """A whole power; exponents are signed."""
    whole = signed(exponent, element_of(op.operands[1].type))  # type: ignore[union-attr]
    wide = np.longdouble if _is_double(op) else np.float64
    base = widen(source) if wide is np.float64 else np.asarray(source).astype(wide)
    return narrow(np.power(_quiet(base), whole.astype(wide)), _element(op))


def _quiet(numbers: Array) -> Array:
    """Without signalling NaNs, of which some C libraries' functions make NaN even where any number
    gives the same, as to the power of 0. Whether NumPy hands them on depends on the processor.
    """
    return np.where(np.isnan(numbers), np.nan, numbers)

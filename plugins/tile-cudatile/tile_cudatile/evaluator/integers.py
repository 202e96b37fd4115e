"""Integer operations: two's complement, wrapping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tile_cudatile.evaluator.comparisons import COMPARE
from tile_cudatile.evaluator.errors import EvaluationError
from tile_cudatile.evaluator.formats import INTS, UNSIGNED, Array, element_of
from tile_cudatile.evaluator.registry import handles
from tile_cudatile.tree import Op
from tile_cudatile.types import I1, I4, I64, Scalar


def signed(values: Array, element: Scalar) -> Array:
    """Values as signed numbers in int64; a true i1 is -1."""
    wide = np.asarray(values).astype(np.int64)
    return -wide if element == I1 else wide


def unsigned(values: Array, element: Scalar) -> Array:
    """Values as unsigned numbers in uint64."""
    values = np.asarray(values)
    if element in UNSIGNED:
        return values.view(UNSIGNED[element]).astype(np.uint64)
    mask = np.uint64((1 << element.width) - 1)
    return values.astype(np.int64).view(np.uint64) & mask


def wrap(values: Array, element: Scalar) -> Array:
    """int64 or uint64 numbers, modulo the width of `element`, as held."""
    values = np.asarray(values)
    if element == I1:
        return (values & values.dtype.type(1)) != 0
    if element == I4:
        low = (values & values.dtype.type(15)).astype(np.int8)
        return (low ^ np.int8(8)) - np.int8(8)
    return values.astype(INTS[element])


def numbers(values: Array, element: Scalar, signedness: object) -> Array:
    """Values read by signedness, in int64 or uint64."""
    return signed(values, element) if signedness == "signed" else unsigned(values, element)


def exact(values: Array, element: Scalar, signedness: str) -> Array:
    """Values as Python integers."""
    return numbers(values, element, signedness).astype(object)


#: Exact on Python integers, wrapping on arrays of machine integers.
ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
}
#: Overflow attribute -> the readings in which the result must fit.
_CLAIMS = {
    "none": (),
    "no_signed_wrap": ("signed",),
    "no_unsigned_wrap": ("unsigned",),
    "no_wrap": ("signed", "unsigned"),
}


def fits(values: Array, element: Scalar, reading: str) -> bool:
    """Whether Python integers are numbers of `element`, read as "signed" or "unsigned"."""
    width = element.width
    low, high = (0, 1 << width) if reading == "unsigned" else (-(1 << width - 1), 1 << width - 1)
    return all(low <= value < high for value in np.ravel(values))


def check_overflow(
    op: Op,
    element: Scalar,
    compute: Callable[..., Array],
    *operands: Array,
    read_as: Scalar | None = None,
) -> None:
    """Raises if the result of `compute` is no `element` although the operation says that it is.

    Operands are numbers of `read_as`, which is `element` if it is not given.
    """
    for reading in _CLAIMS[str(op.attrs.get("overflow", "none"))]:
        result = compute(*(exact(o, read_as or element, reading) for o in operands))
        if not fits(result, element, reading):
            raise EvaluationError(
                f"'cuda_tile.{op.name}' op overflows ({reading}) although it says "
                f"'{op.attrs['overflow']}'"
            )


@handles("addi", "subi", "muli")
def arithmetic(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """Wrapping arithmetic; a wrong promise not to overflow is an error."""
    element = element_of(op.result.type)
    compute = ARITHMETIC[op.name]
    if op.attrs["overflow"] != "none":
        check_overflow(op, element, compute, lhs, rhs)
    if element in UNSIGNED:
        return compute(lhs, rhs)
    return wrap(compute(signed(lhs, element), signed(rhs, element)), element)


@handles("negi")
def negi(_: Any, op: Op, source: Array) -> Array:
    """0 - x."""
    element = element_of(op.result.type)
    check_overflow(op, element, lambda x: -x, source)
    return wrap(-signed(source, element), element)


@handles("absi")
def absi(_: Any, op: Op, source: Array) -> Array:
    """The magnitude of a signed number, to be read as unsigned."""
    element = element_of(op.result.type)
    return wrap(np.abs(signed(source, element)), element)


@handles("mulhii")
def mulhii(_: Any, op: Op, x: Array, y: Array) -> Array:
    """The high half of the unsigned product."""
    element = element_of(op.result.type)
    left, right = unsigned(x, element), unsigned(y, element)
    if element != I64:
        return wrap((left * right) >> np.uint64(element.width), element)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    lh, ll, rh, rl = left >> half, left & mask, right >> half, right & mask
    middle = lh * rl + (ll * rl >> half)
    other = ll * rh + (middle & mask)
    return wrap(lh * rh + (middle >> half) + (other >> half), element)


@handles("divi")
def divi(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """Division rounded to zero, down or up."""
    element = element_of(op.result.type)
    left, right = _division_operands(op, lhs, rhs)
    if op.attrs["signedness"] == "signed":
        lowest = -(1 << (element.width - 1))
        if np.any((left == lowest) & (right == -1)):
            raise EvaluationError("'cuda_tile.divi' op divides the smallest number by -1")
    quotient = left // right  # rounded down
    if op.attrs["rounding"] != "negative_inf":
        inexact = quotient * right != left
        up = (
            inexact
            if op.attrs["rounding"] == "positive_inf"
            else (inexact & ((left < 0) != (right < 0)))
        )
        quotient = quotient + up.astype(quotient.dtype)
    return wrap(quotient, element)


@handles("remi")
def remi(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """The remainder of a division rounded to zero."""
    left, right = _division_operands(op, lhs, rhs)
    return wrap(np.fmod(left, right), element_of(op.result.type))


def _division_operands(op: Op, lhs: Array, rhs: Array) -> tuple[Array, Array]:
    element = element_of(op.result.type)
    left = numbers(lhs, element, op.attrs["signedness"])
    right = numbers(rhs, element, op.attrs["signedness"])
    if np.any(right == 0):
        raise EvaluationError(f"'cuda_tile.{op.name}' op divides by zero")
    return left, right


@handles("maxi", "mini")
def extremum(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """The larger or smaller by signedness."""
    element = element_of(op.result.type)
    left = numbers(lhs, element, op.attrs["signedness"])
    right = numbers(rhs, element, op.attrs["signedness"])
    return np.where(left >= right if op.name == "maxi" else left <= right, lhs, rhs)


@handles("andi")
def andi(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """Bitwise and."""
    return lhs & rhs


@handles("ori")
def ori(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """Bitwise or."""
    return lhs | rhs


@handles("xori")
def xori(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """Bitwise exclusive or."""
    return lhs ^ rhs


@handles("shli")
def shli(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """Left shift; an amount of the width or more, unspecified in the language, gives 0."""
    element = element_of(op.result.type)
    amount = unsigned(rhs, element)
    if op.attrs["overflow"] != "none":
        shift = np.minimum(amount, np.uint64(element.width)).astype(np.int64).astype(object)
        check_overflow(op, element, lambda x: x * 2**shift, lhs)
    inside = amount < np.uint64(element.width)
    shifted = unsigned(lhs, element) << np.where(inside, amount, np.uint64(0))
    return wrap(np.where(inside, shifted, np.uint64(0)), element)


@handles("shri")
def shri(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """Right shift; an amount of the width or more leaves only copies of the sign, or 0."""
    element = element_of(op.result.type)
    amount = np.minimum(unsigned(rhs, element), np.uint64(element.width))
    if op.attrs["signedness"] == "signed":
        return wrap(
            signed(lhs, element) >> np.minimum(amount, np.uint64(63)).astype(np.int64), element
        )
    shifted = unsigned(lhs, element) >> np.minimum(amount, np.uint64(63))
    return wrap(np.where(amount >= np.uint64(element.width), np.uint64(0), shifted), element)


@handles("cmpi")
def cmpi(_: Any, op: Op, lhs: Array, rhs: Array) -> Array:
    """Comparison by signedness."""
    element = element_of(op.operands[0].type)  # type: ignore[union-attr]
    left = numbers(lhs, element, op.attrs["signedness"])
    right = numbers(rhs, element, op.attrs["signedness"])
    return COMPARE[str(op.attrs["comparison_predicate"])](left, right)

"""Intervals of integers of a fixed width: plain numbers, no MLIR.

A `Range` holds every value that an integer may have, read as signed; one bit is read as 0 or 1.
What may pass the ends of its width wraps around, so then nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """All of lo..hi, both included; lo <= hi."""

    lo: int
    hi: int

    @property
    def is_single(self) -> bool:
        """Whether only one value is possible."""
        return self.lo == self.hi

    def fits(self, lo: int, hi: int) -> bool:
        """Whether all values are in lo..hi."""
        return lo <= self.lo and self.hi <= hi


BIT = Range(0, 1)


def full(width: int) -> Range:
    """Everything that `width` bits hold."""
    return BIT if width == 1 else Range(-(1 << (width - 1)), (1 << (width - 1)) - 1)


def wrapped(lo: int, hi: int, width: int) -> Range:
    """lo..hi if nothing of it wraps around, else everything."""
    room = full(width)
    return Range(lo, hi) if room.lo <= lo and hi <= room.hi else room


def hull(left: Range, right: Range) -> Range:
    """The smallest range that holds both."""
    return Range(min(left.lo, right.lo), max(left.hi, right.hi))


def narrowed(values: Range, lo: int | None, hi: int | None) -> Range:
    """`values` of which those below lo and above hi are ruled out; as it was if none were left."""
    low = values.lo if lo is None else max(values.lo, lo)
    high = values.hi if hi is None else min(values.hi, hi)
    return Range(low, high) if low <= high else values


def add(a: Range, b: Range, width: int) -> Range:
    """a + b."""
    return wrapped(a.lo + b.lo, a.hi + b.hi, width)


def subtract(a: Range, b: Range, width: int) -> Range:
    """a - b."""
    return wrapped(a.lo - b.hi, a.hi - b.lo, width)


def multiply(a: Range, b: Range, width: int) -> Range:
    """a * b."""
    return _corners(a, b, width, lambda x, y: x * y)


def _corners(a: Range, b: Range, width: int, compute: Callable[[int, int], int]) -> Range:
    """A function that is monotonic in each operand."""
    found = [compute(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return wrapped(min(found), max(found), width)


def _toward_zero(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


#: Roundings of signed division.
DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "zero": _toward_zero,
    "down": lambda x, y: x // y,
    "up": lambda x, y: -(-x // y),
}


def divide(a: Range, b: Range, width: int, rounding: str) -> Range:
    """a / b, signed, by a positive number; nothing is known of others."""
    return _corners(a, b, width, DIVISIONS[rounding]) if b.lo > 0 else full(width)


def divide_unsigned(a: Range, b: Range, width: int, rounding: str) -> Range:
    """a / b of numbers read as unsigned."""
    if a.lo >= 0:
        return divide(a, b, width, rounding)
    if b.lo > 1:  # so that the top bit is clear afterwards
        return wrapped(0, DIVISIONS[rounding]((1 << width) - 1, b.lo), width)
    return full(width)


def remainder(a: Range, b: Range, width: int) -> Range:
    """a rem b with the sign of a, by a positive number."""
    if b.lo <= 0:
        return full(width)
    most = b.hi - 1
    return Range(max(a.lo, -most) if a.lo < 0 else 0, min(a.hi, most) if a.hi > 0 else 0)


def remainder_unsigned(a: Range, b: Range, width: int) -> Range:
    """a rem b of numbers read as unsigned."""
    if b.lo <= 0:
        return full(width)
    return remainder(a, b, width) if a.lo >= 0 else Range(0, b.hi - 1)


def shift_left(a: Range, b: Range, width: int) -> Range:
    """a << b."""
    if not b.fits(0, width - 1):
        return full(width)
    return multiply(a, Range(1 << b.lo, 1 << b.hi), width)


def shift_right(a: Range, b: Range, width: int) -> Range:
    """a >> b, the sign copied."""
    if width == 1 or not b.fits(0, width - 1):
        return full(width)
    return _corners(a, b, width, lambda x, y: x >> y)


def shift_right_unsigned(a: Range, b: Range, width: int) -> Range:
    """a >> b, zeros shifted in."""
    if a.lo >= 0 and width > 1:
        return shift_right(a, b, width)
    if width > 1 and b.fits(1, width - 1):
        return Range(0, ((1 << width) - 1) >> b.lo)
    return full(width)


def bit_and(a: Range, b: Range, width: int) -> Range:
    """a & b."""
    if width == 1:
        return Range(a.lo & b.lo, a.hi & b.hi)
    tops = [x.hi for x in (a, b) if x.lo >= 0]
    return Range(0, min(tops)) if tops else full(width)


def bit_or(a: Range, b: Range, width: int) -> Range:
    """a | b."""
    if width == 1:
        return Range(a.lo | b.lo, a.hi | b.hi)
    if a.lo >= 0 and b.lo >= 0:
        return Range(max(a.lo, b.lo), (1 << max(a.hi, b.hi).bit_length()) - 1)
    return full(width)


def bit_xor(a: Range, b: Range, width: int) -> Range:
    """a ^ b."""
    if a.is_single and b.is_single:
        return Range(a.lo ^ b.lo, a.lo ^ b.lo)
    if width > 1 and a.lo >= 0 and b.lo >= 0:
        return Range(0, (1 << max(a.hi, b.hi).bit_length()) - 1)
    return full(width)


def smaller(a: Range, b: Range) -> Range:
    """The signed minimum."""
    return Range(min(a.lo, b.lo), min(a.hi, b.hi))


def larger(a: Range, b: Range) -> Range:
    """The signed maximum."""
    return Range(max(a.lo, b.lo), max(a.hi, b.hi))


def absolute(a: Range, width: int) -> Range:
    """|a|; that of the smallest number does not fit."""
    if a.lo >= 0:
        return a
    least = 0 if a.hi >= 0 else -a.hi
    return wrapped(least, max(-a.lo, a.hi), width)


def signed_of(a: Range, width: int) -> Range:
    """`a` as the signed number it is: a set bit alone is -1."""
    return Range(-a.hi, -a.lo) if width == 1 else a


def unsigned_of(a: Range, width: int) -> Range:
    """`a` as unsigned numbers."""
    if a.lo >= 0:
        return a
    if a.hi < 0:
        return Range(a.lo + (1 << width), a.hi + (1 << width))
    return Range(0, (1 << width) - 1)


#: Comparisons by their name in arith.CmpIPredicate: whether all pairs, and whether none, hold.
_HOLDS: dict[str, Callable[[Range, Range], tuple[bool, bool]]] = {
    "eq": lambda a, b: (a == b and a.is_single, a.hi < b.lo or b.hi < a.lo),
    "lt": lambda a, b: (a.hi < b.lo, a.lo >= b.hi),
    "le": lambda a, b: (a.hi <= b.lo, a.lo > b.hi),
}


def compare(predicate: str, a: Range, b: Range, width: int) -> Range:
    """`a predicate b`, as a bit; predicates are spelt as arith.cmpi does."""
    if predicate == "ne":
        always, never = reversed(_HOLDS["eq"](a, b))
    elif predicate == "eq":
        always, never = _HOLDS["eq"](a, b)
    else:
        read = unsigned_of if predicate[0] == "u" else signed_of
        left, right = read(a, width), read(b, width)
        if predicate[1] == "g":
            left, right = right, left
        always, never = _HOLDS["l" + predicate[2]](left, right)
    return Range(1, 1) if always else Range(0, 0) if never else BIT

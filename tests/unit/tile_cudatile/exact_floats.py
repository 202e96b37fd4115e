"""Floating-point numbers exactly, with fractions: what formats hold and how they are rounded.

Nothing of the package is used: formats are described by their fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

NAN, INF = "nan", "inf"
#: (whether negative, magnitude): a fraction, INF or NAN.
Number = tuple[bool, "Fraction | str"]
NOT_A_NUMBER: Number = (False, NAN)


@dataclass(frozen=True)
class Format:
    """Widths of the fields, the bias, and what the largest exponent means.

    `specials`: "ieee" (infinities and NaN), "nan" (all ones is NaN), "none".
    """

    exponent: int
    mantissa: int
    bias: int
    specials: str = "ieee"
    sign: bool = True
    zero: bool = True  # whether exponent 0 means zero and subnormals
    shift: int = 0  # bits below the mantissa, as it is held

    @property
    def width(self) -> int:
        return self.sign + self.exponent + self.mantissa

    def _fields(self, bits: int) -> tuple[bool, int, int]:
        mantissa = bits & (1 << self.mantissa) - 1
        exponent = bits >> self.mantissa & (1 << self.exponent) - 1
        return bool(self.sign and bits >> self.exponent + self.mantissa & 1), exponent, mantissa

    def decode(self, bits: int) -> Number:
        """What a pattern means."""
        negative, exponent, mantissa = self._fields(bits)
        top, ones = (1 << self.exponent) - 1, (1 << self.mantissa) - 1
        if exponent == top:
            if self.specials == "ieee":
                return negative, NAN if mantissa else INF
            if self.specials == "nan" and mantissa == ones:
                return negative, NAN
        if exponent == 0 and self.zero:
            return negative, Fraction(mantissa) * Fraction(2) ** (1 - self.bias - self.mantissa)
        whole = mantissa | 1 << self.mantissa
        return negative, Fraction(whole) * Fraction(2) ** (exponent - self.bias - self.mantissa)

    def encode(self, number: Number) -> int | str:
        """The pattern of a number that the format holds; NAN for all that are none."""
        negative, magnitude = number
        if magnitude == NAN:
            return NAN
        sign = int(negative) << self.exponent + self.mantissa
        if magnitude == INF:
            return sign | ((1 << self.exponent) - 1) << self.mantissa
        assert isinstance(magnitude, Fraction)
        step = self.step(magnitude) if magnitude else Fraction(1)
        whole = magnitude / step
        assert whole.denominator == 1, "not held exactly"
        low = self.zero and whole < 1 << self.mantissa
        if low:
            return sign | int(whole)
        return sign | self._biased(step) << self.mantissa | int(whole) - (1 << self.mantissa)

    def _biased(self, step: Fraction) -> int:
        top = step * (1 << self.mantissa)
        return top.numerator.bit_length() - top.denominator.bit_length() + self.bias

    @property
    def largest(self) -> Fraction:
        """The largest finite number."""
        top = ((1 << self.exponent) - 1) << self.mantissa
        bits = {"ieee": top - 1, "nan": top | (1 << self.mantissa) - 1, "none": None}[self.specials]
        if bits is None:
            bits = top | (1 << self.mantissa) - 1
        elif self.specials == "nan":
            bits -= 1
        magnitude = self.decode(bits)[1]
        assert isinstance(magnitude, Fraction)
        return magnitude

    @property
    def least_exponent(self) -> int:
        """Of the smallest normal number."""
        return (1 if self.zero else 0) - self.bias

    def round(self, number: Number, mode: str = "nearest_even", saturate: bool = False) -> Number:
        """The number of the format that an exact one becomes."""
        negative, magnitude = number
        if magnitude == NAN:
            return NOT_A_NUMBER if self.specials != "none" else (False, self.largest)
        if not self.sign and negative and magnitude != 0:
            return NOT_A_NUMBER
        if not self.sign:
            negative = False
        if magnitude == INF:
            return self._overflow(negative, saturate, inward=False)
        assert isinstance(magnitude, Fraction)
        if magnitude == 0:
            return negative, magnitude if self.zero else Fraction(2) ** -self.bias
        step = self.step(magnitude)
        whole = _whole(magnitude / step, mode, negative)
        rounded = whole * step
        if not self.zero:
            rounded = max(rounded, Fraction(2) ** -self.bias)
        if rounded > self.largest:
            inward = mode == "zero" or mode == ("positive_inf" if negative else "negative_inf")
            return self._overflow(negative, saturate, inward)
        return negative, rounded

    def step(self, magnitude: Fraction) -> Fraction:
        """The distance to the next number of the format."""
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if Fraction(2) ** exponent > magnitude:
            exponent -= 1
        return Fraction(2) ** (max(exponent, self.least_exponent) - self.mantissa)

    def _overflow(self, negative: bool, saturate: bool, inward: bool) -> Number:
        if saturate or inward or self.specials == "none":
            return negative, self.largest
        return (negative, INF) if self.specials == "ieee" else NOT_A_NUMBER

    def patterns(self) -> range:
        """All patterns."""
        return range(1 << self.width)

    def edges(self) -> list[int]:
        """Patterns at which something happens: zeros, ends of ranges, infinities, NaN."""
        if self.width <= 8:
            return list(self.patterns())
        top, one = ((1 << self.exponent) - 1) << self.mantissa, self.bias << self.mantissa
        half, last = 1 << self.mantissa - 1, (1 << self.mantissa) - 1
        positive = [
            0, 1, last, last + 1, last + 2, one, one + 1, one - 1, one + half, one | last,
            top - 1, top - 2, top, top | half, top | half | 5, top | 1,
            (self.bias + self.mantissa) << self.mantissa, (self.bias + 31 << self.mantissa) | half,
            (self.bias + 7 << self.mantissa) | last, one // 2,
        ]  # fmt: skip
        valid = [p for p in positive if p < 1 << self.exponent + self.mantissa]
        return [*valid, *(p | 1 << self.exponent + self.mantissa for p in valid if self.sign)]


def _whole(scaled: Fraction, mode: str, negative: bool) -> int:
    down, rest = divmod(scaled, 1)
    if mode == "nearest_even":
        return down + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and down % 2 == 1))
    if mode == "nearest_away":
        return down + (rest >= Fraction(1, 2))
    up = {"zero": False, "positive_inf": not negative, "negative_inf": negative}[mode]
    return down + (up and rest > 0)


FORMATS = {
    "f16": Format(5, 10, 15),
    "bf16": Format(8, 7, 127),
    "f32": Format(8, 23, 127),
    "f64": Format(11, 52, 1023),
    "tf32": Format(8, 10, 127, shift=13),
    "f8E4M3FN": Format(4, 3, 7, "nan"),
    "f8E5M2": Format(5, 2, 15),
    "f8E8M0FNU": Format(8, 0, 127, "nan", sign=False, zero=False),
    "f4E2M1FN": Format(2, 1, 1, "none"),
    "fnv8E5M3FNU": Format(5, 3, 15, "nan", sign=False),
}


# Arithmetic. Each gives the exact result, to be rounded.


def signed(number: Number) -> Fraction:
    """A finite number."""
    assert isinstance(number[1], Fraction)
    return -number[1] if number[0] else number[1]


def of(value: Fraction, zero_negative: bool = False) -> Number:
    """A fraction; a zero has the given sign."""
    return (value < 0 if value else zero_negative), abs(value)


def add(a: Number, b: Number, mode: str = "nearest_even") -> Number:
    """An exact sum of opposites is -0 only when rounding downwards."""
    if NAN in (a[1], b[1]):
        return NOT_A_NUMBER
    if INF in (a[1], b[1]):
        if a[1] == b[1] and a[0] != b[0]:
            return NOT_A_NUMBER
        return a if a[1] == INF else b
    same = a[1] == 0 == b[1] and a[0] == b[0]
    return of(signed(a) + signed(b), a[0] if same else mode == "negative_inf")


def minus(a: Number) -> Number:
    return not a[0], a[1]


def mul(a: Number, b: Number) -> Number:
    negative = a[0] != b[0]
    if NAN in (a[1], b[1]) or (INF in (a[1], b[1]) and 0 in (a[1], b[1])):
        return NOT_A_NUMBER
    if INF in (a[1], b[1]):
        return negative, INF
    return negative, a[1] * b[1]  # type: ignore[operator]


def div(a: Number, b: Number) -> Number:
    negative = a[0] != b[0]
    if NAN in (a[1], b[1]) or a[1] == b[1] == INF or a[1] == b[1] == 0:
        return NOT_A_NUMBER
    if a[1] == INF or b[1] == 0:
        return negative, INF
    if b[1] == INF:
        return negative, Fraction(0)
    return negative, a[1] / b[1]  # type: ignore[operator]


def rem(a: Number, b: Number) -> Number:
    """Truncated; the sign is the dividend's."""
    if NAN in (a[1], b[1]) or a[1] == INF or b[1] == 0:
        return NOT_A_NUMBER
    if b[1] == INF:
        return a
    return a[0], a[1] % b[1]  # type: ignore[operator]


def sqrt(a: Number, bits: int = 160) -> Number:
    """The root, so far that it rounds as the exact one does."""
    if a[1] == NAN or (a[0] and a[1] != 0):
        return NOT_A_NUMBER
    if a[1] in (INF, 0):
        return a
    scaled = a[1] * Fraction(4) ** (bits + 1100)  # type: ignore[operator]
    whole = scaled.numerator // scaled.denominator
    root = isqrt(whole)
    sticky = root * root != scaled
    return False, Fraction(2 * root + sticky, 2) / Fraction(2) ** (bits + 1100)


def compare(a: Number, b: Number) -> int | None:
    """-1, 0, 1; None if unordered. Zeros are equal."""
    if NAN in (a[1], b[1]):
        return None

    def key(n: Number) -> tuple[int, Fraction]:
        if n[1] == INF:
            return (-1 if n[0] else 1), Fraction(0)
        return 0, signed(n)

    return (key(a) > key(b)) - (key(a) < key(b))

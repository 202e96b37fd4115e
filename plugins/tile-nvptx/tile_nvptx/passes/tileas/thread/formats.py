"""Float formats of a byte or less, as codes (OCP, "Microscaling Formats"; PTX ISA, "cvt")."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class SmallFloat:
    """A format: `mantissa` stored bits, exponent `bias`, code of the `largest` number.

    `overflow` is the code of what lies beyond: infinity, or NaN, or the largest number if there is
    neither; `sign` is the bit of the sign, 0 without one. `ptx` is what `cvt` calls pairs since
    sm_89; "" where targets lack it.
    """

    ptx: str
    mantissa: int
    bias: int
    largest: int
    overflow: int
    nan: int | None
    width: int = 8
    sign: int = 0x80

    @property
    def magnitude_mask(self) -> int:
        """The bits of a code that are not the sign."""
        return ((1 << self.width) - 1) & ~self.sign

    @property
    def has_infinity(self) -> bool:
        """Whether `overflow` is infinity."""
        return self.overflow not in (self.nan, self.largest)

    @property
    def is_power(self) -> bool:
        """Whether all numbers are powers of two: there is no zero."""
        return self.mantissa == 0

    def decode(self, code: int) -> float:
        """The number that a code stands for."""
        sign = -1.0 if code & self.sign else 1.0
        rest = code & self.magnitude_mask
        if rest > self.largest:
            infinite = self.has_infinity and rest == self.overflow
            return sign * math.inf if infinite else math.nan
        if self.is_power:
            return math.ldexp(1.0, rest - self.bias)
        exponent, fraction = divmod(rest, 1 << self.mantissa)
        if exponent:
            fraction += 1 << self.mantissa
        return sign * math.ldexp(fraction, max(exponent, 1) - self.bias - self.mantissa)

    @cache  # noqa: B019 - there are five formats
    def numbers(self) -> tuple[float, ...]:
        """The finite numbers that are not negative, in the order of their codes."""
        return tuple(self.decode(code) for code in range(self.largest + 1))

    def encode(self, number: float) -> int:
        """The code of the number of this format that is nearest, as printed ones are rounded;
        `overflow` beyond the largest.
        """
        sign = self.sign if math.copysign(1.0, number) < 0 else 0
        if math.isnan(number):
            return self.largest if self.nan is None else sign | self.nan
        known, magnitude = self.numbers(), abs(number)
        if magnitude > known[-1] * (1 + 2.0**-20):
            return sign | self.overflow
        above = bisect_left(known, magnitude)
        near = min((above, max(above - 1, 0)), key=lambda code: abs(known[code] - magnitude))
        return sign | near


FORMATS = {
    "f8E4M3FN": SmallFloat("e4m3", 3, 7, 0x7E, 0x7F, 0x7F),
    "f8E5M2": SmallFloat("e5m2", 2, 15, 0x7B, 0x7C, 0x7F),
    "f8E8M0FNU": SmallFloat("", 0, 127, 0xFE, 0xFF, 0xFF, sign=0),
    "f8E5M3FNU": SmallFloat("", 3, 15, 0xFE, 0xFF, 0xFF, sign=0),
    "f4E2M1FN": SmallFloat("", 1, 1, 0x7, 0x7, None, width=4, sign=0x8),
}

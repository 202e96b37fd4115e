"""Floating-point literals of LLVM IR text: from the syntax of LLVM 23+ to that of LLVM 22.

The newer printer writes `0.1` for the float nearest to 0.1, raw bits as `f0x3DCCCCCD`, and
`+inf`, `-qnan`, `+nan(0x1)` (quiet, payload 1), `+snan(0x1)`. The older parser wants exact values:
hexadecimal bits of a double for `float` and `double`, `0xH....` for half, `0xR....` for bfloat.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache


@dataclass(frozen=True)
class FloatFormat:
    """An IEEE-754 style binary format."""

    exponent_bits: int
    mantissa_bits: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def exponent_mask(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def sign_bit(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def quiet_bit(self) -> int:
        return 1 << (self.mantissa_bits - 1)


FORMATS = {
    "half": FloatFormat(5, 10),
    "bfloat": FloatFormat(8, 7),
    "float": FloatFormat(8, 23),
    "double": FloatFormat(11, 52),
}


def nearest_bits(value: Fraction, kind: FloatFormat) -> int:
    """The bits of `value` (not negative) rounded to nearest even; overflow gives infinity."""
    if value == 0:
        return 0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    exponent = max(exponent, 1 - kind.bias)  # below this, numbers are subnormal
    scaled = value / Fraction(2) ** (exponent - kind.mantissa_bits)
    mantissa = round(scaled)  # to even on ties
    # A carry out of the mantissa runs into the exponent field, which is what rounding up means.
    implicit = 1 << kind.mantissa_bits
    if mantissa < implicit:
        return mantissa
    return min(
        ((exponent + kind.bias) << kind.mantissa_bits) + (mantissa - implicit), kind.exponent_mask
    )


def literal_bits(literal: str, kind: FloatFormat) -> int:
    """The bits that `literal`, in the newer syntax, has as a value of `kind`."""
    if literal.startswith("f0x"):
        return int(literal[3:], 16)
    sign = kind.sign_bit if literal[0] == "-" else 0
    word, _, payload = literal.lstrip("+-").partition("(")
    extra = int(payload.rstrip(")"), 16) if payload else 0
    match word:
        case "inf":
            return sign | kind.exponent_mask
        case "qnan" | "nan":
            return sign | kind.exponent_mask | kind.quiet_bit | extra
        case "snan":
            return sign | kind.exponent_mask | extra
    return sign | nearest_bits(Fraction(word), kind)


def widen(bits: int, kind: FloatFormat) -> int:
    """The bits of the double with the value (or NaN payload) of `bits`."""
    double = FORMATS["double"]
    sign = double.sign_bit if bits & kind.sign_bit else 0
    exponent = (bits & kind.exponent_mask) >> kind.mantissa_bits
    mantissa = bits & ((1 << kind.mantissa_bits) - 1)
    shift = double.mantissa_bits - kind.mantissa_bits
    if bits & kind.exponent_mask == kind.exponent_mask:
        return sign | double.exponent_mask | mantissa << shift
    if exponent:
        return (
            sign
            | (exponent - kind.bias + double.bias) << double.mantissa_bits
            | (mantissa << shift)
        )
    scale = Fraction(2) ** (1 - kind.bias - kind.mantissa_bits)
    return sign | nearest_bits(mantissa * scale, double)


@lru_cache(maxsize=4096)
def legacy_literal(literal: str, type_name: str) -> str:
    """`literal` of type `type_name` ("half", "bfloat", "float", "double") as LLVM 22 reads it."""
    kind = FORMATS[type_name]
    bits = literal_bits(literal, kind)
    if type_name == "half":
        return f"0xH{bits:04X}"
    if type_name == "bfloat":
        return f"0xR{bits:04X}"
    return f"0x{bits if type_name == 'double' else widen(bits, kind):016X}"

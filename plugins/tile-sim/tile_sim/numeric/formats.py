"""Floating formats by their fields, and rounding into them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Format:
    """A binary format of sign, `exponent` and `mantissa` bits.

    `largest` is the greatest finite value; `infinity` and `nan` are the patterns of +inf and NaN,
    None where the format has none; `signed` False means no sign bit.
    """

    name: str
    exponent: int
    mantissa: int
    largest: float
    infinity: int | None
    nan: int | None
    signed: bool = True

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def bits(self) -> int:
        return self.exponent + self.mantissa + self.signed

    @property
    def smallest_exponent(self) -> int:
        """Of a normal number."""
        return 1 - self.bias


F16 = Format("f16", 5, 10, 65504.0, 0x7C00, 0x7FFF)
BF16 = Format("bf16", 8, 7, float.fromhex("0x1.fep127"), 0x7F80, 0x7FFF)
TF32 = Format("tf32", 8, 10, float.fromhex("0x1.ffcp127"), 0x3FC00, 0x3FFFF)
E4M3 = Format("e4m3", 4, 3, 448.0, None, 0x7F)
E5M2 = Format("e5m2", 5, 2, 57344.0, 0x7C, 0x7F)
E2M3 = Format("e2m3", 2, 3, 7.5, None, None)
E3M2 = Format("e3m2", 3, 2, 28.0, None, None)
E2M1 = Format("e2m1", 2, 1, 6.0, None, None)
UE4M3 = Format("ue4m3", 4, 3, 448.0, None, 0x7F, signed=False)
FORMATS = {f.name: f for f in (F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1, UE4M3)}


def round_to(x: Array, fmt: Format, mode: str) -> Array:
    """binary64 values rounded to the precision of `fmt`, its exponent range unbounded above.

    Modes: rn (ties to even), rna (ties away), rz, rm, rp. Sticky (round-to-odd) inputs are safe.
    """
    _, exponent = np.frexp(x)
    # frexp gives 0.5 <= m < 1, so the leading bit has weight exponent - 1.
    lead = np.maximum(exponent - 1, fmt.smallest_exponent)
    unit = lead - fmt.mantissa
    scaled = np.ldexp(x, -unit)
    rounded = _ROUND[mode](scaled)
    return np.where(np.isfinite(x), np.copysign(np.ldexp(rounded, unit), x), x)


def _away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


_ROUND = {"rn": np.rint, "rna": _away, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}


def encode(x: Array, fmt: Format, mode: str = "rn", saturate: bool = False) -> Array:
    """binary64 to the patterns of `fmt`, as uint32.

    Overflow gives infinity (or the largest value where the mode or `saturate` says so); formats
    without infinity saturate, and NaN becomes their NaN, or the largest value where they have none.
    """
    value = round_to(x, fmt, mode)
    over = np.abs(value) > fmt.largest
    stay = saturate | (fmt.infinity is None) | _stays_finite(x, mode)
    clipped = np.where(over & stay, np.copysign(fmt.largest, x), value)
    infinite = (over & ~stay) & ~np.isnan(x)
    if saturate or fmt.infinity is None:
        clipped = np.where(np.isinf(x), np.copysign(fmt.largest, x), clipped)
        infinite = np.zeros(np.shape(x), bool)
    else:
        infinite = infinite | np.isinf(x)
    pattern = _pattern(np.where(infinite | np.isnan(x), 0.0, clipped), fmt)
    if fmt.infinity is not None:
        pattern = np.where(infinite, np.uint32(fmt.infinity), pattern)
    sign_bit = np.uint32(1 << (fmt.bits - 1)) if fmt.signed else np.uint32(0)
    pattern = np.where(np.signbit(x), pattern | sign_bit, pattern)
    nan = fmt.nan if fmt.nan is not None else int(_pattern(np.array(fmt.largest), fmt))
    return np.where(np.isnan(x), np.uint32(nan), pattern)


def _stays_finite(x: Array, mode: str) -> Array | bool:
    """Directed modes that round an overflow back to the largest value (infinities stay)."""
    if mode in ("rn", "rna"):
        return False
    finite = np.isfinite(x)
    if mode == "rz":
        return finite
    return finite & (np.signbit(x) if mode == "rp" else ~np.signbit(x))


def _pattern(value: Array, fmt: Format) -> Array:
    """The magnitude bits of values that are exactly in the format."""
    magnitude = np.abs(value)
    _, exponent = np.frexp(magnitude)
    lead = np.maximum(exponent - 1, fmt.smallest_exponent)
    # frexp gives zero the exponent 0.
    lead = np.where(magnitude == 0, fmt.smallest_exponent, lead)
    fraction = np.ldexp(magnitude, fmt.mantissa - lead).astype(np.int64)
    # A normal number has its leading bit set, which adds one to the exponent field.
    field = (lead - fmt.smallest_exponent).astype(np.int64) << fmt.mantissa
    return (field + fraction).astype(np.uint32)


def decode_table(fmt: Format) -> Array:
    """The value of every pattern of a format of at most 8 bits, binary32."""
    return decode(np.arange(1 << fmt.bits, dtype=np.uint32), fmt).astype(np.float32)


def decode(pattern: Array, fmt: Format) -> Array:
    """Patterns (uint32) to binary64 values."""
    raw = np.asarray(pattern, np.int64)
    magnitude = raw & ((1 << (fmt.exponent + fmt.mantissa)) - 1)
    field = magnitude >> fmt.mantissa
    fraction = magnitude & ((1 << fmt.mantissa) - 1)
    hidden = np.where(field > 0, 1 << fmt.mantissa, 0)
    exponent = np.maximum(field, 1) - fmt.bias - fmt.mantissa
    value = np.ldexp((fraction + hidden).astype(np.float64), exponent)
    if fmt.infinity is not None:
        top = fmt.infinity >> fmt.mantissa
        value = np.where(field == top, np.where(fraction == 0, np.inf, np.nan), value)
    elif fmt.nan is not None:
        value = np.where(magnitude == fmt.nan, np.nan, value)
    if fmt.signed:
        value = np.where(raw >> (fmt.bits - 1) & 1, -value, value)
    return value


def bf16_to_f32(bits: Array) -> Array:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def f32_to_bf16(x: Array) -> Array:
    """Nearest even; NaN becomes 0x7fff."""
    bits = x.view(np.uint32)
    lower = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + lower) >> np.uint32(16)).astype(np.uint16)
    nan = x != x
    return np.where(nan, np.uint16(0x7FFF), rounded) if nan.any() else rounded

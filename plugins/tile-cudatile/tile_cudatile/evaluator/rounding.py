"""Rounding float64 results to narrower formats, and the exact pieces that need it.

A result is computed in float64 together with the sign of its error. *Rounding to odd* puts that
sign into the last bit, after which one more rounding, to any format with at least two bits less,
gives the correctly rounded result (Boldo and Melquiond, "Emulation of FMA and correctly rounded
sums", 2008).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tile_cudatile.evaluator.formats import FLOATS, Array, FloatFormat
from tile_cudatile.types import F8E5M3FNU, F8E8M0FNU, F16, F32, F64, TF32, Scalar

_SPLITTER = float(2**27 + 1)


def odd(value: Array, error: Array) -> Array:
    """`value` (float64, nearest to `value + error`) rounded to odd instead."""
    bits = np.asarray(value).view(np.int64)
    up = np.nextafter(value, np.copysign(np.inf, error))
    inexact = (error != 0) & np.isfinite(value)
    return np.where(inexact & (bits & 1 == 0), up, value)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """`a + b` in float64 and its exact error."""
    total = a + b
    rest = total - a
    error = (a - (total - rest)) + (b - rest)
    return total, np.where(np.isfinite(total), error, 0.0)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """`a * b` in float64 and its exact error (no overflow, no underflow)."""
    product = a * b
    ah, bh = _high(a), _high(b)
    al, bl = a - ah, b - bh
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    return product, np.where(np.isfinite(product), error, 0.0)


def _high(a: Array) -> Array:
    scaled = _SPLITTER * a
    return scaled - (scaled - a)


def narrow(
    value: Array, element: Scalar, mode: str = "nearest_even", saturate: bool = False
) -> Array:
    """float64 `value` in the format of `element`.

    Numbers too large become infinite; NaN where the format has no infinity, or the largest
    number if there is no NaN either or with `saturate` (which also stops infinities).
    """
    value = np.asarray(value, np.float64)
    spec = FLOATS[element]
    if element == F64:
        return value
    if mode == "nearest_even" and element in (F32, F16) and not saturate:
        return value.astype(spec.dtype)
    exact = np.abs(value)
    scale = _scale(exact, spec)
    rounded = np.ldexp(_round(np.ldexp(exact, -scale), value, mode), scale)
    return _finish(rounded, value, element, mode, saturate)


def _scale(magnitude: Array, spec: FloatFormat) -> Array:
    """Exponent of the last place of each number in the format."""
    _, exponent = np.frexp(magnitude)
    return np.maximum(exponent - 1, spec.min_exponent) - (spec.precision - 1)


def _round(scaled: Array, value: Array, mode: str) -> Array:
    """Magnitudes to whole numbers."""
    if mode == "nearest_even":
        return np.rint(scaled)
    if mode == "nearest_away":
        return np.floor(scaled + 0.5)
    down, up = np.floor(scaled), np.ceil(scaled)
    if mode == "zero":
        return down
    outward = value > 0 if mode == "positive_inf" else value < 0
    return np.where(outward, up, down)


def _finish(rounded: Array, value: Array, element: Scalar, mode: str, saturate: bool) -> Array:
    spec = FLOATS[element]
    too_large = rounded > spec.largest
    if saturate or not (spec.has_inf or spec.has_nan):
        rounded = np.where(too_large, spec.largest, rounded)
        if not spec.has_nan:  # as `cvt` does
            rounded = np.where(np.isnan(value), spec.largest, rounded)
            value = np.where(np.isnan(value), 1.0, value)
    else:
        towards_zero = {
            "zero": np.ones_like(value, np.bool_),
            "positive_inf": value < 0,
            "negative_inf": value > 0,
        }.get(mode, np.zeros_like(value, np.bool_))
        largest = np.where(towards_zero & np.isfinite(value), spec.largest, np.inf)
        rounded = np.where(too_large, largest, rounded)
        if not spec.has_inf:
            rounded = np.where(np.isinf(rounded), np.nan, rounded)
    signed = np.copysign(rounded, value)
    if not spec.signed:
        signed = _unsigned(signed, value, element)
    if element in (TF32, F32, F8E5M3FNU):
        return signed.astype(np.float32)
    # Exactly representable in float32, hence converted exactly.
    return signed.astype(np.float32).astype(spec.dtype)


def _unsigned(signed: Array, value: Array, element: Scalar) -> Array:
    """Formats without sign: negative numbers have no representation."""
    if element == F8E8M0FNU:
        # No zero either: everything below the smallest power is the smallest power.
        small = np.where(np.abs(signed) < 2.0**-127, 2.0**-127, signed)
        return np.where(value < 0, np.nan, np.abs(small))
    return np.where(value < 0, np.nan, np.abs(signed))


def widen(values: Array) -> Array:
    """Values of any format as float64."""
    values = np.asarray(values)
    if values.dtype.kind == "f" and values.dtype.itemsize in (2, 4, 8):
        return values.astype(np.float64)
    return values.astype(np.float32).astype(np.float64)


def round_exact(value: Fraction, element: Scalar, mode: str, negative_zero: bool) -> float:
    """One exact number in the format of `element`, as a Python float."""
    if value == 0:
        return -0.0 if negative_zero else 0.0
    spec = FLOATS[element]
    magnitude, sign = abs(value), -1.0 if value < 0 else 1.0
    exponent = _floor_log2(magnitude)
    scale = max(exponent, spec.min_exponent) - (spec.precision - 1)
    scaled = magnitude / Fraction(2) ** scale
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    up = {
        "nearest_even": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "zero": False,
        "positive_inf": rest > 0 and value > 0,
        "negative_inf": rest > 0 and value < 0,
    }[mode]
    rounded = Fraction(whole + up) * Fraction(2) ** scale
    if rounded > Fraction(spec.largest):
        inward = (
            mode == "zero"
            or (mode == "positive_inf" and value < 0)
            or (mode == "negative_inf" and value > 0)
        )
        return sign * (spec.largest if inward else float("inf"))
    return sign * float(rounded)


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1

"""Arrays by seed: the same bytes wherever and with whatever NumPy they are made.

A value is a function of its index and the seed (splitmix64), exactly representable in its type, so
that no rounding of a library takes part. `small` gives integers from -4 to 4: products of those are
exact in every order of summation, so that results of tensor cores can be compared bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: Types by name, with the NumPy type that holds their bits.
BITS = {
    "f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "e4m3": "u1", "e5m2": "u1",
    "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "i1", "u64": "<u8", "u32": "<u4", "u16": "<u2",
    "u8": "u1",
}  # fmt: skip
HOW = ("small", "unit", "zeros")
_BLOCK = 1 << 22  # values that are made; longer arrays repeat them


def make_array(kind: str, count: int, how: str, seed: int) -> np.ndarray:
    """`count` values of a type, as the NumPy array that holds their bits.

    `unit`: multiples of 1/8 (8-bit types) or 1/128 in (-1, 1); integers from -100 to 100.
    """
    if how == "zeros":
        return np.zeros(count, BITS[kind])
    made = min(count, _BLOCK)
    random = _hashed(made, seed)
    if how == "small":
        values = (random % np.uint64(9)).astype(np.int64) - 4
    elif kind in ("e4m3", "e5m2"):
        values = ((random % np.uint64(7)).astype(np.int64) - 3) / 4
    elif kind[0] in "fb":
        values = ((random % np.uint64(255)).astype(np.int64) - 127) / 128
    else:
        values = (random % np.uint64(201)).astype(np.int64) - 100
    if kind[0] == "u" and kind != "u1":
        values = np.abs(values)
    return np.resize(encode(values, kind), count)


def _hashed(count: int, seed: int) -> np.ndarray:
    """splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def encode(values: np.ndarray, kind: str) -> np.ndarray:
    """The bits of values that the type has exactly."""
    if kind == "bf16":
        return (values.astype("<f4").view("<u4") >> np.uint32(16)).astype("<u2")
    if kind in ("e4m3", "e5m2"):
        table = decode(np.arange(128, dtype=np.uint8), kind)
        order = np.argsort(table[np.isfinite(table)])
        found = order[np.searchsorted(table[order], np.abs(values))]
        return (found + 128 * (values < 0)).astype(np.uint8)
    return values.astype(BITS[kind])


def decode(bits: np.ndarray, kind: str) -> np.ndarray:
    """Values of bits, as float64 (integers as they are)."""
    if kind == "bf16":
        return (bits.astype("<u4") << np.uint32(16)).view("<f4").astype(np.float64)
    if kind in ("e4m3", "e5m2"):
        return _small_floats(bits, 3 if kind == "e4m3" else 2)
    return bits.astype(np.float64) if kind[0] == "f" else bits


def _small_floats(bits: np.ndarray, mantissa: int) -> np.ndarray:
    """8-bit floats (OCP OFP8): e4m3 has no infinity, e5m2 is as IEEE 754."""
    word = bits.astype(np.int64)
    exponent, fraction = (word & 127) >> mantissa, word & ((1 << mantissa) - 1)
    bias = (1 << (6 - mantissa)) - 1
    scale = np.exp2(np.maximum(exponent, 1) - bias - mantissa)
    value = (fraction + np.where(exponent > 0, 1 << mantissa, 0)) * scale
    if mantissa == 3:
        value = np.where(word & 127 == 127, np.nan, value)
    else:
        value = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), value)
    return np.where(word & 128, -value, value)


def array_of(spec: Mapping[str, Any], files: Mapping[str, np.ndarray]) -> np.ndarray:
    """The bytes' array that a manifest's entry asks for: of a file, or by seed."""
    if "file" in spec:
        return files[spec["file"]]
    return make_array(spec["kind"], int(spec["count"]), spec["how"], int(spec["seed"]))

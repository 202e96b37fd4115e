"""Fundamental types of PTX and the NumPy types that hold them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Type:
    """`kind` is `u`, `s`, `f`, `b` or `p`; `dtype` reads a register of `bits` as this type.

    Formats without a NumPy type (bf16, tf32, fp8, packed pairs) are read as unsigned integers.
    """

    name: str
    kind: str
    bits: int
    dtype: np.dtype

    @property
    def bytes(self) -> int:
        return max(self.bits // 8, 1)


def _table() -> dict[str, Type]:
    types: dict[str, Type] = {"pred": Type("pred", "p", 1, np.dtype(bool))}
    for bits in (8, 16, 32, 64):
        for kind, dtype in (("u", "u"), ("s", "i"), ("b", "u")):
            name = f"{kind}{bits}"
            types[name] = Type(name, kind, bits, np.dtype(f"{dtype}{bits // 8}"))
    for bits in (16, 32, 64):
        types[f"f{bits}"] = Type(f"f{bits}", "f", bits, np.dtype(f"f{bits // 8}"))
    for name, bits in _OTHER.items():
        types[name] = Type(name, "f", bits, np.dtype(f"u{max(bits, 8) // 8}"))
    types["b128"] = Type("b128", "b", 128, np.dtype(("<u8", (2,))))
    return types


# Alternate and packed floating formats: bits of the register that holds one.
_OTHER = {
    "bf16": 16,
    "f16x2": 32,
    "bf16x2": 32,
    "f32x2": 64,
    "tf32": 32,
    "e4m3": 8,
    "e5m2": 8,
    "e2m3": 8,
    "e3m2": 8,
    "e2m1": 8,
    "ue8m0": 8,
    "ue4m3": 8,
    "e4m3x2": 16,
    "e5m2x2": 16,
    "e2m3x2": 16,
    "e3m2x2": 16,
    "e2m1x2": 8,
    "ue8m0x2": 16,
    "e4m3x4": 32,
    "e5m2x4": 32,
    "e2m3x4": 32,
    "e3m2x4": 32,
    "e2m1x4": 16,
    "u16x2": 32,
    "s16x2": 32,
    "b16x2": 32,
    "s2f6x2": 16,
}

TYPES = _table()
# What a register of so many bits is stored as.
STORAGE = {1: np.dtype(bool), 8: np.dtype("u1"), 16: np.dtype("u2"), 32: np.dtype("u4")}
STORAGE[64] = np.dtype("u8")

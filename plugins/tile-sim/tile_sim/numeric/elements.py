"""Elements of matrix operands: how each type is held in registers or memory, as binary64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile_sim.numeric import formats
from tile_sim.numeric.formats import bf16_to_f32

Array = np.ndarray


@dataclass(frozen=True)
class Element:
    """`bits` of storage; `decode` turns unsigned integers of that storage into binary64."""

    name: str
    bits: int
    decode: Callable[[Array], Array]


def _table(fmt: formats.Format, shift: int = 0) -> Callable[[Array], Array]:
    """By lookup; `shift` places the pattern inside a byte."""
    values = formats.decode_table(fmt).astype(np.float64)
    mask = (1 << fmt.bits) - 1
    return lambda raw: values[(raw >> np.uint8(shift)) & np.uint8(mask)]


def _tf32(raw: Array) -> Array:
    return (raw & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def _signed4(raw: Array) -> Array:
    return ((raw.astype(np.int8) ^ 8) - 8).astype(np.float64)


ELEMENTS = {
    e.name: e
    for e in (
        Element("f16", 16, lambda raw: raw.view(np.float16).astype(np.float64)),
        Element("bf16", 16, lambda raw: bf16_to_f32(raw).astype(np.float64)),
        Element("tf32", 32, _tf32),
        Element("f32", 32, lambda raw: raw.view(np.float32).astype(np.float64)),
        Element("f64", 64, lambda raw: raw.view(np.float64)),
        Element("e4m3", 8, _table(formats.E4M3)),
        Element("e5m2", 8, _table(formats.E5M2)),
        # In byte containers 6-bit types sit in the low bits, 4-bit ones in bits 2 to 5.
        Element("e2m3", 8, _table(formats.E2M3)),
        Element("e3m2", 8, _table(formats.E3M2)),
        Element("e2m1", 8, _table(formats.E2M1, 2)),
        Element("e2m1.packed", 4, _table(formats.E2M1)),
        Element("u8", 8, lambda raw: raw.astype(np.float64)),
        Element("s8", 8, lambda raw: raw.view(np.int8).astype(np.float64)),
        Element("u4", 4, lambda raw: raw.astype(np.float64)),
        Element("s4", 4, _signed4),
        Element("b1", 1, lambda raw: raw.astype(np.float64)),
        Element("s32", 32, lambda raw: raw.view(np.int32).astype(np.float64)),
    )
}


def unpack(raw: Array, bits: int) -> Array:
    """The last axis, in words or bytes, as elements of `bits`, lowest first."""
    raw = np.ascontiguousarray(raw)
    if bits >= 8:
        return raw.view(f"<u{bits // 8}")
    data = raw.view(np.uint8)
    if bits == 4:
        pair = np.stack([data & np.uint8(15), data >> np.uint8(4)], axis=-1)
        return pair.reshape(*data.shape[:-1], -1)
    return np.unpackbits(data, axis=-1, bitorder="little")


def unpack_fields(packed: Array, bits: int) -> Array:
    """The last axis, bytes, as fields of 4 or 6 bits in a byte each, lowest first."""
    flat = np.unpackbits(packed, axis=-1, bitorder="little")
    fields = flat.reshape(*packed.shape[:-1], -1, bits)
    return (fields << np.arange(bits, dtype=np.uint8)).sum(axis=-1, dtype=np.uint8)


def scale_values(raw: Array, name: str) -> Array:
    """Scale factors (bytes) to binary64."""
    if name == "ue8m0":
        return np.where(raw == 255, np.nan, np.ldexp(1.0, raw.astype(np.int64) - 127))
    return formats.decode(raw & np.uint8(0x7F), formats.UE4M3)


# --- results ------------------------------------------------------------------------------------


def to_f32(x: Array) -> Array:
    out = x.astype(np.float32)
    nan = out != out
    if nan.any():
        out = np.where(nan, np.array(0x7FFFFFFF, np.uint32).view(np.float32), out)
    return out


def to_f16(x: Array) -> Array:
    out = x.astype(np.float16)
    nan = out != out
    if nan.any():
        out = np.where(nan, np.array(0x7FFF, np.uint16).view(np.float16), out)
    return out


def to_s32(x: Array, saturate: bool) -> Array:
    """Exact integers to 32 bits, wrapping or clamping."""
    wide = x.astype(np.int64)
    if saturate:
        wide = np.clip(wide, -(2**31), 2**31 - 1)
    return wide.astype(np.int32)

"""Number formats: how elements are held while evaluating, and how they lie in memory.

| element | held as |
|---|---|
| i1 | `bool` |
| i4 | `int8`, sign-extended |
| i8 .. i64 | `int8` .. `int64`; unsigned operations view them as unsigned |
| f16, f32, f64 | NumPy's own |
| bf16, f8E4M3FN, f8E5M2, f8E8M0FNU, f4E2M1FN | `ml_dtypes` |
| tf32, fnv8E5M3FNU | `float32` that holds a value of the format |
| pointers | `int64` addresses |

In memory i1 takes a byte, tf32 four, and two f4E2M1FN share a byte, the first in the low half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tile_cudatile.attrs import Dense, Float, Integer
from tile_cudatile.types import (
    BF16,
    F4E2M1FN,
    F8E4M3FN,
    F8E5M2,
    F8E5M3FNU,
    F8E8M0FNU,
    F16,
    F32,
    F64,
    I1,
    I4,
    I8,
    I16,
    I32,
    I64,
    TF32,
    Pointer,
    Scalar,
    Tile,
    Type,
)

Array = NDArray[Any]


@dataclass(frozen=True)
class FloatFormat:
    """A floating-point format.

    `precision` counts significant bits with the hidden one; finite numbers are multiples of
    2**(`min_exponent` - precision + 1), at most `largest`.
    """

    dtype: np.dtype[Any]
    precision: int
    min_exponent: int
    largest: float
    has_inf: bool = True
    has_nan: bool = True
    signed: bool = True


FLOATS: dict[Scalar, FloatFormat] = {
    F16: FloatFormat(np.dtype(np.float16), 11, -14, 65504.0),
    BF16: FloatFormat(np.dtype(ml_dtypes.bfloat16), 8, -126, float(2**128 - 2**120)),
    F32: FloatFormat(np.dtype(np.float32), 24, -126, float(2**128 - 2**104)),
    F64: FloatFormat(np.dtype(np.float64), 53, -1022, float(np.finfo(np.float64).max)),
    TF32: FloatFormat(np.dtype(np.float32), 11, -126, float(2**128 - 2**117)),
    F8E4M3FN: FloatFormat(np.dtype(ml_dtypes.float8_e4m3fn), 4, -6, 448.0, has_inf=False),
    F8E5M2: FloatFormat(np.dtype(ml_dtypes.float8_e5m2), 3, -14, 57344.0),
    F8E8M0FNU: FloatFormat(
        np.dtype(ml_dtypes.float8_e8m0fnu), 1, -127, 2.0**127, has_inf=False, signed=False
    ),
    F4E2M1FN: FloatFormat(
        np.dtype(ml_dtypes.float4_e2m1fn), 2, 0, 6.0, has_inf=False, has_nan=False
    ),
    F8E5M3FNU: FloatFormat(np.dtype(np.float32), 4, -14, 114688.0, has_inf=False, signed=False),
}

INTS: dict[Scalar, np.dtype[Any]] = {
    I1: np.dtype(np.bool_),
    I4: np.dtype(np.int8),
    I8: np.dtype(np.int8),
    I16: np.dtype(np.int16),
    I32: np.dtype(np.int32),
    I64: np.dtype(np.int64),
}
UNSIGNED: dict[Scalar, np.dtype[Any]] = {
    I8: np.dtype(np.uint8),
    I16: np.dtype(np.uint16),
    I32: np.dtype(np.uint32),
    I64: np.dtype(np.uint64),
}
_BITS = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


def dtype_of(element: Scalar | Pointer) -> np.dtype[Any]:
    """The NumPy type in which elements are held."""
    if isinstance(element, Pointer):
        return np.dtype(np.int64)
    return FLOATS[element].dtype if element.is_float else INTS[element]


def memory_bytes(element: Scalar) -> int:
    """Bytes between neighbours in memory (f4E2M1FN, two to a byte, has none)."""
    if element == F4E2M1FN:
        raise TypeError("f4E2M1FN elements share bytes")
    return 4 if element == TF32 else max(element.width // 8, 1)


def bits_of(values: Array, size: int) -> Array:
    """The bit patterns of values that take `size` bytes."""
    return np.ascontiguousarray(values).reshape(np.shape(values)).view(_BITS[size])


def decode(raw: Array, element: Scalar) -> Array:
    """Values from memory cells: an array whose last dimension is the bytes of one element."""
    if element == I1:
        return raw[..., 0] != 0
    if element == I4:
        return decode_i4(raw[..., 0])
    if element == F8E5M3FNU:
        return decode_e5m3(raw[..., 0])
    if element == F4E2M1FN:
        return (raw[..., 0] & 15).view(ml_dtypes.float4_e2m1fn)
    dtype = dtype_of(element)
    return np.ascontiguousarray(raw).view(dtype)[..., 0]


def encode(values: Array, element: Scalar) -> Array:
    """Memory cells of values: the inverse of `decode`."""
    values = np.asarray(values)
    if element == F8E5M3FNU:
        return encode_e5m3(values)[..., None]
    if element == I4:
        return (values.astype(np.uint8) & 15)[..., None]
    contiguous = np.ascontiguousarray(values).reshape(values.shape)
    if element == I1:
        return contiguous.astype(np.uint8)[..., None]
    return contiguous[..., None].view(np.uint8)


def decode_i4(cells: Array) -> Array:
    """Sign-extends the low four bits."""
    low = cells.astype(np.int8) & 15
    return (low ^ 8) - np.int8(8)


def decode_e5m3(cells: Array) -> Array:
    """fnv8E5M3FNU patterns as float32: no sign, bias 15, all ones is NaN."""
    bits = cells.astype(np.int32)
    exponent, mantissa = bits >> 3, bits & 7
    normal = np.ldexp((8 + mantissa).astype(np.float32), exponent - 18)
    subnormal = np.ldexp(mantissa.astype(np.float32), -17)
    found = np.where(exponent == 0, subnormal, normal)
    return np.where(bits == 255, np.float32(np.nan), found).astype(np.float32)


_E5M3 = decode_e5m3(np.arange(256, dtype=np.uint8))


def encode_e5m3(values: Array) -> Array:
    """The patterns of float32 values that the format holds exactly."""
    found = np.searchsorted(_E5M3[:255], values).astype(np.uint8)
    return np.where(np.isnan(values), np.uint8(255), found)


def dense_array(value: Dense) -> Array:
    """The elements of a constant, in the shape of its tile (splats are broadcast, read-only)."""
    element = value.type.element
    assert isinstance(element, Scalar)
    shape = value.type.shape
    raw = np.frombuffer(value.data, np.uint8)
    if element == I1:
        if value.is_splat:
            return np.broadcast_to(np.bool_(raw[0] & 1), shape)
        count = int(np.prod(shape, dtype=np.int64))
        return np.unpackbits(raw, count=count, bitorder="little").astype(np.bool_).reshape(shape)
    cells = raw.reshape(-1, (element.width + 7) // 8)
    values = _tf32(cells) if element == TF32 else decode(cells, element)
    return np.broadcast_to(values[0], shape) if value.is_splat else values.reshape(shape)


def _tf32(cells: Array) -> Array:
    """19-bit patterns (1 sign, 8 exponent, 10 mantissa bits) as float32."""
    wide = cells.astype(np.uint32)
    bits = wide[:, 0] | wide[:, 1] << 8 | wide[:, 2] << 16
    return (bits << 13).view(np.float32)


def scalar_value(value: Integer | Float) -> Array:
    """A typed number as a value of rank 0."""
    if isinstance(value, Integer):
        return np.asarray(value.value).astype(INTS[value.type])
    data = value.bits.to_bytes((value.type.width + 7) // 8, "little")
    return np.asarray(dense_array(Dense(Tile((), value.type), data)))


def element_of(type_: Type) -> Scalar:
    """The number type of a tile; raises for tiles of pointers and anything else."""
    if isinstance(type_, Tile) and isinstance(type_.element, Scalar):
        return type_.element
    raise TypeError(f"expected a tile of numbers, not {type_}")

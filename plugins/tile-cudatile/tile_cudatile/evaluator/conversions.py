"""Conversions between number formats, and matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tile_cudatile.evaluator.formats import (
    Array,
    bits_of,
    decode_e5m3,
    dtype_of,
    element_of,
    encode,
    encode_e5m3,
)
from tile_cudatile.evaluator.integers import check_overflow, numbers, signed, unsigned, wrap
from tile_cudatile.evaluator.registry import handles
from tile_cudatile.evaluator.rounding import narrow, odd, widen
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import (
    BF16,
    F4E2M1FN,
    F8E5M3FNU,
    F16,
    F32,
    F64,
    I1,
    I4,
    TF32,
    Scalar,
)

if TYPE_CHECKING:
    from tile_cudatile.evaluator.machine import Running

_WIDE = (F16, BF16, F32, F64, TF32)


def _source(op: Op) -> Scalar:
    source = op.operands[0]
    assert isinstance(source, Value)
    return element_of(source.type)


@handles("exti")
def exti(_: Any, op: Op, source: Array) -> Array:
    """Sign or zero extension."""
    return wrap(numbers(source, _source(op), op.attrs["signedness"]), element_of(op.result.type))


@handles("trunci")
def trunci(_: Any, op: Op, source: Array) -> Array:
    """The low bits; a wrong promise that the others say nothing is an error."""
    element = element_of(op.result.type)
    check_overflow(op, element, lambda x: x, source, read_as=_source(op))
    return wrap(signed(source, _source(op)), element)


@handles("ftof")
def ftof(_: Any, op: Op, source: Array) -> Array:
    """Conversion to nearest; formats of eight bits and less saturate at their largest number."""
    target = element_of(op.result.type)
    mode = str(op.attrs["rounding_mode"])
    return narrow(widen(source), target, mode, saturate=target not in _WIDE)


@handles("itof")
def itof(_: Any, op: Op, source: Array) -> Array:
    """The nearest number; 64-bit integers are rounded once only."""
    target = element_of(op.result.type)
    value = numbers(source, _source(op), op.attrs["signedness"])
    wide = value.astype(np.float64)
    if target == F64:
        return wide
    # Beyond 2**53 the float64 may be rounded already: pass on to which side.
    inside = np.abs(wide) < 2.0**63 if value.dtype.kind == "i" else wide < 2.0**64
    back = np.where(inside, wide, 0).astype(value.dtype)
    error = np.where(inside, np.where(value > back, 1.0, np.where(value < back, -1.0, 0.0)), -1.0)
    error = np.where(np.abs(wide) <= 2.0**53, 0.0, error)
    return narrow(odd(wide, error), target)


@handles("ftoi")
def ftoi(_: Any, op: Op, source: Array) -> Array:
    """Towards zero; out of range saturates, NaN gives 0, as the conversion instructions do.

    A truth value says whether the number is anything but zero, as `tileiras` compiles it.
    """
    target = element_of(op.result.type)
    if target == I1:
        return widen(source) != 0
    value = np.trunc(np.nan_to_num(widen(source), nan=0.0, posinf=np.inf, neginf=-np.inf))
    width = target.width
    if op.attrs["signedness"] == "signed":
        low, high = -(1 << width - 1), (1 << width - 1) - 1
    else:
        low, high = 0, (1 << width) - 1
    kind = np.int64 if op.attrs["signedness"] == "signed" else np.uint64
    inside = (value > float(low)) & (value < float(high))
    whole = np.where(inside, value, 0.0).astype(kind)
    limited = np.where(value >= float(high), kind(high), whole)
    return wrap(np.where(value <= float(low), kind(low), limited), target)


@handles("bitcast")
def bitcast(_: Any, op: Op, source: Array) -> Array:
    """The same bits in another format of the same width."""
    before, after = _source(op), element_of(op.result.type)
    source = np.asarray(source)
    if before == F8E5M3FNU:
        source = encode_e5m3(source)
    if after == F8E5M3FNU:
        return decode_e5m3(bits_of(source, 1))
    if I1 in (before, after) or {before, after} == {TF32}:
        return source
    if I4 in (before, after):
        return _bitcast_4(source, after)
    return bits_of(source, source.dtype.itemsize).view(dtype_of(after))


def _bitcast_4(source: Array, after: Scalar) -> Array:
    patterns = bits_of(source, 1) & np.uint8(15)
    if after == F4E2M1FN:
        return patterns.view(dtype_of(after))
    return wrap(patterns.astype(np.int64), after)


@handles("pack")
def pack(_: Any, op: Op, source: Array) -> Array:
    """All bytes of a tile, as they would lie in memory; 4-bit elements two to a byte."""
    element = _source(op)
    if element.width == 4:
        low = bits_of(source, 1) & np.uint8(15)
        return (low[0::2] | low[1::2] << 4).view(np.int8)
    if element == I1:
        return np.packbits(source, bitorder="little").view(np.int8)
    return encode(source, element).reshape(-1).view(np.int8)


@handles("unpack")
def unpack(_: Any, op: Op, source: Array) -> Array:
    """The inverse of `pack`."""
    element = element_of(op.result.type)
    raw = np.ascontiguousarray(source).view(np.uint8)
    if element.width == 4:
        nibbles = np.stack([raw & np.uint8(15), raw >> 4], axis=-1).reshape(-1)
        if element == F4E2M1FN:
            return nibbles.view(dtype_of(element))
        return wrap(nibbles.astype(np.int64), element)
    if element == I1:
        return np.unpackbits(raw, bitorder="little").astype(np.bool_)
    if element == F8E5M3FNU:
        return decode_e5m3(raw)
    return raw.view(dtype_of(element))


@handles("int_to_ptr", "ptr_to_int", "ptr_to_ptr")
def reinterpret(_: Any, op: Op, source: Array) -> Array:
    """Addresses are 64-bit integers."""
    return source


@handles("mmaf")
def mmaf(run: Running, op: Op, lhs: Array, rhs: Array, acc: Array) -> Array:
    """acc + lhs @ rhs in float64 (f64 in extended precision), rounded once.

    With a seed, every sum is rounded, in a random order.
    """
    target = element_of(op.result.type)
    if run.shared.shuffled:
        return _summed(run, widen(lhs), widen(rhs), acc, target)
    if target == F64:
        wide = [np.asarray(o).astype(np.longdouble) for o in (lhs, rhs, acc)]
        return (wide[0] @ wide[1] + wide[2]).astype(np.float64)
    return narrow(widen(lhs) @ widen(rhs) + widen(acc), target)


def _summed(run: Running, left: Array, right: Array, acc: Array, target: Scalar) -> Array:
    found = acc
    for k in run.order(left.shape[-1]):
        product = left[..., :, k, None] * right[..., None, k, :]
        found = narrow(widen(found) + product, target)
    return found


@handles("mmaf_scaled")
def mmaf_scaled(
    run: Running, op: Op, lhs: Array, rhs: Array, acc: Array, lhs_scale: Array, rhs_scale: Array
) -> Array:
    """As `mmaf`, blocks of elements along K multiplied by their scales."""
    block = lhs.shape[-1] // lhs_scale.shape[-1]
    left = widen(lhs) * np.repeat(widen(lhs_scale), block, axis=-1)
    right = widen(rhs) * np.repeat(widen(rhs_scale), block, axis=-2)
    if run.shared.shuffled:
        return _summed(run, left, right, acc, element_of(op.result.type))
    return narrow(left @ right + widen(acc), element_of(op.result.type))


@handles("mmai")
def mmai(_: Any, op: Op, lhs: Array, rhs: Array, acc: Array) -> Array:
    """acc + lhs @ rhs, exact, modulo 2**32."""
    source = _source(op)
    operands = []
    for values, name in ((lhs, "signedness_lhs"), (rhs, "signedness_rhs")):
        read = signed if op.attrs[name] == "signed" else unsigned
        operands.append(read(values, source).astype(np.float64))
    # Products of bytes: float64 sums are exact for any K that a tile can have.
    product = (operands[0] @ operands[1]).astype(np.int64)
    return (product + np.asarray(acc).astype(np.int64)).astype(np.int32)

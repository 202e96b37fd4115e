"""binary16 and bfloat16 arithmetic, alone and in pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.isa.common import B32, halves
from tile_sim.isa.floating import extreme, with_xorsign
from tile_sim.machine.group import Group
from tile_sim.numeric.formats import bf16_to_f32, f32_to_bf16
from tile_sim.numeric.rounding import canonical, sticky_fma
from tile_sim.program.decode import Decode, Exec
from tile_sim.program.types import TYPES

Array = np.ndarray
_NAMES = "f16 f16x2 bf16 bf16x2"
_TINY16 = np.float32(2.0**-14)


def read_f16(bits: Array) -> Array:
    return bits.view(np.float16).astype(np.float32)


def write_f16(x: Array) -> Array:
    """binary32 or binary64 (exact or sticky) to binary16 patterns."""
    return canonical(x.astype(np.float16)).view(np.uint16)


def write_bf16(x: Array) -> Array:
    """As `write_f16`; binary64 goes through a sticky binary32."""
    if x.dtype == np.float64:
        near = x.astype(np.float32)
        wide = near.astype(np.float64)
        bits = near.view(np.int32)
        # Round to odd on the way, so that the second rounding sees all bits.
        even = (bits & 1) == 0
        step = np.where(np.abs(x) > np.abs(wide), 1, -1)
        move = even & (wide != x) & np.isfinite(near)
        near = np.where(move, bits + step, bits).astype(np.int32).view(np.float32)
        return f32_to_bf16(near)
    return f32_to_bf16(x)


class Kind:
    """How elements of a format are read (to binary32) and written."""

    def __init__(self, bfloat: bool, ftz: bool = False) -> None:
        self.bfloat = bfloat
        self.ftz = ftz

    def read(self, bits: Array) -> Array:
        if self.bfloat:
            return bf16_to_f32(bits)
        x = read_f16(bits)
        return _flush16(x) if self.ftz else x

    def write(self, x: Array) -> Array:
        if self.bfloat:
            return write_bf16(x)
        bits = write_f16(x)
        if self.ftz:
            small = (bits & np.uint16(0x7C00)) == 0
            bits = np.where(small, bits & np.uint16(0x8000), bits)
        return bits


def _flush16(x: Array) -> Array:
    return np.where(np.abs(x) < _TINY16, np.copysign(np.float32(0), x), x)


def _elementwise(cx: Decode, count: int, fn: Callable[..., Array], ftz: bool) -> Exec:
    """`fn` on binary32 values of the elements; its result is rounded to the format."""
    type_ = cx.type(_NAMES)
    cx.done(count + 1)
    kind = Kind(type_.name.startswith("bf"), ftz)
    width = B32 if type_.bits == 32 else TYPES["b16"]
    slot = cx.slot(0, width)
    sources = [cx.src(i + 1, width) for i in range(count)]

    def execute(g: Group) -> None:
        values = [kind.read(halves(g, get(g), "<u2")) for get in sources]
        result = np.ascontiguousarray(kind.write(fn(*values)))
        g.put(slot, result.view(width.dtype))

    return execute


def _saturate(x: Array) -> Array:
    return np.where(x != x, x.dtype.type(0), np.clip(x, 0, 1)) + x.dtype.type(0)


def _arithmetic(cx: Decode, count: int, fn: Callable[..., Array]) -> Exec:
    cx.flag("rn")
    ftz, sat, relu = cx.flag("ftz"), cx.flag("sat"), cx.flag("relu")
    out_of_bounds = cx.flag("oob")
    if out_of_bounds:
        cx.fail("fma.oob is not supported")
    run = fn
    if sat:
        run = lambda *xs: _saturate(fn(*xs))  # noqa: E731
    elif relu:
        # relu clamps negatives to 0 and keeps NaN.
        run = lambda *xs: _relu(fn(*xs))  # noqa: E731
    return _elementwise(cx, count, run, ftz)


def _relu(x: Array) -> Array:
    return np.where(x < 0, x.dtype.type(0), np.where(x == 0, x.dtype.type(0), x))


def add(cx: Decode) -> Exec:
    return _arithmetic(cx, 2, _sum)


def _sum(a: Array, b: Array) -> Array:
    """bfloat16 has the exponents of binary32, whose sum may round: add in binary64."""
    return a.astype(np.float64) + b


def sub(cx: Decode) -> Exec:
    return _arithmetic(cx, 2, lambda a, b: _sum(a, -b))


def mul(cx: Decode) -> Exec:
    return _arithmetic(cx, 2, lambda a, b: a.astype(np.float64) * b)


def fma(cx: Decode) -> Exec:
    return _arithmetic(
        cx, 3, lambda a, b, c: sticky_fma(a.astype(np.float64), b, c.astype(np.float64))
    )


def absolute(cx: Decode) -> Exec:
    return _sign_bits(cx, lambda bits: bits & np.uint16(0x7FFF))


def negate(cx: Decode) -> Exec:
    return _sign_bits(cx, lambda bits: bits ^ np.uint16(0x8000))


def _sign_bits(cx: Decode, fn: Callable[[Array], Array]) -> Exec:
    ftz = cx.flag("ftz")
    type_ = cx.type(_NAMES)
    cx.done(2)
    width = B32 if type_.bits == 32 else TYPES["b16"]
    slot, a = cx.slot(0, width), cx.src(1, width)
    flushing = ftz and not type_.name.startswith("bf")

    def execute(g: Group) -> None:
        bits = fn(halves(g, a(g), "<u2"))
        if flushing:
            bits = np.where((bits & np.uint16(0x7C00)) == 0, bits & np.uint16(0x8000), bits)
        g.put(slot, np.ascontiguousarray(bits).view(width.dtype))

    return execute


def minmax(cx: Decode) -> Exec:
    ftz, nan = cx.flag("ftz"), cx.flag("NaN")
    xorsign = cx.flag("xorsign") and cx.flag("abs")
    fn = extreme(cx.ins.op, nan)
    if xorsign:
        fn = with_xorsign(fn)
    count = len(cx.operands) - 1
    if count == 3:
        return _elementwise(cx, 3, lambda a, b, c: fn(fn(a, b), c), ftz)
    return _elementwise(cx, 2, fn, ftz)

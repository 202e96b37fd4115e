"""Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.isa.common import B32, binary, packed, ternary, unary
from tile_sim.isa.float_dispatch import (
    float_abs,
    float_add,
    float_div,
    float_minmax,
    float_mul,
    float_neg,
    float_sub,
)
from tile_sim.program.decode import Decode, Exec, instruction
from tile_sim.program.types import TYPES, Type

Array = np.ndarray
_INTEGERS = "u16 u32 u64 s16 s32 s64"
_PACKED = {"u16x2": "<u2", "s16x2": "<i2"}
_WIDER = {16: 32, 32: 64}


def _is_float(cx: Decode) -> bool:
    """The last modifier names a floating type: the float families take over."""
    return bool(cx.mods) and (cx.mods[-1].startswith("f") or cx.mods[-1].startswith("bf"))


def saturating(fn: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """The s32 result of an operation done in 64 bits, clamped."""

    def run(a: Array, b: Array) -> Array:
        wide = fn(a.astype(np.int64), b.astype(np.int64))
        return np.clip(wide, -(2**31), 2**31 - 1).astype(np.int32)

    return run


def _add_or_sub(cx: Decode, fn: Callable[[Array, Array], Array]) -> Exec:
    if cx.mods and cx.mods[-1] in _PACKED:
        name = cx.mods.pop()
        cx.done(3)
        return packed(cx, B32, _PACKED[name], 2, fn)
    sat = cx.flag("sat")
    type_ = cx.type(_INTEGERS)
    cx.done(3)
    if sat:
        if type_.name != "s32":
            cx.fail(".sat needs .s32")
        fn = saturating(fn)
    return binary(cx, type_, fn)


@instruction("add")
def add(cx: Decode) -> Exec:
    return float_add(cx) if _is_float(cx) else _add_or_sub(cx, np.add)


@instruction("sub")
def sub(cx: Decode) -> Exec:
    return float_sub(cx) if _is_float(cx) else _add_or_sub(cx, np.subtract)


def widen(type_: Type) -> Type:
    return TYPES[f"{type_.kind}{_WIDER[type_.bits]}"]


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of a product; 64-bit operands in four partial products."""
    if a.dtype.itemsize < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(8 * a.dtype.itemsize)).astype(a.dtype)
    low32, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = a.view(np.uint64), b.view(np.uint64)
    x0, x1, y0, y1 = x & low32, x >> shift, y & low32, y >> shift
    middle = x1 * y0 + (x0 * y0 >> shift)
    cross = x0 * y1 + (middle & low32)
    high = x1 * y1 + (middle >> shift) + (cross >> shift)
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
    return high.view(a.dtype)


def _product(part: str, type_: Type) -> Callable[[Array, Array], Array]:
    if part == "lo":
        return np.multiply
    if part == "hi":
        return multiply_high
    wide = widen(type_).dtype
    return lambda a, b: np.multiply(a, b, dtype=wide)


@instruction("mul")
def mul(cx: Decode) -> Exec:
    if _is_float(cx):
        return float_mul(cx)
    part = cx.one_of("lo", "hi", "wide")
    type_ = cx.type(_INTEGERS if part != "wide" else "u16 u32 s16 s32")
    cx.done(3)
    result = widen(type_) if part == "wide" else type_
    slot, a, b = cx.slot(0, result), cx.src(1, type_), cx.src(2, type_)
    fn = _product(part, type_)
    return lambda g: g.put(slot, fn(a(g), b(g)))


@instruction("mad")
def mad(cx: Decode) -> Exec:
    if _is_float(cx):
        from tile_sim.isa.float_dispatch import float_fma

        return float_fma(cx)
    part = cx.one_of("lo", "hi", "wide")
    sat = cx.flag("sat")
    type_ = cx.type(_INTEGERS if part != "wide" else "u16 u32 s16 s32")
    cx.done(4)
    result = widen(type_) if part == "wide" else type_
    slot, a, b, c = cx.slot(0, result), cx.src(1, type_), cx.src(2, type_), cx.src(3, result)
    fn, plus = _product(part, type_), saturating(np.add) if sat else np.add
    if sat and (part != "hi" or type_.name != "s32"):
        cx.fail(".sat needs .hi.s32")
    return lambda g: g.put(slot, plus(fn(a(g), b(g)), c(g)))


def _low24(a: Array) -> Array:
    """The low 24 bits, as a 64-bit value with their sign."""
    wide = a.astype(np.int64) & 0xFFFFFF
    return (wide ^ 0x800000) - 0x800000 if a.dtype.kind == "i" else wide


@instruction("mul24", "mad24")
def mul24(cx: Decode) -> Exec:
    part = cx.one_of("lo", "hi")
    sat = cx.flag("sat")
    type_ = cx.type("u32 s32")
    with_add = cx.ins.op == "mad24"
    cx.done(4 if with_add else 3)
    shift, dtype = (16 if part == "hi" else 0), type_.dtype
    plus = saturating(np.add) if sat else np.add

    def fn(a: Array, b: Array, *c: Array) -> Array:
        product = (_low24(a) * _low24(b) >> shift).astype(dtype)
        return plus(product, c[0]) if c else product

    return ternary(cx, type_, fn) if with_add else binary(cx, type_, fn)


def divide(a: Array, b: Array) -> Array:
    """Quotient towards zero; division by zero gives all ones, as the hardware does."""
    zero = b == 0
    if a.dtype.kind == "u":
        quotient = a // b
    else:
        quotient = (a - np.fmod(a, b)) // b
        quotient = np.where(b == -1, -a, quotient)
    return np.where(zero, a.dtype.type(-1) if a.dtype.kind == "i" else ~a.dtype.type(0), quotient)


def remainder(a: Array, b: Array) -> Array:
    """The remainder with the sign of the dividend; of division by zero, the dividend."""
    return np.where(b == 0, a, np.where(b == ~a.dtype.type(0), _zero_rem(a, b), np.fmod(a, b)))


def _zero_rem(a: Array, b: Array) -> Array:
    """The remainder by all ones: 0 for -1; for the largest unsigned, 0 only for itself."""
    return np.zeros_like(a) if a.dtype.kind == "i" else np.where(a == b, a.dtype.type(0), a)


@instruction("div")
def div(cx: Decode) -> Exec:
    if _is_float(cx):
        return float_div(cx)
    type_ = cx.type(_INTEGERS)
    cx.done(3)
    return binary(cx, type_, divide)


@instruction("rem")
def rem(cx: Decode) -> Exec:
    type_ = cx.type(_INTEGERS)
    cx.done(3)
    return binary(cx, type_, remainder)


@instruction("abs")
def absolute(cx: Decode) -> Exec:
    if _is_float(cx):
        return float_abs(cx)
    type_ = cx.type("s16 s32 s64")
    cx.done(2)
    return unary(cx, type_, type_, np.abs)


@instruction("neg")
def negate(cx: Decode) -> Exec:
    if _is_float(cx):
        return float_neg(cx)
    type_ = cx.type("s16 s32 s64")
    cx.done(2)
    return unary(cx, type_, type_, np.negative)


@instruction("min", "max")
def minmax(cx: Decode) -> Exec:
    if _is_float(cx):
        return float_minmax(cx)
    fn = np.minimum if cx.ins.op == "min" else np.maximum
    relu = cx.flag("relu")
    run = (lambda a, b: np.maximum(fn(a, b), a.dtype.type(0))) if relu else fn
    if cx.mods and cx.mods[-1] in _PACKED:
        name = cx.mods.pop()
        cx.done(3)
        return packed(cx, B32, _PACKED[name], 2, run)
    type_ = cx.type(_INTEGERS)
    cx.done(3)
    return binary(cx, type_, run)


@instruction("sad")
def sad(cx: Decode) -> Exec:
    type_ = cx.type(_INTEGERS)
    cx.done(4)
    return ternary(cx, type_, lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b)))


@instruction("dp4a", "dp2a")
def dot_product(cx: Decode) -> Exec:
    """`d = c + sum of products` of 4 bytes by 4 bytes, or of 2 halves by 2 of the bytes."""
    four = cx.ins.op == "dp4a"
    half = None if four else cx.one_of("lo", "hi")
    btype, atype = cx.type("u32 s32"), cx.type("u32 s32")
    cx.done(4)
    signed = "s" in (atype.kind, btype.kind)
    result = TYPES["s32" if signed else "u32"]
    slot = cx.slot(0, result)
    a, b, c = cx.src(1, atype), cx.src(2, btype), cx.src(3, result)
    adtype = f"<{atype.dtype.kind}{1 if four else 2}"
    bdtype = f"<{btype.dtype.kind}1"
    first = 2 if half == "hi" else 0
    lanes = 4 if four else 2

    def execute(g) -> None:
        shape = (len(g.rows), 32)
        x = np.ascontiguousarray(np.broadcast_to(a(g), shape)).view(adtype)
        y = np.ascontiguousarray(np.broadcast_to(b(g), shape)).view(bdtype)
        x = x.reshape(*shape, lanes).astype(np.int64)
        y = y.reshape(*shape, 4)[..., first : first + lanes].astype(np.int64)
        total = (x * y).sum(axis=-1) + c(g).astype(np.int64)
        g.put(slot, total.astype(result.dtype))

    return execute

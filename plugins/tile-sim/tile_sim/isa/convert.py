"""`cvt` between integers and binary16, bfloat16, binary32, binary64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.isa import convert_small
from tile_sim.machine.group import Group
from tile_sim.numeric import formats, rounding
from tile_sim.numeric.formats import bf16_to_f32, f32_to_bf16
from tile_sim.numeric.rounding import canonical, flush
from tile_sim.program.decode import Decode, Exec, instruction
from tile_sim.program.types import TYPES, Type

Array = np.ndarray
_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_ROUND = ("rn", "rna", "rz", "rm", "rp", "rs", *_TO_INTEGER)


@instruction("cvt")
def cvt(cx: Decode) -> Exec:
    if convert_small.handles(cx):
        return convert_small.cvt(cx)
    mode = cx.option(*_ROUND)
    ftz, sat, relu = cx.flag("ftz"), cx.flag("sat"), cx.flag("relu")
    finite = cx.flag("satfinite")
    source = cx.type()
    result = cx.type()
    cx.done(2)
    get, put = cx.src(1, source, wide=True), cx.put(0, result, wide=True)
    fn = _conversion(cx, result, source, mode, ftz, sat)
    if relu:
        fn = _with_relu(fn, result)
    if finite and result.name not in ("f16", "bf16"):
        cx.fail(".satfinite does not apply")
    if finite:
        fn = _finite(fn, result)
    return lambda g: put(g, fn(get(g)))


def _conversion(
    cx: Decode, result: Type, source: Type, mode: str | None, ftz: bool, sat: bool
) -> Callable[[Array], Array]:
    if source.kind == "f" and result.kind == "f":
        return _float_to_float(cx, result, source, mode, ftz, sat)
    if source.kind == "f":
        return _float_to_int(cx, result, source, mode, ftz)
    if result.kind == "f":
        return _int_to_float(result, mode or "rn", sat)
    return _int_to_int(result, source, sat)


def _int_to_int(result: Type, source: Type, sat: bool) -> Callable[[Array], Array]:
    dtype = result.dtype
    if not sat:
        return lambda x: x.astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max

    def run(x: Array) -> Array:
        if source.kind != "s":
            return np.minimum(x.astype(np.uint64), np.uint64(high)).astype(dtype)
        if result.bits == 64 and result.kind != "s":
            return np.maximum(x.astype(np.int64), 0).astype(dtype)
        return np.clip(x.astype(np.int64), low, high).astype(dtype)

    return run


def _int_to_float(result: Type, mode: str, sat: bool) -> Callable[[Array], Array]:
    def run(x: Array) -> Array:
        value = _rounded_integer(x, result, mode)
        if not sat:
            return value
        return np.clip(value, 0, 1) if value.dtype.kind == "f" else value

    return run


def _rounded_integer(x: Array, result: Type, mode: str) -> Array:
    """A 64-bit integer may not fit a binary64: its low part makes it sticky."""
    wide = x.astype(np.int64) if x.dtype.kind == "i" else x.astype(np.uint64)
    high = wide & ~wide.dtype.type(0x7FF)
    top, low = high.astype(np.float64), (wide - high).astype(np.float64)
    s, error = rounding.two_sum(top, low)
    if result.bits == 64:
        return s if mode == "rn" else rounding.add(top, low, mode)
    return _from_f64(rounding.to_odd(s, error), result, mode)


def _from_f64(x: Array, result: Type, mode: str) -> Array:
    """binary64 (exact or sticky) to a narrower format, in its register form."""
    if result.name == "f32":
        return rounding.narrow(x, mode)
    if result.name == "f64":
        return x
    fmt = formats.FORMATS[result.name]
    if mode == "rn" and result.name == "f16":
        return canonical(x.astype(np.float16))
    return formats.encode(x, fmt, mode).astype(np.uint16).view(result.dtype)


def to_f64(x: Array, source: Type) -> Array:
    if source.name == "bf16":
        return bf16_to_f32(x).astype(np.float64)
    return x.astype(np.float64)


def _float_to_float(
    cx: Decode, result: Type, source: Type, mode: str | None, ftz: bool, sat: bool
) -> Callable[[Array], Array]:
    integral = _TO_INTEGER.get(mode or "")
    rounding_mode = "rn" if integral or mode is None else mode
    if rounding_mode in ("rna", "rs"):
        cx.fail(f".{rounding_mode} is not supported between these types")
    fast = {("f32", "f16"), ("f64", "f32"), ("f64", "f16")}

    def run(x: Array) -> Array:
        if ftz and source.name == "f32":
            x = flush(x)
        if (result.name, source.name) in fast and not (integral or sat):
            return canonical(x.astype(result.dtype))
        if (result.name, source.name) == ("bf16", "f32") and rounding_mode == "rn" and not sat:
            return f32_to_bf16(np.asarray(x))
        value = to_f64(x, source)
        if integral:
            value = integral(value)
        if sat:
            value = np.where(value != value, 0.0, np.clip(value, 0, 1)) + 0.0
        out = _from_f64(value, result, rounding_mode)
        if ftz and result.name == "f32":
            out = flush(out)
        return canonical(out) if out.dtype.kind == "f" else out

    return run


def _float_to_int(
    cx: Decode, result: Type, source: Type, mode: str | None, ftz: bool
) -> Callable[[Array], Array]:
    """Out of range clamps. NaN gives 0, or the top bit alone where binary64 or a 64-bit integer
    takes part."""
    if mode not in _TO_INTEGER:
        cx.fail("needs .rni, .rzi, .rmi or .rpi")
    integral = _TO_INTEGER[mode]
    info = np.iinfo(result.dtype)
    # The bounds that binary64 can hold; the upper one is open.
    low, high = float(info.min), float(info.max) if result.bits < 64 else float(info.max + 1)
    top = np.array(1 << (result.bits - 1), f"<u{result.bytes}").view(result.dtype)[()]
    nan = top if source.bits == 64 or result.bits == 64 else result.dtype.type(0)

    def run(x: Array) -> Array:
        if ftz and source.name == "f32":
            x = flush(x)
        value = integral(to_f64(x, source))
        bad, over, under = value != value, value >= high, value <= low
        safe = np.where(bad | over | under, 0.0, value)
        out = safe.astype(result.dtype)
        if bad.any() or over.any() or under.any():
            out = np.where(over, result.dtype.type(info.max), out)
            out = np.where(under, result.dtype.type(info.min), out)
            out = np.where(bad, nan, out)
        return out

    return run


def _with_relu(fn: Callable[[Array], Array], result: Type) -> Callable[[Array], Array]:
    """Negative results become +0; NaN stays."""

    def run(x: Array) -> Array:
        out = np.asarray(fn(x))
        bits = out.view(np.uint16) if result.bits == 16 else out.view(np.uint32)
        top = bits.dtype.type(1 << (result.bits - 1))
        nan = (x != x) if x.dtype.kind == "f" else np.zeros(out.shape, bool)
        return np.where((bits & top).astype(bool) & ~nan, bits.dtype.type(0), bits).view(out.dtype)

    return run


def _finite(fn: Callable[[Array], Array], result: Type) -> Callable[[Array], Array]:
    """`.satfinite`: infinities become the largest value."""
    fmt = formats.FORMATS[result.name]

    def run(x: Array) -> Array:
        bits = np.asarray(fn(x)).view(np.uint16)
        infinite = (bits & np.uint16(0x7FFF)) == np.uint16(fmt.infinity or 0)
        return np.where(infinite, bits - np.uint16(1), bits).view(result.dtype)

    return run


@instruction("cvt.pack.sat")
def cvt_pack(cx: Decode) -> Exec:
    """Two s32 saturated to 8 (or 16, 4, 2) bits and packed, the old value of `c` shifted up."""
    mods = list(cx.mods)
    has_c = "b32" in mods
    if has_c:
        cx.mods.remove("b32")
    if not cx.flag("s32"):
        cx.fail("needs .s32 sources")
    name = cx.one_of("u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2")
    cx.done(4 if has_c else 3)
    bits, signed = int(name[1:]), name[0] == "s"
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - signed)) - 1
    slot, a, b = cx.slot(0, TYPES["u32"]), cx.src(1, TYPES["s32"]), cx.src(2, TYPES["s32"])
    c = cx.src(3, TYPES["u32"]) if has_c else None
    field = (1 << bits) - 1

    def execute(g: Group) -> None:
        x, y = (np.clip(v(g).astype(np.int64), low, high) & field for v in (a, b))
        packed = (x << bits) | y
        if c is not None:
            packed |= c(g).astype(np.int64) << (2 * bits)
        g.put(slot, (packed & 0xFFFFFFFF).astype(np.uint32))

    return execute

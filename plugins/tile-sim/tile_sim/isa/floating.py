"""binary32 and binary64 arithmetic, and pairs of binary32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.isa.common import PRED, packed
from tile_sim.machine.group import Group
from tile_sim.numeric import rounding
from tile_sim.numeric.formats import bf16_to_f32
from tile_sim.numeric.rounding import canonical, flush
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.program.types import TYPES, Type

Array = np.ndarray
_MODES = rounding.MODES


def finish(type_: Type, ftz: bool, sat: bool) -> Callable[[Array], Array]:
    """What happens to every result: canonical NaN, flushing, saturation to [0, 1]."""

    def run(x: Array) -> Array:
        if sat:
            x = np.where(x != x, x.dtype.type(0), np.clip(x, 0, 1))
            # clip keeps -0, the ISA gives +0.
            return x + x.dtype.type(0)
        if ftz:
            x = flush(x)
        return canonical(x)

    if type_.bits == 64 and not sat:
        return lambda x: x
    return run


def prepared(get: Getter, ftz: bool) -> Getter:
    """An operand, flushed where the instruction says so."""
    if not ftz:
        return get
    return lambda g: flush(get(g))


def _common(cx: Decode, allowed: str = "f32 f64 f32x2") -> tuple[str, bool, bool, Type]:
    mode = cx.option(*_MODES) or "rn"
    ftz, sat = cx.flag("ftz"), cx.flag("sat")
    type_ = cx.type(allowed)
    if type_.bits == 64 and type_.name == "f64" and (ftz or sat):
        cx.fail(".ftz and .sat are for .f32")
    return mode, ftz, sat, type_


# Narrow operands of mixed precision: `add.f32.f16 d, a, c` (sm_100).
_MIXED = ("f16", "bf16")


def _arithmetic(cx: Decode, count: int, fn: Callable[..., Array]) -> Exec:
    """`fn(*operands, mode)` with all the common modifiers."""
    narrow = cx.mods.pop() if cx.mods[-2:-1] == ["f32"] and cx.mods[-1] in _MIXED else None
    mode, ftz, sat, type_ = _common(cx)
    cx.done(count + 1)
    if type_.name == "f32x2":
        done = finish(TYPES["f32"], ftz, sat)
        prep = flush if ftz else _same
        return packed(cx, type_, "<f4", count, lambda *xs: done(fn(*(prep(x) for x in xs), mode)))
    slot, done = cx.slot(0, type_), finish(type_, ftz, sat)
    sources = [cx.src(i + 1, type_) for i in range(count)] if narrow is None else []
    if narrow is not None:
        sources = [widened(cx, i + 1, narrow) for i in range(count - 1)]
        sources.append(cx.src(count, type_))
    sources = [prepared(get, ftz) for get in sources]
    if count == 2:
        a, b = sources
        return lambda g: g.put(slot, done(fn(a(g), b(g), mode)))
    a, b, c = sources
    return lambda g: g.put(slot, done(fn(a(g), b(g), c(g), mode)))


def widened(cx: Decode, which: int, name: str) -> Getter:
    """A binary16 or bfloat16 operand of a mixed-precision instruction, as binary32."""
    get = cx.src(which, TYPES[name])
    if name == "f16":
        return lambda g: get(g).astype(np.float32)
    return lambda g: bf16_to_f32(get(g))


def _same(x: Array) -> Array:
    return x


def add(cx: Decode) -> Exec:
    return _arithmetic(cx, 2, rounding.add)


def sub(cx: Decode) -> Exec:
    return _arithmetic(cx, 2, lambda a, b, mode: rounding.add(a, -b, mode))


def mul(cx: Decode) -> Exec:
    return _arithmetic(cx, 2, rounding.multiply)


@instruction("fma")
def fma_entry(cx: Decode) -> Exec:
    from tile_sim.isa.float_dispatch import float_fma

    return float_fma(cx)


def fma(cx: Decode) -> Exec:
    return _arithmetic(cx, 3, rounding.fma)


def div(cx: Decode) -> Exec:
    """`.rn`... exactly; `.approx` and `.full` with the range rules of the ISA."""
    how = cx.option("approx", "full")
    mode, ftz, _, type_ = _common(cx, "f32 f64")
    cx.done(3)
    slot, done = cx.slot(0, type_), finish(type_, ftz, False)
    a, b = (prepared(cx.src(i, type_), ftz) for i in (1, 2))
    if how == "approx":
        return lambda g: g.put(slot, done(_approximate_quotient(a(g), b(g))))
    return lambda g: g.put(slot, done(rounding.divide(a(g), b(g), mode)))


def _approximate_quotient(a: Array, b: Array) -> Array:
    """For 2**126 < |b| < 2**128 the result is 0, or NaN for infinite `a`."""
    quotient = a / b
    huge = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b)
    if not huge.any():
        return quotient
    zero = np.copysign(np.float32(0), quotient)
    return np.where(huge, np.where(np.isinf(a), np.float32(np.nan), zero), quotient)


def absolute(cx: Decode) -> Exec:
    ftz, type_ = cx.flag("ftz"), cx.type("f32 f64")
    cx.done(2)
    slot, a = cx.slot(0, type_), prepared(cx.src(1, type_), ftz)
    return lambda g: g.put(slot, np.abs(a(g)))


def negate(cx: Decode) -> Exec:
    ftz, type_ = cx.flag("ftz"), cx.type("f32 f64")
    cx.done(2)
    slot, a = cx.slot(0, type_), prepared(cx.src(1, type_), ftz)
    return lambda g: g.put(slot, np.negative(a(g)))


def extreme(op: str, nan: bool) -> Callable[[Array, Array], Array]:
    """min or max: -0 below +0; a NaN is ignored, or with `nan` wins."""
    plain = {("min", False): np.fmin, ("max", False): np.fmax}
    plain |= {("min", True): np.minimum, ("max", True): np.maximum}
    fn = plain[op, nan]

    def run(a: Array, b: Array) -> Array:
        result = fn(a, b)
        # Where both are zero the sign decides: or of the sign bits for min, and for max.
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            signed = (
                (np.signbit(a) | np.signbit(b)) if op == "min" else np.signbit(a) & np.signbit(b)
            )
            zero = np.where(signed, result.dtype.type(-0.0), result.dtype.type(0))
            result = np.where(zeros, zero, result)
        return result

    return run


def with_xorsign(fn: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """`.xorsign.abs`: of the magnitudes, with the product of the signs."""

    def run(a: Array, b: Array) -> Array:
        result = np.abs(fn(np.abs(a), np.abs(b)))
        sign = np.signbit(a) ^ np.signbit(b)
        return np.where(sign & (result == result), -result, result)

    return run


def minmax(cx: Decode) -> Exec:
    op = cx.ins.op
    ftz, nan = cx.flag("ftz"), cx.flag("NaN")
    xorsign = cx.flag("xorsign")
    magnitude = cx.flag("abs")
    type_ = cx.type("f32 f64")
    cx.done((3, 4))
    fn = extreme(op, nan)
    if xorsign:
        fn = with_xorsign(fn)
    slot, done = cx.slot(0, type_), finish(type_, ftz, False)
    sources = [prepared(cx.src(i, type_), ftz) for i in range(1, len(cx.operands))]
    if magnitude and not xorsign:
        sources = [_magnitude(get) for get in sources]

    def execute(g: Group) -> None:
        result = fn(sources[0](g), sources[1](g))
        for more in sources[2:]:
            result = fn(result, more(g))
        g.put(slot, done(result))

    return execute


def _magnitude(get: Getter) -> Getter:
    return lambda g: np.abs(get(g))


@instruction("copysign")
def copysign(cx: Decode) -> Exec:
    """The magnitude of `b` with the sign of `a`."""
    type_ = cx.type("f32 f64")
    cx.done(3)
    slot, a, b = cx.slot(0, type_), cx.src(1, type_), cx.src(2, type_)
    return lambda g: g.put(slot, np.copysign(b(g), a(g)))


_TESTS: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: x == x,
    "notanumber": lambda x: x != x,
    "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
    "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
}


@instruction("testp")
def testp(cx: Decode) -> Exec:
    test = _TESTS[cx.one_of(*_TESTS)]
    type_ = cx.type("f32 f64")
    cx.done(2)
    slot, a = cx.slot(0, PRED), cx.src(1, type_)
    return lambda g: g.put(slot, test(a(g)))

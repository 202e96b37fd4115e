"""Reciprocals, roots and transcendental functions.

Approximations are computed in binary64 and rounded, which is well inside every documented error;
ranges, flushing and special values follow the tables of the PTX ISA.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.isa.common import B32, halves
from tile_sim.isa.floating import finish, prepared
from tile_sim.isa.half import Kind
from tile_sim.machine.group import Group
from tile_sim.numeric import rounding
from tile_sim.program.decode import Decode, Exec, instruction
from tile_sim.program.types import TYPES

Array = np.ndarray
Function = Callable[[Array], Array]


def _wide(fn: Function) -> Function:
    """A binary64 function as a binary32 one."""
    return lambda x: fn(x.astype(np.float64)).astype(np.float32)


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)  # the root of -0 is -0


def _lg2(x: Array) -> Array:
    return np.where(x < 0, np.nan, np.log2(np.abs(x)))


_APPROX: dict[str, Function] = {
    "sin": _wide(np.sin),
    "cos": _wide(np.cos),
    "lg2": _wide(_lg2),
    "ex2": _wide(np.exp2),
    "tanh": _wide(np.tanh),
    "rsqrt": _wide(_rsqrt),
}


def _decode_approx(cx: Decode, fn: Function) -> Exec:
    ftz = cx.flag("ftz")
    name = cx.mods[-1] if cx.mods else ""
    if name in ("f16", "f16x2", "bf16", "bf16x2"):
        return _half_approx(cx, fn, ftz)
    type_ = cx.type("f32")
    cx.done(2)
    slot, a, done = cx.slot(0, type_), prepared(cx.src(1, type_), ftz), finish(type_, ftz, False)
    return lambda g: g.put(slot, done(fn(a(g))))


def _half_approx(cx: Decode, fn: Function, ftz: bool) -> Exec:
    type_ = cx.type()
    cx.done(2)
    bfloat = type_.name.startswith("bf")
    kind, width = Kind(bfloat, ftz and not bfloat), B32 if type_.bits == 32 else TYPES["b16"]
    slot, a = cx.slot(0, width), cx.src(1, width)

    def execute(g: Group) -> None:
        x = kind.read(halves(g, a(g), "<u2"))
        if ftz and bfloat:
            x = rounding.flush(x)
        result = np.ascontiguousarray(kind.write(fn(x)))
        g.put(slot, result.view(width.dtype))

    return execute


@instruction("sin.approx", "cos.approx", "lg2.approx", "ex2.approx", "tanh.approx")
def transcendental(cx: Decode) -> Exec:
    return _decode_approx(cx, _APPROX[cx.ins.op])


@instruction("rsqrt.approx")
def rsqrt(cx: Decode) -> Exec:
    """For f64 two instructions: a coarse one with `.ftz`, else one emulated in full precision."""
    if not cx.mods or cx.mods[-1] != "f64":
        return _decode_approx(cx, _APPROX["rsqrt"])
    if "ftz" in cx.mods:
        return _coarse(cx, _rsqrt)
    type_ = cx.type("f64")
    cx.done(2)
    slot, a = cx.slot(0, type_), cx.src(1, type_)
    return lambda g: g.put(slot, _rsqrt(a(g).astype(np.longdouble)).astype(np.float64))


def _coarse(cx: Decode, fn: Function) -> Exec:
    """`rcp.approx.ftz.f64`, `rsqrt.approx.ftz.f64`: the upper word only; subnormals flush."""
    cx.flag("ftz")
    type_ = cx.type("f64")
    cx.done(2)
    slot, a = cx.slot(0, type_), cx.src(1, type_)
    tiny = np.finfo(np.float64).tiny

    def execute(g: Group) -> None:
        x = a(g)
        x = np.where(np.abs(x) < tiny, np.copysign(0.0, x), x)
        y = np.asarray(fn(x))
        y = np.where(np.abs(y) < tiny, np.copysign(0.0, y), y)
        keep = np.isfinite(y)
        cut = (np.ascontiguousarray(y).view(np.uint64) & ~np.uint64(0xFFFFFFFF)).view(np.float64)
        g.put(slot, np.where(keep, cut, y))

    return execute


def _reciprocal(x: Array) -> Array:
    return x.dtype.type(1) / x


@instruction("rcp", "sqrt")
def rcp_sqrt(cx: Decode) -> Exec:
    """Exact in a rounding mode, or `.approx`."""
    op, approx = cx.ins.op, cx.flag("approx")
    if approx and cx.mods[-1] == "f64":
        return _coarse(cx, _reciprocal)
    mode = cx.option(*rounding.MODES) or "rn"
    ftz = cx.flag("ftz")
    type_ = cx.type("f32 f64")
    cx.done(2)
    slot, a, done = cx.slot(0, type_), prepared(cx.src(1, type_), ftz), finish(type_, ftz, False)
    one = type_.dtype.type(1)
    if op == "rcp":
        return lambda g: g.put(slot, done(rounding.divide(np.full_like(x := a(g), one), x, mode)))
    return lambda g: g.put(slot, done(rounding.square_root(a(g), mode)))

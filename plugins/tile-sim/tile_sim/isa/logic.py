"""Logic and shift instructions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.isa.common import B32, U32, binary, unary
from tile_sim.machine.group import Group
from tile_sim.program.decode import Decode, Exec, instruction
from tile_sim.program.types import TYPES, Type

Array = np.ndarray
_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@instruction("and", "or", "xor")
def bitwise(cx: Decode) -> Exec:
    type_ = cx.type("pred b16 b32 b64")
    cx.done(3)
    return binary(cx, type_, _BINARY[cx.ins.op])


@instruction("not")
def bitwise_not(cx: Decode) -> Exec:
    type_ = cx.type("pred b16 b32 b64")
    cx.done(2)
    return unary(cx, type_, type_, np.invert)


@instruction("cnot")
def cnot(cx: Decode) -> Exec:
    type_ = cx.type("b16 b32 b64")
    cx.done(2)
    return unary(cx, type_, type_, lambda a: (a == 0).astype(type_.dtype))


def _shift(cx: Decode, type_: Type, fn: Callable[[Array, Array], Array]) -> Exec:
    """Amounts beyond the width act as the width, which NumPy's shifts do too."""
    slot, a, b = cx.slot(0, type_), cx.src(1, type_), cx.src(2, U32)
    most, dtype = np.uint32(type_.bits), type_.dtype
    return lambda g: g.put(slot, fn(a(g), np.minimum(b(g), most).astype(dtype)))


@instruction("shl")
def shl(cx: Decode) -> Exec:
    type_ = cx.type("b16 b32 b64")
    cx.done(3)
    return _shift(cx, type_, np.left_shift)


@instruction("shr")
def shr(cx: Decode) -> Exec:
    type_ = cx.type("b16 b32 b64 u16 u32 u64 s16 s32 s64")
    cx.done(3)
    return _shift(cx, type_, np.right_shift)


@instruction("shf.l", "shf.r")
def funnel_shift(cx: Decode) -> Exec:
    """Shift the 64 bits `b:a`; left gives the upper half, right the lower."""
    left = cx.ins.mods[0] == "l"
    wrap = cx.one_of("wrap", "clamp") == "wrap"
    cx.type("b32")
    cx.done(4)
    slot = cx.slot(0, B32)
    a, b, c = (cx.src(i, B32) for i in (1, 2, 3))

    def execute(g: Group) -> None:
        n = c(g)
        n = (n & np.uint32(31) if wrap else np.minimum(n, np.uint32(32))).astype(np.uint64)
        both = (b(g).astype(np.uint64) << np.uint64(32)) | a(g).astype(np.uint64)
        moved = both << n >> np.uint64(32) if left else both >> n
        g.put(slot, (moved & np.uint64(0xFFFFFFFF)).astype(np.uint32))

    return execute


@instruction("lop3")
def lop3(cx: Decode) -> Exec:
    """Any function of three bits, by its truth table."""
    combine = cx.option("or", "and")
    cx.type("b32")
    cx.done(6 if combine else 5)
    if combine:
        return _lop3_with_predicate(cx, combine)
    slot = cx.slot(0, B32)
    a, b, c = (cx.src(i, B32) for i in (1, 2, 3))
    table = cx.constant(4)
    if not 0 <= table < 256:
        cx.fail(f"truth table {table} is not in 0..255")
    fn = _three_inputs(table)
    return lambda g: g.put(slot, fn(a(g), b(g), c(g)))


def _three_inputs(table: int) -> Callable[[Array, Array, Array], Array]:
    """The sum of the minterms of `table`: index bit 2 is a, 1 is b, 0 is c."""
    known = _KNOWN_TABLES.get(table)
    if known is not None:
        return known

    def fn(a: Array, b: Array, c: Array) -> Array:
        total = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c)), np.uint32)
        for index in range(8):
            if table >> index & 1:
                x = a if index & 4 else ~a
                y = b if index & 2 else ~b
                z = c if index & 1 else ~c
                total |= x & y & z
        return total

    return fn


_KNOWN_TABLES: dict[int, Callable[[Array, Array, Array], Array]] = {
    0x80: lambda a, b, c: a & b & c,
    0xFE: lambda a, b, c: a | b | c,
    0x96: lambda a, b, c: a ^ b ^ c,
    0xEA: lambda a, b, c: (a & b) | c,
    0xF8: lambda a, b, c: a | (b & c),
    0xCA: lambda a, b, c: (a & b) | (~a & c),
}


def _lop3_with_predicate(cx: Decode, combine: str) -> Exec:
    """`lop3.BoolOp d|p, a, b, c, table, q`: p = (d != 0) BoolOp q."""
    first, second = cx.pair(0)
    if second is None:
        cx.fail("with a boolean operation the destination is d|p")
    a, b, c = (cx.src(i, B32) for i in (1, 2, 3))
    fn, q = _three_inputs(cx.constant(4)), cx.src(5, TYPES["pred"])
    put = cx.put(first, B32)
    slot = cx.slot(second, TYPES["pred"])
    join = np.logical_or if combine == "or" else np.logical_and

    def execute(g: Group) -> None:
        value = fn(a(g), b(g), c(g))
        known = q(g)
        put(g, value)
        g.put(slot, join(value != 0, known))

    return execute

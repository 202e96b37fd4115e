"""Comparison and selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tile_sim.isa.common import B32, PRED, halves
from tile_sim.isa.floating import prepared
from tile_sim.isa.half import Kind
from tile_sim.machine.group import Group
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.program.types import TYPES, Type

Array = np.ndarray
Compare = Callable[[Array, Array], Array]


def _unordered(fn: Compare) -> Compare:
    return lambda a, b: fn(a, b) | (a != a) | (b != b)


_ORDERED: dict[str, Compare] = {
    "eq": np.equal,
    "ne": lambda a, b: (a < b) | (a > b),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_FLOAT: dict[str, Compare] = {
    **_ORDERED,
    **{f"{name}u": _unordered(fn) for name, fn in _ORDERED.items()},
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}
_INTEGER: dict[str, Compare] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_JOIN: dict[str, Compare] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
_HALVES = ("f16", "bf16", "f16x2", "bf16x2")


def _comparison(cx: Decode) -> tuple[str, str | None, bool]:
    word = cx.one_of(*_FLOAT, *_INTEGER)
    return word, cx.option(*_JOIN), cx.flag("ftz")


def _compare(cx: Decode, word: str, type_: Type) -> Compare:
    table = _FLOAT if type_.kind == "f" else _INTEGER
    if word not in table:
        cx.fail(f".{word} does not compare .{type_.name}")
    return table[word]


def _sources(cx: Decode, type_: Type, ftz: bool) -> tuple[Getter, Getter]:
    """The two compared operands, halves widened to binary32."""
    if type_.name not in ("f16", "bf16"):
        return prepared(cx.src(1, type_), ftz), prepared(cx.src(2, type_), ftz)
    kind, width = Kind(type_.name == "bf16", ftz), TYPES["b16"]
    a, b = cx.src(1, width), cx.src(2, width)
    return (
        lambda g: kind.read(halves(g, a(g), "<u2")),
        lambda g: kind.read(halves(g, b(g), "<u2")),
    )


@instruction("setp")
def setp(cx: Decode) -> Exec:
    """`p|q = (a cmp b) join c`, q with the comparison negated."""
    word, join, ftz = _comparison(cx)
    type_ = cx.type()
    cx.done(4 if join else 3)
    if type_.bits == 32 and type_.name in _HALVES:
        return _setp_pair(cx, word, join, type_, ftz)
    compare = _compare(cx, word, type_)
    a, b = _sources(cx, type_, ftz)
    first, second = cx.pair(0)
    put_p = cx.put(first, PRED)
    put_q = cx.put(second, PRED) if second is not None else None
    c = cx.src(3, PRED) if join else None
    combine = _JOIN[join] if join else None

    def execute(g: Group) -> None:
        p = compare(a(g), b(g))
        q = ~p if put_q else None
        if combine is not None and c is not None:
            other = c(g)
            p = combine(p, other)
            q = combine(q, other) if q is not None else None
        put_p(g, p)
        if put_q is not None:
            put_q(g, q)

    return execute


def _setp_pair(cx: Decode, word: str, join: str | None, type_: Type, ftz: bool) -> Exec:
    """For packed halves p is of the lower pair and q of the upper."""
    compare, kind = _compare(cx, word, type_), Kind(type_.name.startswith("bf"), ftz)
    a, b = cx.src(1, B32), cx.src(2, B32)
    first, second = cx.pair(0)
    if second is None:
        cx.fail("a packed comparison writes p|q")
    put_p, put_q = cx.put(first, PRED), cx.put(second, PRED)
    c = cx.src(3, PRED) if join else None
    combine = _JOIN[join] if join else None

    def execute(g: Group) -> None:
        both = compare(kind.read(halves(g, a(g), "<u2")), kind.read(halves(g, b(g), "<u2")))
        p, q = both[:, 0::2], both[:, 1::2]
        if combine is not None and c is not None:
            other = c(g)
            p, q = combine(p, other), combine(q, other)
        put_p(g, p)
        put_q(g, q)

    return execute


@instruction("set")
def set_value(cx: Decode) -> Exec:
    """All ones, or 1.0, where the comparison holds."""
    word, join, ftz = _comparison(cx)
    source = cx.type()
    result = cx.type()
    cx.done(4 if join else 3)
    if source.name in ("f16x2", "bf16x2"):
        return _set_pair(cx, word, join, result, source, ftz)
    compare = _compare(cx, word, source)
    a, b = _sources(cx, source, ftz)
    slot = cx.slot(0, result)
    c = cx.src(3, PRED) if join else None
    true, zero = _truth(result)

    def execute(g: Group) -> None:
        p = compare(a(g), b(g))
        if join and c is not None:
            p = _JOIN[join](p, c(g))
        g.put(slot, np.where(p, true, zero))

    return execute


def _truth(type_: Type) -> tuple[Any, Any]:
    """What stands for true and false in a type."""
    if type_.name == "bf16":
        return np.uint16(0x3F80), np.uint16(0)
    one = 1 if type_.kind == "f" else -1
    true = np.array(one, np.int64 if one < 0 else np.float64).astype(type_.dtype)[()]
    return true, type_.dtype.type(0)


def _set_pair(
    cx: Decode, word: str, join: str | None, result: Type, source: Type, ftz: bool
) -> Exec:
    compare, kind = _compare(cx, word, source), Kind(source.name.startswith("bf"), ftz)
    a, b, slot = cx.src(1, B32), cx.src(2, B32), cx.slot(0, B32)
    c = cx.src(3, PRED) if join else None
    true = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(result.name, 0xFFFF)

    def execute(g: Group) -> None:
        p = compare(kind.read(halves(g, a(g), "<u2")), kind.read(halves(g, b(g), "<u2")))
        if join and c is not None:
            p = _JOIN[join](p, np.repeat(np.broadcast_to(c(g), (len(g.rows), 32)), 2, axis=1))
        bits = np.where(p, np.uint16(true), np.uint16(0))
        g.put(slot, np.ascontiguousarray(bits).view(np.uint32))

    return execute


@instruction("selp")
def selp(cx: Decode) -> Exec:
    type_ = cx.type()
    cx.done(4)
    slot, a, b, p = cx.slot(0, type_), cx.src(1, type_), cx.src(2, type_), cx.src(3, PRED)
    return lambda g: g.put(slot, np.where(p(g), a(g), b(g)))


@instruction("slct")
def slct(cx: Decode) -> Exec:
    """`a` where `c >= 0`, else `b`."""
    ftz = cx.flag("ftz")
    control = cx.type("s32 f32")
    type_ = cx.type()
    cx.done(4)
    slot, a, b = cx.slot(0, type_), cx.src(1, type_), cx.src(2, type_)
    c = prepared(cx.src(3, control), ftz)
    return lambda g: g.put(slot, np.where(c(g) >= 0, a(g), b(g)))

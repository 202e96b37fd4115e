"""A kernel with every operation of a version, in many forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tile_cudatile import types as t
from tile_cudatile.attrs import Attr, Bounded, Dense, DivBy, Float, Hints, Integer, SameElements
from tile_cudatile.ops.enums import OVERFLOW, PREDICATE
from tile_cudatile.tree import Block, Entry, Global, Module, Region, Value
from tile_cudatile.versions import V13_2, V13_3, V13_4, Version
from unit.tile_cudatile.everything_memory import accesses, multimem, pointers
from unit.tile_cudatile.maker import FLOATS, INTS, ROUNDINGS, SCALAR, Maker


def _floats(m: Maker) -> None:
    for element in FLOATS:
        tile = t.Tile((4, 8), element)
        x, y = m.constant(tile, 1.5), m.constant(tile, -0.1)
        for name in (
            "absf",
            "negf",
            "ceil",
            "floor",
            "cos",
            "cosh",
            "sin",
            "sinh",
            "tan",
            "log",
            "log2",
            "exp2",
            "rsqrt",
        ):
            m.emit(name, [x], tile)
        for name in ("exp", "tanh"):
            m.emit(name, [x], tile, rounding_mode="full")
        for mode in ROUNDINGS:
            for name in ("addf", "subf", "mulf", "divf"):
                m.emit(name, [x, y], tile, rounding_mode=mode)
            m.emit("fma", [x, y, x], tile, rounding_mode=mode)
            m.emit("sqrt", [x], tile, rounding_mode=mode)
        for name in ("maxf", "minf", "remf", "fpowf"):
            m.emit(name, [x, y], tile)
        m.emit("maxf", [x, y], tile, propagate_nan=True)
        if m.has("atan2"):
            m.emit("atan2", [x, y], tile)
        if m.has("fpowi"):
            m.emit("fpowi", [x, m.constant(t.Tile((4, 8), t.I32))], tile)
        for predicate in PREDICATE:
            for ordering in ("ordered", "unordered"):
                m.emit(
                    "cmpf",
                    [x, y],
                    t.Tile((4, 8), t.I1),
                    comparison_predicate=predicate,
                    comparison_ordering=ordering,
                )
    _float32(m)


def _float32(m: Maker) -> None:
    tile = t.Tile((4,), t.F32)
    x = m.constant(tile, 3.0)
    for mode in (*ROUNDINGS, "approx"):
        for name, operands in (("addf", [x, x]), ("divf", [x, x]), ("sqrt", [x])):
            if mode != "approx" or name != "addf":
                m.emit(name, operands, tile, rounding_mode=mode, flush_to_zero=True)
    m.emit("divf", [x, x], tile, rounding_mode="full")
    for name in ("exp2", "rsqrt"):
        m.emit(name, [x], tile, flush_to_zero=True)
    for name in ("maxf", "minf"):
        m.emit(name, [x, x], tile, flush_to_zero=True, propagate_nan=True)
    if m.version >= V13_2:
        m.emit("tanh", [x], tile, rounding_mode="approx")
    if m.version >= V13_3:
        m.emit("exp", [x], tile, rounding_mode="approx")


def _ints(m: Maker) -> None:
    for element in INTS:
        tile = t.Tile((8,), element)
        x, y = m.constant(tile, 1), m.constant(tile, 0 if element == t.I1 else -3)
        for name in ("absi", "negi"):
            m.emit(name, [x], tile)
        for name in ("andi", "ori", "xori"):
            m.emit(name, [x, y], tile)
        m.emit("mulhii", [x, y], tile)
        for overflow in OVERFLOW:
            for name in ("addi", "subi", "muli", "shli"):
                m.emit(name, [x, y], tile, overflow=overflow)
            if m.version >= V13_2 and overflow in ("none", "no_signed_wrap"):
                m.emit("negi", [x], tile, overflow=overflow)
        for sign in ("signed", "unsigned"):
            for name in ("maxi", "mini", "remi", "shri"):
                m.emit(name, [x, y], tile, signedness=sign)
            for rounding in ("zero", "positive_inf", "negative_inf"):
                if (sign, rounding) != ("unsigned", "negative_inf"):
                    m.emit("divi", [x, y], tile, signedness=sign, rounding=rounding)
            for predicate in PREDICATE:
                m.emit(
                    "cmpi",
                    [x, y],
                    t.Tile((8,), t.I1),
                    comparison_predicate=predicate,
                    signedness=sign,
                )


def _products(m: Maker) -> None:
    pairs = [
        (t.F16, t.F16),
        (t.F16, t.F32),
        (t.BF16, t.F32),
        (t.TF32, t.F32),
        (t.F32, t.F32),
        (t.F64, t.F64),
        (t.F8E4M3FN, t.F32),
        (t.F8E5M2, t.F16),
    ]
    for source, target in pairs:
        lhs, rhs = m.constant(t.Tile((4, 8), source)), m.constant(t.Tile((8, 16), source))
        out = t.Tile((4, 16), target)
        m.emit("mmaf", [lhs, rhs, m.constant(out)], out)
        if m.version >= V13_3 and source == t.F8E4M3FN:
            m.emit("mmaf", [lhs, rhs, m.constant(out)], out, fast_acc=True)
    batch = t.Tile((2, 4, 4), t.I8)
    out = t.Tile((2, 4, 4), t.I32)
    for sign in ("signed", "unsigned"):
        m.emit(
            "mmai",
            [m.constant(batch), m.constant(batch), m.constant(out)],
            out,
            signedness_lhs=sign,
            signedness_rhs="signed",
        )
    if m.has("mmaf_scaled"):
        lhs = m.constant(t.Tile((4, 64), t.F8E4M3FN))
        rhs = m.constant(t.Tile((64, 8), t.F8E4M3FN))
        scales = [m.constant(t.Tile(s, t.F8E8M0FNU)) for s in ((4, 2), (2, 8))]
        out = t.Tile((4, 8), t.F32)
        m.emit("mmaf_scaled", [lhs, rhs, m.constant(out), *scales], out)


def _conversions(m: Maker) -> None:
    number = lambda e: m.constant(t.Tile((8,), e))  # noqa: E731
    narrow = [t.TF32, t.F8E4M3FN, t.F8E5M2]
    for source in (*FLOATS, *narrow):
        for target in (*FLOATS, *narrow):
            if source != target:
                m.emit("ftof", [number(source)], t.Tile((8,), target), rounding_mode="nearest_even")
        for sign in ("signed", "unsigned"):
            m.emit(
                "ftoi",
                [number(source)],
                t.Tile((8,), t.I32),
                signedness=sign,
                rounding_mode="nearest_int_to_zero",
            )
            m.emit(
                "itof",
                [number(t.I16)],
                t.Tile((8,), source),
                signedness=sign,
                rounding_mode="nearest_even",
            )
    if m.version >= V13_2:
        for mode in ("zero", "positive_inf"):
            m.emit("ftof", [number(t.F32)], t.Tile((8,), t.F8E8M0FNU), rounding_mode=mode)
    if m.version >= V13_4:
        m.emit(
            "ftoi",
            [number(t.F32)],
            t.Tile((8,), t.I8),
            signedness="signed",
            rounding_mode="nearest_int_to_zero",
            saturating=True,
        )
    _integer_conversions(m)


def _integer_conversions(m: Maker) -> None:
    number = lambda e: m.constant(t.Tile((8,), e))  # noqa: E731
    for low, high in ((t.I1, t.I8), (t.I8, t.I64), (t.I16, t.I32)):
        for sign in ("signed", "unsigned"):
            m.emit("exti", [number(low)], t.Tile((8,), high), signedness=sign)
        for overflow in OVERFLOW:
            m.emit("trunci", [number(high)], t.Tile((8,), low), overflow=overflow)
    for a, b in ((t.F32, t.I32), (t.I16, t.BF16), (t.F8E5M2, t.I8), (t.I64, t.F64)):
        m.emit("bitcast", [number(a)], t.Tile((8,), b))
    pointers = t.Tile((8,), t.Pointer(t.F32))
    made = m.emit("int_to_ptr", [number(t.I64)], pointers)
    m.emit("ptr_to_int", [made], t.Tile((8,), t.I64))
    m.emit("ptr_to_ptr", [made], t.Tile((8,), t.Pointer(t.I8)))
    if m.has("pack", "unpack"):
        packed = m.emit("pack", [number(t.F32)], t.Tile((32,), t.I8))
        m.emit("unpack", [packed], t.Tile((8,), t.F32))
        nibbles = m.emit("unpack", [packed], t.Tile((64,), t.F4E2M1FN))
        m.emit("pack", [nibbles], t.Tile((32,), t.I8))


def _shapes(m: Maker) -> None:
    tile = t.Tile((4, 8), t.F32)
    x = m.constant(tile, 2.5)
    index = m.constant(SCALAR, 0)
    for element in (t.I8, t.I16, t.I32, t.I64):
        m.emit("iota", [], t.Tile((16,), element))
    m.emit("permute", [x], t.Tile((8, 4), t.F32), permutation=(1, 0))
    m.emit("cat", [x, x], t.Tile((4, 16), t.F32), dim=1)
    part = m.emit("extract", [x, (index, index)], t.Tile((2, 4), t.F32))
    if m.has("insert"):
        m.emit("insert", [part, x, (index, index)], tile)
    row = m.emit("reshape", [x], t.Tile((32,), t.F32))
    one = m.emit("reshape", [row], t.Tile((1, 32), t.F32))
    m.emit("broadcast", [one], t.Tile((8, 32), t.F32))
    condition = m.constant(t.Tile((4, 8), t.I1), 1)
    m.emit("select", [condition, x, x], tile)
    m.emit("get_tile_block_id", [], SCALAR, SCALAR, SCALAR)
    m.emit("get_num_tile_blocks", [], SCALAR, SCALAR, SCALAR)
    m.emit("get_global", [], t.Tile((), t.Pointer(t.F32)), name="table")
    for predicate in (DivBy(16), Bounded(0, None), Bounded(None, 7), Bounded(-2, 5), Bounded()):
        index = m.emit("assume", [index], SCALAR, predicate=predicate)
    numbers = m.constant(t.Tile((4, 8), t.I32), 4)
    for predicate in (SameElements((2, 4)), DivBy(4, 2, 1)):
        numbers = m.emit("assume", [numbers], t.Tile((4, 8), t.I32), predicate=predicate)


def _constants(m: Maker) -> None:
    values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.1,
        1 / 3,
        3.14159274,
        1e-30,
        123456.789,
        1e10,
        65504.0,
        float("nan"),
        float("inf"),
        -float("inf"),
        1e-45,
        2.0**-14,
        100.0,
        1e4,
        0.001,
    ]
    for element in FLOATS:
        for value in values:
            with np.errstate(all="ignore"):
                m.constant(t.Tile((4,), element), value)
        with np.errstate(all="ignore"):
            m.constant(t.Tile((2, 8), element), np.array(values[:16]).reshape(2, 8))
    for element in (t.F8E4M3FN, t.F8E5M2, t.TF32):
        for value in (0.0, 1.5, -0.3, 448.0):
            m.constant(t.Tile((2,), element), value)
    for element in (t.I8, t.I16, t.I32, t.I64):
        m.constant(t.Tile((), element), -7)
        m.constant(t.Tile((2, 2, 2), element), np.arange(-4, 4).reshape(2, 2, 2))
    m.constant(t.Tile((128,), t.I32), np.arange(128))
    m.emit("constant", [], t.Tile((8,), t.I1), value=Dense(t.Tile((8,), t.I1), b"\x5a"))
    m.emit("constant", [], t.Tile((16,), t.I1), value=Dense(t.Tile((16,), t.I1), b"\xff\xff"))
    m.emit("constant", [], t.Tile((128,), t.I1), value=Dense(t.Tile((128,), t.I1), b"\x5a" * 16))
    m.constant(t.Tile((), t.I1), 1)
    m.constant(t.Tile((), t.I1), 0)


def _reductions(m: Maker) -> None:
    tile, scalar = t.Tile((4, 8), t.F32), t.Tile((), t.F32)
    x = m.constant(tile, 2.0)
    add = lambda a, b: ("yield", [m.emit("addf", [a, b], scalar, rounding_mode="nearest_even")])  # noqa: E731
    zero = (Float(t.F32, 0),)
    for dim, result in ((0, (8,)), (1, (4,))):
        region = m.region([scalar, scalar], add)
        m.with_regions(
            "reduce", [(x,)], [t.Tile(result, t.F32)], [region], dim=dim, identities=zero
        )
        for reverse in (False, True):
            region = m.region([scalar, scalar], add)
            m.with_regions(
                "scan", [(x,)], [tile], [region], dim=dim, reverse=reverse, identities=zero
            )
    number = m.constant(t.Tile((4, 8), t.I32))

    def pair(a: Value, b: Value, c: Value, d: Value) -> tuple[str, list[Value]]:
        less = m.emit(
            "cmpf",
            [a, b],
            t.Tile((), t.I1),
            comparison_predicate="less_than",
            comparison_ordering="ordered",
        )
        return "yield", [
            m.emit("select", [less, a, b], scalar),
            m.emit("select", [less, c, d], SCALAR),
        ]

    region = m.region([scalar, scalar, SCALAR, SCALAR], pair)
    m.with_regions(
        "reduce",
        [(x, number)],
        [t.Tile((4,), t.F32), t.Tile((4,), t.I32)],
        [region],
        dim=1,
        identities=(Float(t.F32, 0x7F800000), Integer(t.I32, 0)),
    )


def _control(m: Maker, size: Value) -> None:
    zero, one = m.constant(SCALAR, 0), m.constant(SCALAR, 1)
    tile = t.Tile((4,), t.F32)
    x = m.constant(tile)

    def smaller(i: Value) -> Value:
        compared = {"signedness": "signed", "comparison_predicate": "less_than"}
        return m.emit("cmpi", [i, size], t.Tile((), t.I1), **compared)

    condition = smaller(zero)
    empty = lambda: m.region([], lambda: ("yield", []))  # noqa: E731
    m.with_regions("if", [condition], [], [empty(), Region()])
    m.with_regions("if", [condition], [], [empty(), empty()])
    value = lambda v: m.region([], lambda: ("yield", [v, one]))  # noqa: E731
    m.with_regions("if", [condition], [tile, SCALAR], [value(x), value(x)])
    m.with_regions(
        "for", [zero, size, one, ()], [], [m.region([SCALAR], lambda i: ("continue", []))]
    )

    def body(i: Value, a: Value, b: Value) -> tuple[str, list[Value]]:
        leave = m.region([], lambda: ("continue", [a, i]))
        m.with_regions("if", [smaller(i)], [], [leave, Region()])
        return "continue", [a, m.emit("addi", [b, i], SCALAR)]

    flags = {"unsignedCmp": True} if m.version >= V13_2 else {}
    m.with_regions(
        "for",
        [zero, size, one, (x, zero)],
        [tile, SCALAR],
        [m.region([SCALAR, tile, SCALAR], body)],
        **flags,
    )

    def endless(a: Value) -> tuple[str, list[Value]]:
        leave = m.region([], lambda: ("break", [x, a]))
        m.with_regions("if", [smaller(a)], [], [leave, Region()])
        return "continue", [m.emit("addi", [a, one], SCALAR)]

    m.with_regions("loop", [(zero,)], [tile, SCALAR], [m.region([SCALAR], endless)])
    stop = lambda: ("break", [])  # noqa: E731
    m.with_regions("loop", [()], [], [m.region([], stop)])
    m.with_regions("loop", [(zero,)], [], [m.region([SCALAR], lambda a: ("break", []))])
    m.with_regions("loop", [()], [tile], [m.region([], lambda: ("break", [x]))])
    leave = m.region([], lambda: ("return", []))
    m.with_regions("if", [condition], [], [leave, empty()])


def everything(version: Version) -> Module:
    """All operations of `version`, a global, hints."""
    module = Module(version)
    table = t.Tile((4,), t.F32)
    data = np.array([1, 2, 0.5, -3], np.float32).tobytes()
    module.globals.append(Global("table", Dense(table, data)))
    if version >= V13_3:
        module.globals.append(Global("quiet", Dense(table, data), 16, True, "private"))
        module.globals.append(Global("aligned", Dense(table, data[:4]), 128, False, "private"))
        module.globals.append(Global("fixed", Dense(table, data[:4]), 0, True, "public"))
        module.producer = "everything"
    families: list[Callable[[Maker, Value, Value], None]] = [
        lambda m, base, size: _floats(m),
        lambda m, base, size: _ints(m),
        lambda m, base, size: _products(m),
        lambda m, base, size: _conversions(m),
        lambda m, base, size: _shapes(m),
        lambda m, base, size: _constants(m),
        accesses,
        lambda m, base, size: pointers(m, base),
        lambda m, base, size: multimem(m, base),
        lambda m, base, size: _reductions(m),
        lambda m, base, size: _control(m, size),
    ]
    names = [
        "floats",
        "ints",
        "products",
        "conversions",
        "shapes",
        "constants",
        "accesses",
        "pointers",
        "multimem",
        "reductions",
        "control",
    ]
    for name, family in zip(names, families, strict=True):
        module.entries.append(_entry(name, family, version))
    hints: Attr = {"num_cta_in_cga": Integer(t.I32, 2), "occupancy": Integer(t.I32, 4)}
    module.entries[-1].hints = Hints({"sm_100": hints})
    return module


def _entry(name: str, family: Callable[[Maker, Value, Value], None], version: Version) -> Entry:
    arguments = (t.Tile((), t.Pointer(t.F32)), SCALAR)
    args = tuple(Value(a) for a in arguments)
    maker = Maker(version)
    family(maker, *args)
    maker.emit("return", [()])
    return Entry(name, t.Function(arguments, ()), Region([Block(args, maker.ops)]))

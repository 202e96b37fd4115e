"""Every rule of `tileaa-canonicalize` keeps what random programs compute: compiled and run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import tile_sim
from support.functions import function
from support.making import Arrays, Making, numbers, shape_of
from support.tiles import Kernel, ptx_of, tile
from tile_tileaa.canonical import rules

Maker = Callable[[np.random.Generator], tuple[Kernel, Arrays]]
MAKERS: dict[str, Maker] = {}
MAKERS_WANTED = set(rules.statistics)
SEEDS = 3
RELAXED = 'mem_semantic = "relaxed", mem_scope = "gpu"'
WEAK = 'mem_semantic = "weak"'
TOKEN = "!nv_tileaa.mem_token"


def evaluates(rule: str) -> Callable[[Maker], Maker]:
    """The decorated function makes a kernel to which `rule` applies, and its arguments."""

    def register(maker: Maker) -> Maker:
        assert rule not in MAKERS
        MAKERS[rule] = maker
        return maker

    return register


def canonical(text: str) -> tuple[str, Counter[str]]:
    with function(text) as func:
        applied = rules.apply(func.operation)
        gpu_module = func.operation.parent
        assert gpu_module is not None
        module = gpu_module.parent
        assert module is not None
        assert module.verify()
        return str(module), applied


def outcome(text: str, arrays: Arrays, level: int) -> Arrays:
    own = [np.copy(value) if isinstance(value, np.ndarray) else value for value in arrays]
    module = tile_sim.Module(ptx_of(text, "sm_90", level))
    module.launch("kernel", (1, 1, 1), None, own, check=True)
    return own


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("rule", sorted(MAKERS_WANTED))
def test_results_stay(rule: str, seed: int) -> None:
    kernel, arrays = MAKERS[rule](np.random.default_rng(seed))
    before = kernel.text()
    after, applied = canonical(before)
    assert applied[rule] >= 1, applied
    level = seed % 3
    plain, changed = outcome(before, arrays, level), outcome(after, arrays, level)
    assert any(np.any(x != y) for x, y in zip(plain, arrays, strict=True)), (
        "the kernel does nothing"
    )
    for x, y in zip(plain, changed, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


# -- how the kernels are made -------------------------------------------------------------------


def one_float(rng: np.random.Generator) -> np.float32:
    return np.float32(rng.standard_normal())


@evaluates("reshape-to-itself")
def _(rng):
    m, shape = Making(rng), shape_of(rng)
    type_ = tile(shape, "f32")
    x = m.load(shape)
    m.store(m.op(f'"nv_tileaa.view"({x}) : ({type_}) -> {type_}'), shape)
    return m.done()


@evaluates("view-of-view")
def _(rng):
    m, shapes = Making(rng), [(64,), shape_of(rng, rank=2), shape_of(rng, rank=3)]
    x = m.load(shapes[0])
    for old, new in pairwise(shapes):
        x = m.op(f'"nv_tileaa.view"({x}) : ({tile(old, "f32")}) -> {tile(new, "f32")}')
    m.store(x, shapes[2])
    return m.done()


@evaluates("reshape-of-splat")
def _(rng):
    m, shape = Making(rng), shape_of(rng, rank=2)
    thin = (1, shape[1])
    if rng.integers(2):
        x = m.scalar("f32", one_float(rng))
        x = m.op(f'"nv_tileaa.splat"({x}) : (f32) -> {tile(thin, "f32")}')
    else:
        x = m.op(f"arith.constant dense<{float(one_float(rng)):e}> : {tile(thin, 'f32')}")
    x = m.op(f'"nv_tileaa.broadcast"({x}) : ({tile(thin, "f32")}) -> {tile(shape, "f32")}')
    m.store(x, shape)
    return m.done()


@evaluates("assume-of-splat")
def _(rng):
    m, shape = Making(rng), shape_of(rng)
    type_ = tile(shape, "i32")
    x = m.scalar("i32", np.int32(16 * rng.integers(-50, 50)))
    x = m.op(f'"nv_tileaa.splat"({x}) : (i32) -> {type_}')
    predicate = rng.choice(
        ['kind = "div_by", divisor = 16 : i64', 'kind = "bounded", lb = -800 : i64, ub = 800 : i64']
    )
    x = m.op(f'"nv_tileaa.assume"({x}) {{predicate = {{{predicate}}}}} : ({type_}) -> {type_}')
    m.store(x, shape, "i32")
    return m.done()


@evaluates("unused-results-of-pragma")
def _(rng):
    m, shape = Making(rng), shape_of(rng)
    type_, x, y = tile(shape, "f32"), m.load(shape), m.name()
    used = int(rng.integers(3))
    m.kernel.op(f'{y}:3 = "nv_tileaa.pragma"({x}) ({{')
    m.kernel.op(f"^bb0(%held: {type_}):")
    m.kernel.op(f"%sum = arith.addf %held, %held : {type_}")
    m.kernel.op(f"%square = arith.mulf %held, %held : {type_}")
    m.kernel.op(f'"nv_tileaa.yield"(%held, %sum, %square) : ({", ".join([type_] * 3)}) -> ()')
    m.kernel.op(f"}}) : ({type_}) -> ({', '.join([type_] * 3)})")
    m.store(f"{y}#{used}", shape)
    return m.done()


@evaluates("select-of-splats")
def _(rng):
    m, shape = Making(rng), shape_of(rng)
    type_, flags = tile(shape, "f32"), tile(shape, "i1")
    x, y = (m.scalar("f32", one_float(rng)) for _ in range(2))
    flag = m.op(f"arith.cmpf {rng.choice(['olt', 'ogt'])}, {x}, {y} : f32")
    arms = [m.op(f'"nv_tileaa.splat"({v}) : (f32) -> {type_}') for v in (x, y)]
    if rng.integers(2):
        flag = m.op(f'"nv_tileaa.splat"({flag}) : (i1) -> {flags}')
        m.store(m.op(f"arith.select {flag}, {arms[0]}, {arms[1]} : {flags}, {type_}"), shape)
    else:
        m.store(m.op(f"arith.select {flag}, {arms[0]}, {arms[1]} : {type_}"), shape)
    return m.done()


@evaluates("comparison-of-extended")
def _(rng):
    m, shape = Making(rng), shape_of(rng)
    narrow, wide, flags = (tile(shape, element) for element in ("i32", "i64", "i1"))
    kind = rng.choice(["extsi", "extui"])
    predicate = rng.choice(["eq", "slt", "sge", "ult", "uge", "ule", "sgt"])
    x = m.op(f"arith.{kind} {m.load(shape, 'i32')} : {narrow} to {wide}")
    y = m.op(f"arith.{kind} {m.scalar('i32', int(rng.integers(-3, 4)))} : i32 to i64")
    y = m.op(f'"nv_tileaa.splat"({y}) : (i64) -> {wide}')
    order = [x, y] if rng.integers(2) else [y, x]
    flag = m.op(f"arith.cmpi {predicate}, {order[0]}, {order[1]} : {wide}")
    more = m.op(f"arith.{kind} {m.load(shape, 'i32')} : {narrow} to {wide}")
    both = m.op(
        f"arith.andi {flag}, {m.op(f'arith.cmpi {predicate}, {x}, {more} : {wide}')} : {flags}"
    )
    numbers_ = [m.op(f"arith.constant dense<{v}> : {narrow}") for v in (3, 5, 7)]
    first = m.op(f"arith.select {flag}, {numbers_[0]}, {numbers_[1]} : {flags}, {narrow}")
    m.store(m.op(f"arith.select {both}, {numbers_[2]}, {first} : {flags}, {narrow}"), shape, "i32")
    return m.done()


@evaluates("power-without-subnormals")
def _(rng):
    m, shape = Making(rng), shape_of(rng)
    wide, narrow, flags = tile(shape, "f32"), tile(shape, "f16"), tile(shape, "i1")
    m.kernel.load(x := m.name(), shape, "f32")  # powers from overflow over subnormals to zero
    m.arrays.append(rng.uniform(-160, 140, shape).astype(np.float32))
    power = m.op(f'"nv_tileaa.exp2"({x}) : ({wide}) -> {wide}')
    if rng.integers(2):
        flag = m.op(f"arith.cmpf olt, {x}, {m.load(shape)} : {wide}")
        power = m.op(f"arith.select {flag}, {power}, {m.load(shape)} : {flags}, {wide}")
    half = m.op(f'"nv_tileaa.fp_to_fp"({power}) : ({wide}) -> {narrow}')
    one = m.op(f"arith.constant dense<1.0> : {wide}")
    order = [one, power] if rng.integers(2) else [power, one]
    kind = rng.choice(["addf", "subf"])
    total = m.op(f'"nv_tileaa.{kind}"({order[0]}, {order[1]}) : ({wide}, {wide}) -> {wide}')
    m.store(half, shape, "f16")
    m.store(total, shape)
    return m.done()


def _store_scalar(m: Making, value: str) -> None:
    m.store(m.op(f'"nv_tileaa.splat"({value}) : (f32) -> tensor<8xf32>'), (8,))


@evaluates("extract-of-splat")
def _(rng):
    m, ones = Making(rng), (1,) * int(rng.integers(1, 4))
    type_ = tile(ones, "f32")
    if rng.integers(2):
        x = m.op(f'"nv_tileaa.splat"({m.scalar("f32", one_float(rng))}) : (f32) -> {type_}')
    else:
        x = m.op(f"arith.constant dense<{float(one_float(rng)):e}> : {type_}")
    _store_scalar(m, m.op(f'"nv_tileaa.extract"({x}) : ({type_}) -> f32'))
    return m.done()


@evaluates("extract-of-reshape")
def _(rng):
    m, ones = Making(rng), (1,) * int(rng.integers(1, 3))
    x, before = m.load(ones), tile(ones, "f32")
    way = rng.integers(3)
    if way == 0:
        after = tile((*ones, 1), "f32")
        x = m.op(f'"nv_tileaa.expand_dims"({x}) {{axis = 0 : i32}} : ({before}) -> {after}')
    elif way == 1:
        after = tile((1, 1, 1), "f32")
        x = m.op(f'"nv_tileaa.view"({x}) : ({before}) -> {after}')
    else:
        after, axes = before, ", ".join(map(str, reversed(range(len(ones)))))
        x = m.op(
            f'"nv_tileaa.permute"({x}) {{permutation = array<i32: {axes}>}} : ({before}) -> {after}'
        )
        x = m.op(f'"nv_tileaa.view"({x}) : ({after}) -> tensor<1x1x1xf32>')
        after = "tensor<1x1x1xf32>"
    _store_scalar(m, m.op(f'"nv_tileaa.extract"({x}) : ({after}) -> f32'))
    return m.done()


@evaluates("extract-of-elementwise")
def _(rng):
    m, ones = Making(rng), (1,) * int(rng.integers(1, 3))
    type_ = tile(ones, "f32")
    x, y = m.load(ones), m.load(ones)
    way = rng.integers(3)
    if way == 0:
        word = rng.choice(["addf", "subf", "mulf", "divf"])
        flags = rng.choice(["", '{rounding_mode = "zero"}', "{ftz}"]) if word != "divf" else ""
        x = m.op(f'"nv_tileaa.{word}"({x}, {y}) {flags} : ({type_}, {type_}) -> {type_}')
    elif way == 1:
        x = m.op(f"arith.maximumf {x}, {y} : {type_}")
    else:
        flag = m.op(f"arith.cmpf olt, {x}, {y} : {type_}")
        x = m.op(f"arith.select {flag}, {x}, {y} : {tile(ones, 'i1')}, {type_}")
    _store_scalar(m, m.op(f'"nv_tileaa.extract"({x}) : ({type_}) -> f32'))
    return m.done()


def _read(m: Making, pointer: str, element: str = "i32") -> None:
    """Store what a pointer points to."""
    sizes = "operandSegmentSizes = array<i32: 1, 0, 0, 0>"
    name = m.name()
    m.kernel.op(
        f'{name}:2 = "nv_tileaa.load"({pointer}) {{{WEAK}, {sizes}}} : '
        f"(!nv_tileaa.ptr<{element}, 1 : i32>) -> ({element}, {TOKEN})"
    )
    m.store(
        m.op(f'"nv_tileaa.splat"({name}#0) : ({element}) -> tensor<8x{element}>'), (8,), element
    )


@evaluates("no-offset")
def _(rng):
    m = Making(rng)
    base = m.pointer(numbers(rng, (8,), "i32"), "i32")
    zero = m.op("arith.constant 0 : i32")
    p = "!nv_tileaa.ptr<i32, 1 : i32>"
    _read(m, m.op(f'"nv_tileaa.addptr"({base}, {zero}) : ({p}, i32) -> {p}'))
    return m.done()


@evaluates("addptr-of-addptr")
def _(rng):
    """Offsets far outside, which the second one takes back: they wrap as addresses do."""
    m, p = Making(rng), "!nv_tileaa.ptr<i32, 1 : i32>"
    base, place = m.pointer(numbers(rng, (64,), "i32"), "i32"), int(rng.integers(64))
    if rng.integers(2):
        far = int(rng.integers(-(1 << 62), 1 << 62))
        kind, steps = "i64", [m.scalar("i64", np.int64(n)) for n in (far, place - far)]
    else:
        far = int(rng.integers(-(1 << 30), 1 << 30))
        kind, steps = "i32", [m.op(f"arith.constant {n} : i32") for n in (far, place - far)]
    for step in steps:
        base = m.op(f'"nv_tileaa.addptr"({base}, {step}) : ({p}, {kind}) -> {p}')
    _read(m, base)
    return m.done()


def _masked(rng, name: str, truth: bool) -> tuple[Kernel, Arrays]:
    """A masked access, and one that waits for it."""
    m, n = Making(rng), 64
    place = m.pointers(numbers(rng, (n,), "i32"), "i32")
    value, token = m.load((n,), "i32"), bool(rng.integers(2))
    mask = m.op(f"arith.constant dense<{str(truth).lower()}> : tensor<{n}xi1>")
    types = [f"tensor<{n}x!nv_tileaa.ptr<i32, 1 : i32>>", f"tensor<{n}xi32>", f"tensor<{n}xi1>"]
    operands = [place, value, mask]
    if name == "load":  # what masked-off elements read comes last
        operands[1:], types[1:] = [mask, value], [types[2], types[1]]
    if token:
        operands.append(m.op(f'"nv_tileaa.create_mem_token"() : () -> {TOKEN}'))
        types.append(TOKEN)
    results = [f"tensor<{n}xi32>", TOKEN] if name == "load" else [TOKEN]
    found = m.name()
    m.kernel.op(
        f'{found}:{len(results)} = "nv_tileaa.{name}"({", ".join(operands)}) {{{WEAK}, '
        f"operandSegmentSizes = array<i32: 1, 1, 1, {int(token)}>}} : ({', '.join(types)}) -> "
        f"({', '.join(results)})"
    )
    again = m.name()
    m.kernel.op(
        f'{again}:2 = "nv_tileaa.load"({place}, {found}#{len(results) - 1}) {{{WEAK}, '
        f"operandSegmentSizes = array<i32: 1, 0, 0, 1>}} : ({types[0]}, {TOKEN}) -> "
        f"(tensor<{n}xi32>, {TOKEN})"
    )
    m.store(f"{again}#0", (n,), "i32")
    if name == "load":
        m.store(f"{found}#0", (n,), "i32")
    return m.done()


@evaluates("load-of-all")
def _(rng):
    return _masked(rng, "load", True)


@evaluates("load-of-nothing")
def _(rng):
    return _masked(rng, "load", False)


@evaluates("store-of-all")
def _(rng):
    return _masked(rng, "store", True)


@evaluates("store-of-nothing")
def _(rng):
    return _masked(rng, "store", False)


def _atomic(rng, name: str, values: list[str], more: str) -> tuple[Kernel, Arrays]:
    m = Making(rng)
    n, kind = 32, "i64" if rng.integers(2) else "i32"
    place = m.pointers(numbers(rng, (n,), kind), kind)
    words = [m.op(f"arith.constant dense<{v}> : tensor<{n}x{kind}>") for v in values]
    types = [f"tensor<{n}x!nv_tileaa.ptr<{kind}, 1 : i32>>", *[f"tensor<{n}x{kind}>"] * len(words)]
    found, ones = m.name(), ", ".join(["1"] * (1 + len(words)))
    m.kernel.op(
        f'{found}:2 = "nv_tileaa.{name}"({", ".join([place, *words])}) {{{RELAXED}{more}, '
        f"operandSegmentSizes = array<i32: {ones}, 0, 0>}} : ({', '.join(types)}) -> "
        f"(tensor<{n}x{kind}>, {TOKEN})"
    )
    m.store(f"{found}#0", (n,), kind)
    return m.done()


@evaluates("rmw-of-nothing")
def _(rng):
    mode, neutral = [("add", 0), ("or", 0), ("xor", 0), ("and", -1)][int(rng.integers(4))]
    return _atomic(rng, "atomic_rmw", [str(neutral)], f', rmw_mode = "{mode}"')


@evaluates("cas-of-itself")
def _(rng):
    value = str(rng.integers(-5, 5))
    return _atomic(rng, "atomic_cas", [value, value], "")


def _dot(rng, operands: list[str] | None) -> tuple[Kernel, Arrays]:
    """A product of bytes; `operands`: dense texts of a, b and c, None for what is loaded."""
    m, (rows, columns, deep) = Making(rng), (8, 16, 8)
    shapes = ((rows, deep), (deep, columns), (rows, columns))
    kinds, values = ("i8", "i8", "i32"), []
    for at, (shape, kind) in enumerate(zip(shapes, kinds, strict=True)):
        text = operands[at] if operands else None
        if text is None:
            values.append(m.load(shape, kind))
        else:
            values.append(m.op(f"arith.constant dense<{text}> : {tile(shape, kind)}"))
    signs = [rng.choice(["signed", "unsigned"]) for _ in range(2)]
    types = ", ".join(tile(shape, kind) for shape, kind in zip(shapes, kinds, strict=True))
    found = m.op(
        f'"nv_tileaa.dot"({", ".join(values)}) {{signedness_a = "{signs[0]}", signedness_b = '
        f'"{signs[1]}", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}} : ({types}) -> '
        f"{tile(shapes[2], 'i32')}"
    )
    m.store(found, shapes[2], "i32")
    return m.done()


@evaluates("product-with-zero")
def _(rng):
    operands: list[Any] = [None, None, None]
    operands[int(rng.integers(2))] = "0"
    return _dot(rng, operands)


@evaluates("product-of-constants")
def _(rng):
    def dense(shape, kind):
        if rng.integers(3) == 0:
            return str(rng.integers(1, 100))
        return str(numbers(rng, shape, kind).tolist())

    return _dot(rng, [dense((8, 8), "i8"), dense((8, 16), "i8"), dense((8, 16), "i32")])


def test_every_rule_is_evaluated() -> None:
    assert set(MAKERS) == MAKERS_WANTED

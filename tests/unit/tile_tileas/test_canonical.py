"""`tileas-canonicalize`: what each rule leaves alone, and that programs compute the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tile_sim
from support.functions import function
from support.making import Arrays, Making
from support.tiles import Kernel, registry, tile
from tile_tileas.canonical import coalescing, rules

import tile_core
from tile_core.rewrite import Rewrites

RULES = {
    **dict.fromkeys(rules.statistics, rules),
    **dict.fromkeys(coalescing.statistics, coalescing),
}
Maker = Callable[[np.random.Generator], tuple[Kernel, Arrays]]
MAKERS: dict[str, Maker] = {}
SEEDS = 3

#: A loop that permutes what it carries, adds to it, and permutes it again.
_LOOP = """%s = arith.constant dense<1.0> : !c
%c = arith.constant 1 : i32
%r = scf.for %k = %c to %i step %c iter_args(%x = %s) -> (!c) : i32 {{
%0 = "nv_tileaa.permute"(%x) {{permutation = array<i32: {0}>}} : (!c) -> !c
%1 = arith.addf %0, {2} : !c
%2 = "nv_tileaa.permute"(%1) {{permutation = array<i32: {1}>}} : (!c) -> !c
scf.yield %2 : !c
}}"""
EXTRACT = '%r = "nv_tileas.extract_slice"'
UNCHANGED: dict[str, tuple[str, ...]] = {
    "splat-of-constant": (
        '%r = "nv_tileaa.splat"(%i) : (i32) -> tensor<8xi32>',
        '%c = arith.constant true\n%r = "nv_tileaa.splat"(%c) : (i1) -> tensor<8xi1>',
    ),
    "slice-of-the-whole": (f"{EXTRACT}(%t, %i) : (!t, i32) -> !p",),
    "slice-of-splat": (
        "%d = arith.constant dense<[1.0, 2.0]> : !p\n"
        f"{EXTRACT}(%d, %i) : (!p, i32) -> tensor<1xf32>",
    ),
    "slice-of-insertion": (
        # Perhaps another place; a part of another shape.
        f'%0 = "nv_tileas.insert_slice"(%p, %t, %i) : (!p, !t, i32) -> !t\n'
        f"{EXTRACT}(%0, %j) : (!t, i32) -> !p",
        f'%0 = "nv_tileas.insert_slice"(%p, %t, %i) : (!p, !t, i32) -> !t\n'
        f"{EXTRACT}(%0, %i) : (!t, i32) -> tensor<4xf32>",
    ),
    "slice-beside-insertion": (
        f'%c = arith.constant 1 : i32\n%0 = "nv_tileas.insert_slice"(%p, %t, %i) : '
        f"(!p, !t, i32) -> !t\n{EXTRACT}(%0, %c) : (!t, i32) -> !p",
    ),
    "insertion-of-the-whole": ('%r = "nv_tileas.insert_slice"(%p, %t, %i) : (!p, !t, i32) -> !t',),
    "slice-of-view": (
        f'%0 = "nv_tileas.view"(%t) : (!t) -> tensor<2x4xf32>\n'
        f"{EXTRACT}(%0, %i, %j) : (tensor<2x4xf32>, i32, i32) -> tensor<1x4xf32>",
    ),
    "insertion-after-branch": (
        "%r = scf.if %b -> !t {\nscf.yield %t : !t\n} else {\n"
        '%0 = "nv_tileas.insert_slice"(%p, %t, %i) : (!p, !t, i32) -> !t\nscf.yield %0 : !t\n}',
    ),
    "permuted-outside": (
        # Permuted, but not back; seen as it is carried, too.
        _LOOP.format("1, 2, 0", "1, 2, 0", "%0"),
        _LOOP.format("1, 2, 0", "2, 0, 1", "%x"),
    ),
    "nest-of-loops": (
        "%c = arith.constant 1 : i32\nscf.for %k = %c to %j step %c : i32 {\n"
        "scf.for %l = %c to %i step %c : i32 {\n}\n}",
    ),
}
HEAD = "!t = tensor<8xf32>\n!p = tensor<2xf32>\n!c = tensor<2x2x2xf32>\n"
ARGUMENTS = "%t: !t, %p: !p, %i: i32, %j: i32, %b: i1"


@pytest.mark.parametrize(
    ("rule", "at"), [(rule, at) for rule in UNCHANGED for at in range(len(UNCHANGED[rule]))]
)
def test_what_a_rule_leaves_alone(rule: str, at: int) -> None:
    source = f"{HEAD}func.func @f({ARGUMENTS}) {{\n{UNCHANGED[rule][at]}\nreturn\n}}"
    with function(source) as func:
        assert not rules.apply(func.operation)
        assert not coalescing.apply(func.operation)


def evaluates(rule: str) -> Callable[[Maker], Maker]:
    """The decorated function makes a kernel to which `rule` applies, and its arguments."""

    def register(maker: Maker) -> Maker:
        assert rule not in MAKERS
        MAKERS[rule] = maker
        return maker

    return register


def test_every_rule_has_cases() -> None:
    assert set(MAKERS) == set(UNCHANGED) == set(RULES)


def lowered(text: str) -> str:
    """The kernel in nv_tileas, before layouts."""
    name = "convert-tileaa-to-tileas"
    made = tile_core.compile(
        text, "sm_90", opt_level=2, start_at=name, stop_after=name, registry=registry()
    )
    return str(list(made.stages.values())[-1])


def canonical(text: str, which: Rewrites) -> tuple[str, Counter[str]]:
    with function(text) as func:
        applied = which.apply(func.operation)
        gpu_module = func.operation.parent
        assert gpu_module is not None
        module = gpu_module.parent
        assert module is not None
        assert module.verify()
        return str(module), applied


def outcome(text: str, arrays: Arrays, level: int) -> Arrays:
    own = [np.copy(value) if isinstance(value, np.ndarray) else value for value in arrays]
    made = tile_core.compile(
        text, "sm_90", opt_level=level, start_at="tileas-plan-accesses", emit="ptx",
        registry=registry(),
    )  # fmt: skip
    module = tile_sim.Module(str(made.stages["ptx"]))
    report = module.launch("kernel", (1, 1, 1), None, own, check=True)
    assert not report.findings
    return own


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("rule", sorted(RULES))
def test_results_stay(rule: str, seed: int) -> None:
    kernel, arrays = MAKERS[rule](np.random.default_rng(seed))
    before = lowered(kernel.text())
    after, applied = canonical(before, RULES[rule])
    assert applied[rule] >= 1, applied
    level = seed % 3
    plain, changed = outcome(before, arrays, level), outcome(after, arrays, level)
    assert any(np.any(x != y) for x, y in zip(plain, arrays, strict=True)), "nothing is done"
    for x, y in zip(plain, changed, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


# -- the kernels --------------------------------------------------------------------------------


def _index(m: Making, value: int, known: bool) -> str:
    return m.op(f"arith.constant {value} : i32") if known else m.scalar("i32", np.int32(value))


def _insert(m: Making, part: str, whole: str, place: str) -> str:
    return m.op(
        f'"nv_tileaa.insert_slice"({part}, {whole}, {place}) : '
        "(tensor<16xf32>, tensor<64xf32>, i32) -> tensor<64xf32>"
    )


def _extract(m: Making, whole: str, place: str) -> str:
    return m.op(
        f'"nv_tileaa.extract_slice"({whole}, {place}) : (tensor<64xf32>, i32) -> tensor<16xf32>'
    )


@evaluates("splat-of-constant")
def _(rng: np.random.Generator) -> Any:
    m = Making(rng)
    number = m.op(f"arith.constant {int(rng.integers(-9, 9))} : i32")
    x = m.op(f'"nv_tileaa.splat"({number}) : (i32) -> tensor<64xi32>')
    m.store(m.op(f"arith.sitofp {x} : tensor<64xi32> to tensor<64xf32>"), (64,))
    return m.done()


@evaluates("slice-of-the-whole")
def _(rng: np.random.Generator) -> Any:
    m = Making(rng)
    place = _index(m, int(rng.integers(-5, 5)), bool(rng.integers(2)))
    x = m.load((64,))
    x = m.op(f'"nv_tileaa.extract_slice"({x}, {place}) : (tensor<64xf32>, i32) -> tensor<64xf32>')
    m.store(x, (64,))
    return m.done()


@evaluates("slice-of-splat")
def _(rng: np.random.Generator) -> Any:
    m = Making(rng)
    place = _index(m, int(rng.integers(4)), bool(rng.integers(2)))
    number = np.float32(rng.standard_normal())
    if rng.integers(2):
        x = m.op(f'"nv_tileaa.splat"({m.scalar("f32", number)}) : (f32) -> tensor<64xf32>')
    else:
        x = m.op(f"arith.constant dense<{float(number):e}> : tensor<64xf32>")
    m.store(_extract(m, x, place), (16,))
    return m.done()


@evaluates("slice-of-insertion")
def _(rng: np.random.Generator) -> Any:
    """Indices that differ by the extent of the grid are the same."""
    m, place = Making(rng), int(rng.integers(4))
    known = bool(rng.integers(2))
    put = _index(m, place, known)
    taken = _index(m, place + 4 * int(rng.integers(-2, 3)), True) if known else put
    x = _insert(m, m.load((16,)), m.load((64,)), put)
    m.store(_extract(m, x, taken), (16,))
    return m.done()


@evaluates("slice-beside-insertion")
def _(rng: np.random.Generator) -> Any:
    m, place = Making(rng), int(rng.integers(4))
    other = place + int(rng.integers(1, 4)) + 4 * int(rng.integers(-2, 3))
    x = _insert(m, m.load((16,)), m.load((64,)), _index(m, place, True))
    m.store(_extract(m, x, _index(m, other, True)), (16,))
    return m.done()


@evaluates("insertion-of-the-whole")
def _(rng: np.random.Generator) -> Any:
    m = Making(rng)
    place = _index(m, int(rng.integers(-5, 5)), bool(rng.integers(2)))
    x, y = m.load((64,)), m.load((64,))
    whole = "tensor<64xf32>"
    x = m.op(f'"nv_tileaa.insert_slice"({x}, {y}, {place}) : ({whole}, {whole}, i32) -> {whole}')
    m.store(x, (64,))
    return m.done()


@evaluates("slice-of-view")
def _(rng: np.random.Generator) -> Any:
    """An axis of one element is put somewhere, or taken away."""
    m, at = Making(rng), int(rng.integers(3))
    wide = [8, 16]
    wide.insert(at, 1)
    shapes = [(8, 16), tuple(wide)]
    if rng.integers(2):
        shapes.reverse()
    source, view = ("x".join(map(str, (*shape, "f32"))) for shape in shapes)
    x = m.op(f'"nv_tileaa.view"({m.load(shapes[0])}) : (tensor<{source}>) -> tensor<{view}>')
    cut = tuple(extent // (1 if extent == 1 else 4) for extent in shapes[1])
    places = [_index(m, int(rng.integers(4)), bool(rng.integers(2))) for _ in cut]
    part = f"tensor<{'x'.join(map(str, (*cut, 'f32')))}>"
    types = ", ".join(["i32"] * len(cut))
    x = m.op(
        f'"nv_tileaa.extract_slice"({x}, {", ".join(places)}) : (tensor<{view}>, {types}) -> {part}'
    )
    m.store(x, cut)
    return m.done()


@evaluates("insertion-after-branch")
def _(rng: np.random.Generator) -> Any:
    m = Making(rng)
    place = _index(m, int(rng.integers(4)), bool(rng.integers(2)))
    parts, whole = [m.load((16,)), m.load((16,))], m.load((64,))
    flag = m.scalar("i32", np.int32(rng.integers(2)))
    zero = m.op("arith.constant 0 : i32")
    flag = m.op(f"arith.cmpi eq, {flag}, {zero} : i32")
    types = "(tensor<16xf32>, tensor<64xf32>, i32) -> tensor<64xf32>"
    arms = " } else { ".join(
        f'{name} = "nv_tileaa.insert_slice"({part}, {whole}, {place}) : {types} '
        f"scf.yield {name} : tensor<64xf32>"
        for name, part in zip((m.name(), m.name()), parts, strict=True)
    )
    m.store(m.op(f"scf.if {flag} -> (tensor<64xf32>) {{ {arms} }}"), (64,))
    return m.done()


@evaluates("permuted-outside")
def _(rng: np.random.Generator) -> Any:
    m = Making(rng)
    order = list(map(int, rng.permutation(3)))
    back = [order.index(axis) for axis in range(3)]
    shape = (2, 4, 8)
    inner = tile(tuple(shape[axis] for axis in order), "f32")
    outer, start = tile(shape, "f32"), m.load(shape)
    bounds = [m.op(f"arith.constant {n} : i32") for n in (0, int(rng.integers(1, 4)), 1)]
    i, x, there, more, again = (m.name() for _ in range(5))
    sum_ = m.op(
        f"scf.for {i} = {bounds[0]} to {bounds[1]} step {bounds[2]} iter_args({x} = {start}) -> "
        f"({outer}) : i32 {{\n"
        f'{there} = "nv_tileaa.permute"({x}) {{permutation = array<i32: {_listed(order)}>}} : '
        f"({outer}) -> {inner}\n{more} = arith.addf {there}, {there} : {inner}\n"
        f'{again} = "nv_tileaa.permute"({more}) {{permutation = array<i32: {_listed(back)}>}} : '
        f"({inner}) -> {outer}\nscf.yield {again} : {outer}\n}}"
    )
    m.store(sum_, shape)
    return m.done()


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


@evaluates("nest-of-loops")
def _(rng: np.random.Generator) -> Any:
    """Each iteration leaves a mark at a place of its own."""
    m, p = Making(rng), "!nv_tileaa.ptr<i32, 1 : i32>"
    marks = m.pointer(np.zeros(32 * 32, np.int32), "i32")
    bounds = []
    for _at in range(2):
        start, step = int(rng.integers(-3, 4)), int(rng.integers(1, 4))
        stop = start + int(rng.integers(1, 14))
        bounds.append([m.op(f"arith.constant {n} : i32") for n in (start, stop, step)])
    width, first = m.op("arith.constant 32 : i32"), m.op("arith.constant 264 : i32")
    (a, b, c), (d, e, f) = bounds
    i, j, row, at, inside, spot, kept = (m.name() for _ in range(7))
    m.kernel.op(
        f"scf.for {i} = {a} to {b} step {c} : i32 {{ scf.for {j} = {d} to {e} step {f} : i32 {{\n"
        f"{row} = arith.muli {i}, {width} : i32\n{at} = arith.addi {row}, {j} : i32\n"
        f"{inside} = arith.addi {at}, {first} : i32\n"
        f'{spot} = "nv_tileaa.addptr"({marks}, {inside}) : ({p}, i32) -> {p}\n'
        f'{kept} = "nv_tileaa.store"({spot}, {inside}) {{mem_semantic = "weak", '
        f"operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : ({p}, i32) -> !nv_tileaa.mem_token\n"
        "} }"
    )
    return m.done()

"""Matrix products, reductions, scans and atomics on every type, against exact numbers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tile_cudatile import evaluate, verify
from tile_cudatile import types as t
from tile_cudatile.attrs import Float, Integer
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.ops.constraints import BASE_FLOATS, INTS
from tile_cudatile.ops.enums import RMW_MODE
from tile_cudatile.tree import Block, Op, Region, Value
from unit.tile_cudatile import exact_floats as x
from unit.tile_cudatile.apply import operation, program
from unit.tile_cudatile.exact_floats import FORMATS, Number
from unit.tile_cudatile.integer_terms import edges, meaning, number
from unit.tile_cudatile.integer_terms import make as term
from unit.tile_cudatile.raw_runs import Writer, argument, cells, empty, patterns
from unit.tile_cudatile.rule_support import complaint

M, N, K = 4, 2, 32
Shapes = Sequence[tuple[int, ...]]


def accepted(name: str, shapes: Shapes, **attrs: Any) -> list[tuple[t.Scalar, ...]]:
    """The element types of operands with which the verifier accepts an operation."""
    spec = BODY_OPS.by_name[name]
    choices = [sorted(o.constraint.elements or (), key=str) for o in spec.operands]
    found = []
    for elements in itertools.product(*choices):
        tiles: list[Any] = [t.Tile(s, e) for s, e in zip(shapes, elements, strict=True)]
        if not complaint(name, tiles, [tiles[2]], **attrs):
            found.append(elements)
    return found


def multiply(
    name: str, shapes: Shapes, elements: Sequence[t.Scalar],
    given: Sequence[list[int]], **attrs: Any,
) -> list[int]:  # fmt: skip
    counts = [int(np.prod(s)) for s in shapes]
    out = empty(elements[2], counts[2])

    def build(ops: list[Op], *args: Value) -> None:
        writer = Writer(ops)
        tiles = [
            writer.emit("reshape", [writer.load(a, e, c)], t.Tile(s, e))
            for a, e, c, s in zip(args, elements, counts, shapes, strict=False)
        ]
        result = writer.emit(name, tiles, t.Tile(shapes[2], elements[2]), **attrs)
        flat = writer.emit("reshape", [result], t.Tile((counts[2],), elements[2]))
        writer.store(args[-1], flat, elements[2], counts[2])

    module = program(build, [*map(argument, elements), argument(elements[2])])
    verify(module)
    memory = [cells(e, g, c) for e, g, c in zip(elements, given, counts, strict=True)]
    evaluate(module, "k", (1,), [*memory, out])
    return patterns(elements[2], out, counts[2])


def draw(element: t.Scalar, count: int, seed: int) -> list[int]:
    """Patterns of finite numbers near 1, of 8-bit formats any finite number."""
    rng, format_ = random.Random(seed), FORMATS[element.name]
    found: list[int] = []
    while len(found) < count:
        bits = rng.getrandbits(format_.width)
        _, magnitude = format_.decode(bits)
        near = isinstance(magnitude, Fraction) and (magnitude == 0 or 2**-9 < magnitude < 2**9)
        if near:
            found.append(bits)
    return found


def drawn(elements: Sequence[t.Scalar], shapes: Shapes) -> list[list[int]]:
    pairs = zip(elements, shapes, strict=True)
    return [draw(e, int(np.prod(s)), i) for i, (e, s) in enumerate(pairs)]


def check(name: str, elements, shapes, given, factors) -> None:
    """Each element of the result is the exact sum of products, rounded once."""
    found = multiply(name, shapes, elements, given)
    result = FORMATS[elements[2].name]
    lhs, rhs = factors
    acc = [x.signed(FORMATS[elements[2].name].decode(b)) for b in given[2]]
    m, n = shapes[2][-2:]
    for row, column in itertools.product(range(m), range(n)):
        exact = acc[row * n + column] + sum(
            lhs[row * K + k] * rhs[k * n + column] for k in range(K)
        )
        got = result.decode(found[row * n + column])
        if got == result.round(x.of(exact)):
            continue
        assert isinstance(got[1], Fraction)
        # Sums in float64 are not exact for wide formats.
        error = abs(x.signed(got) - exact)
        assert error <= Fraction(51, 100) * result.step(abs(exact)), (elements, row, column)


@pytest.mark.parametrize("elements", accepted("mmaf", [(M, K), (K, N), (M, N)]), ids=str)
def test_float_products(elements: tuple[t.Scalar, ...]) -> None:
    shapes = [(M, K), (K, N), (M, N)]
    given = [
        draw(e, int(np.prod(s)), i) for i, (e, s) in enumerate(zip(elements, shapes, strict=True))
    ]
    factors = [
        [x.signed(FORMATS[e.name].decode(b)) for b in bits]
        for e, bits in zip(elements[:2], given[:2], strict=True)
    ]
    check("mmaf", elements, shapes, given, factors)


@pytest.mark.parametrize("block", [16, 32])
def test_scaled_products(block: int) -> None:
    shapes = [(M, K), (K, N), (M, N), (M, K // block), (K // block, N)]
    tried = accepted("mmaf_scaled", shapes)
    assert tried
    for elements in tried:
        given = [
            draw(e, int(np.prod(s)), i)
            for i, (e, s) in enumerate(zip(elements, shapes, strict=True))
        ]
        values = [
            [x.signed(FORMATS[e.name].decode(b)) for b in bits]
            for e, bits in zip(elements, given, strict=True)
        ]
        parts = K // block
        lhs = [v * values[3][i // K * parts + i % K // block] for i, v in enumerate(values[0])]
        rhs = [v * values[4][i // N // block * N + i % N] for i, v in enumerate(values[1])]
        check("mmaf_scaled", elements, shapes, given, (lhs, rhs))


@pytest.mark.parametrize(
    "signs", list(itertools.product(("signed", "unsigned"), repeat=2)), ids=str
)
def test_integer_products(signs: tuple[str, str]) -> None:
    shapes = [(2, M, K), (2, K, N), (2, M, N)]
    rng = random.Random(5)
    given = [
        [rng.getrandbits(8) for _ in range(2 * M * K)],
        [rng.getrandbits(8) for _ in range(2 * K * N)],
        [rng.getrandbits(32) for _ in range(2 * M * N)],
    ]
    found = multiply(
        "mmai", shapes, (t.I8, t.I8, t.I32), given, signedness_lhs=signs[0], signedness_rhs=signs[1]
    )

    def read(bits: int, sign: str) -> int:
        return bits - 256 if sign == "signed" and bits > 127 else bits

    for b, m, n in itertools.product(range(2), range(M), range(N)):
        total = given[2][(b * M + m) * N + n]
        for k in range(K):
            left, right = given[0][(b * M + m) * K + k], given[1][(b * K + k) * N + n]
            total += read(left, signs[0]) * read(right, signs[1])
        assert found[(b * M + m) * N + n] == total & 0xFFFFFFFF


# Reductions.

_COMBINE = {"addi": {"overflow": "none"}, "maxi": {"signedness": "signed"}, "xori": {},
            "mini": {"signedness": "unsigned"}}  # fmt: skip


def aggregate(op: str, body: str, element: t.Scalar, given: list[int], attrs: dict, **own: Any):
    """A reduction or scan of a 2x8 tile along its second dimension."""
    tile, scalar = t.Tile((2, 8), element), t.Tile((), element)
    shape = (2,) if op == "reduce" else (2, 8)
    count = int(np.prod(shape))
    out = empty(element, count)
    identity = {"mini": (1 << element.width) - 1, "maxi": 1 << element.width - 1}.get(body, 0)
    identities = ((Float if element.is_float else Integer)(element, identity),)
    args = (Value(scalar), Value(scalar))
    inner = operation(body, list(args), [scalar], **attrs)
    block = Block(args, [inner, operation("yield", [(inner.result,)], [])])

    def build(ops: list[Op], source: Value, target: Value) -> None:
        writer = Writer(ops)
        value = writer.emit("reshape", [writer.load(source, element, 16)], tile)
        made = writer.emit(
            op,
            [(value,)],
            t.Tile(shape, element),
            dim=1,
            identities=identities,
            **own,
        )
        ops[-1].regions = (Region([block]),)
        writer.store(
            target, writer.emit("reshape", [made], t.Tile((count,), element)), element, count
        )

    module = program(build, [argument(element)] * 2)
    verify(module)
    evaluate(module, "k", (1,), [cells(element, given, 16), out])
    return patterns(element, out, count)


@pytest.mark.parametrize("element", INTS, ids=str)
@pytest.mark.parametrize("body", _COMBINE)
def test_integer_reductions_and_scans(body: str, element: t.Scalar) -> None:
    rng, attrs = random.Random(3), _COMBINE[body]
    given = [rng.choice(edges(element)) for _ in range(16)]

    def together(values: list[int]) -> list[int]:
        found = [values[0]]
        for value in values[1:]:
            pair = (number(value, element), number(found[-1], element))
            result = meaning(term(body, *pair, **attrs), {})
            assert result is not None
            found.append(result)
        return found

    prefixes = [together(given[:8]), together(given[8:])]
    assert aggregate("reduce", body, element, given, attrs) == [p[-1] for p in prefixes]
    found = aggregate("scan", body, element, given, attrs, reverse=False)
    assert found == [*prefixes[0], *prefixes[1]]
    backwards = [together(given[7::-1])[::-1], together(given[:7:-1])[::-1]]
    found = aggregate("scan", body, element, given, attrs, reverse=True)
    assert found == [*backwards[0], *backwards[1]]


@pytest.mark.parametrize("element", BASE_FLOATS, ids=str)
def test_float_reductions_and_scans(element: t.Scalar) -> None:
    """Of whole numbers, whose sums are exact in any order."""
    format_ = FORMATS[element.name]
    rng = random.Random(4)
    values = [rng.randrange(-8, 9) for _ in range(16)]
    given = [int(format_.encode(x.of(Fraction(v)))) for v in values]
    attrs = {"rounding_mode": "nearest_even"}
    found = aggregate("reduce", "addf", element, given, attrs)
    decoded = [x.signed(format_.decode(f)) for f in found]
    assert decoded == [sum(values[:8]), sum(values[8:])]
    found = aggregate("scan", "addf", element, given, attrs, reverse=False)
    expected = list(itertools.accumulate(values[:8])) + list(itertools.accumulate(values[8:]))
    assert [x.signed(format_.decode(f)) for f in found] == expected


# Atomics.

_MODES = {
    "and": ("andi", {}), "or": ("ori", {}), "xor": ("xori", {}),
    "add": ("addi", {"overflow": "none"}), "max": ("maxi", {"signedness": "signed"}),
    "min": ("mini", {"signedness": "signed"}),
    "umax": ("maxi", {"signedness": "unsigned"}), "umin": ("mini", {"signedness": "unsigned"}),
}  # fmt: skip
_ORDER = {"memory_ordering_semantics": "relaxed", "memory_scope": "device"}


def updated(mode: str, element: t.Scalar, old: int, new: int) -> int | None:
    if mode == "xchg":
        return new
    if mode == "addf":
        format_ = FORMATS[element.name]
        total: Number = x.add(format_.decode(old), format_.decode(new))
        return format_.encode(format_.round(total))  # type: ignore[return-value]
    name, attrs = _MODES[mode]
    return meaning(term(name, number(old, element), number(new, element), **attrs), {})


def atomic_cases() -> list[tuple[str, t.Scalar]]:
    found = []
    for mode in RMW_MODE:
        for element in (*INTS, *BASE_FLOATS):
            tile, lanes = t.Tile((2,), element), t.Tile((2,), t.Pointer(element))
            if not complaint("atomic_rmw_tko", [lanes, tile], [tile, t.TOKEN], mode=mode, **_ORDER):
                found.append((mode, element))
    return found


@pytest.mark.parametrize(("mode", "element"), atomic_cases(), ids=str)
def test_atomic_updates(mode: str, element: t.Scalar) -> None:
    values = FORMATS[element.name].edges() if element.is_float else edges(element)
    pairs = list(itertools.product(values, repeat=2))[:512]
    count = 1 << (len(pairs) - 1).bit_length()
    pairs += [pairs[0]] * (count - len(pairs))
    memory, old = cells(element, [a for a, _ in pairs], count), empty(element, count)
    tile = t.Tile((count,), element)

    def build(ops: list[Op], *args: Value) -> None:
        writer = Writer(ops)
        new = writer.load(args[1], element, count)
        where = writer.addresses(args[0], element, count)
        before = writer.emit("atomic_rmw_tko", [where, new], tile, t.TOKEN, mode=mode, **_ORDER)
        writer.store(args[2], before, element, count)

    module = program(build, [argument(element)] * 3)
    verify(module)
    evaluate(module, "k", (1,), [memory, cells(element, [b for _, b in pairs], count), old], seed=1)
    assert patterns(element, old, count) == [a for a, _ in pairs]
    for (a, b), found in zip(pairs, patterns(element, memory, count), strict=True):
        expected = updated(mode, element, a, b)
        if expected == x.NAN:
            assert FORMATS[element.name].decode(found)[1] == x.NAN
        else:
            assert found == expected, (a, b)


@pytest.mark.parametrize("element", [t.I32, t.I64, t.F32, t.F64], ids=str)
def test_compare_and_swap_is_of_bits(element: t.Scalar) -> None:
    sign = 1 << element.width - 1
    nan = (1 << element.width - 1) - 5
    held, wanted, new = [0, 0, nan, nan], [0, sign, nan, nan - 1], [1, 1, 2, 2]
    memory, old = cells(element, held, 4), empty(element, 4)
    tile = t.Tile((4,), element)

    def build(ops: list[Op], *args: Value) -> None:
        writer = Writer(ops)
        operands = [writer.load(a, element, 4) for a in args[1:3]]
        where = writer.addresses(args[0], element, 4)
        before = writer.emit("atomic_cas_tko", [where, *operands], tile, t.TOKEN, **_ORDER)
        writer.store(args[3], before, element, 4)

    module = program(build, [argument(element)] * 4)
    verify(module)
    evaluate(module, "k", (1,), [memory, cells(element, wanted, 4), cells(element, new, 4), old])
    assert patterns(element, memory, 4) == [1, 0, 2, nan]
    assert patterns(element, old, 4) == held


@pytest.mark.parametrize("mode", [m for m in RMW_MODE if m != "xchg"])
def test_atomic_updates_of_views(mode: str) -> None:
    element = t.F32 if mode == "addf" else t.I32
    values = [3, 5, 6, 9] if element == t.I32 else [0x40400000, 0x3F800000, 0, 0xC0000000]
    memory, shape = cells(element, values, 4), t.Tile((), t.I32)
    tensor = t.TensorView(element, (4,), (1,))
    view = t.PartitionView((2,), tensor, (0,))

    def build(ops: list[Op], base: Value, source: Value, index: Value) -> None:
        writer = Writer(ops)
        made = writer.emit(
            "make_partition_view", [writer.emit("make_tensor_view", [base, (), ()], tensor)], view
        )
        value = writer.load(source, element, 2)
        writer.emit("atomic_red_view_tko", [made, (index,), value], t.TOKEN, mode=mode, **_ORDER)

    module = program(build, [argument(element), argument(element), shape])
    verify(module)
    evaluate(module, "k", (1,), [memory, cells(element, values[:2], 2), 1])
    changed = [updated(mode, element, a, b) for a, b in zip(values[2:], values[:2], strict=True)]
    assert patterns(element, memory, 4) == [*values[:2], *changed]

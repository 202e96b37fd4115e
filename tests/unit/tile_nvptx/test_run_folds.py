"""Scans and reductions of several operands, compiled and run, against the reference evaluator."""

import numpy as np
import pytest
from support.programs import STRATEGIES, Program, number, numbers
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of


def scalar(element):
    return t.Tile((), element)


def zeros(shape, element):
    return np.zeros(shape, dtype_of(element))


def total(p, element):
    """A region that adds, in floats or integers."""

    def build(e, acc):
        if element.is_float:
            return [p.emit("addf", [e, acc], scalar(element), rounding_mode="nearest_even")]
        return [p.emit("addi", [e, acc], scalar(element))]

    return p.region([scalar(element)] * 2, build)


def affine(p):
    """(a, b) after (c, d): x -> a * (c * x + d) + b; associative, but not commutative."""
    i32 = scalar(t.I32)

    def build(a, c, b, d):
        scaled = p.emit("muli", [a, d], i32)
        return [p.emit("muli", [a, c], i32), p.emit("addi", [scaled, b], i32)]

    return p.region([i32] * 4, build)


# The last three are split over warps: all of them, and two for each of two rows.
SHAPES = [
    ((1,), 0), ((8,), 0), ((4, 64), 1), ((64, 4), 0), ((2, 16, 32), 1), ((512,), 0), ((2, 512), 1),
    ((512, 2), 0),
]  # fmt: skip


@pytest.mark.parametrize("strategy", STRATEGIES[:-1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_prefix_sums(shape, axis, reverse, strategy):
    p = Program()
    tile = t.Tile(shape, t.F32)
    x = p.load(shape, t.F32)
    y = p.emit(
        "scan", [(x,)], tile, dim=axis, reverse=reverse, identities=(number(t.F32, 0),),
        regions=[total(p, t.F32)],
    )  # fmt: skip
    p.store(y, shape, t.F32)
    p.agrees(numbers(shape, t.F32), zeros(shape, t.F32), strategy=strategy)


@pytest.mark.parametrize("element", [t.I8, t.I16, t.I64, t.F16, t.BF16, t.F64], ids=str)
@pytest.mark.parametrize("shape", [(4, 64), (1, 512)])
def test_prefix_sums_in_every_type(element, shape):
    p = Program()
    x = p.load(shape, element)
    y = p.emit(
        "scan", [(x,)], t.Tile(shape, element), dim=1, reverse=False,
        identities=(number(element, 0),), regions=[total(p, element)],
    )  # fmt: skip
    p.store(y, shape, element)
    p.agrees(numbers(shape, element, 2), zeros(shape, element))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES[2:])
def test_scan_keeps_the_order_of_a_composition(shape, axis, reverse):
    p, tile = Program(), t.Tile(shape, t.I32)
    a, b = p.load(shape, t.I32), p.load(shape, t.I32)
    p.emit(
        "scan", [(a, b)], tile, tile, dim=axis, reverse=reverse,
        identities=(number(t.I32, 1), number(t.I32, 0)), regions=[affine(p)],
    )  # fmt: skip
    both = p.ops[-1].results
    for value in both:
        p.store(value, shape, t.I32)
    p.agrees(
        numbers(shape, t.I32, 1), numbers(shape, t.I32, 2), zeros(shape, t.I32),
        zeros(shape, t.I32),
    )  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES[2:])
def test_scan_passes_the_accumulator_before_the_element(shape, axis, reverse):
    """Against NumPy: a body that yields its second argument changes nothing."""
    p, tile, i32 = Program(), t.Tile(shape, t.I32), scalar(t.I32)
    x = p.load(shape, t.I32)
    found = p.emit(
        "scan", [(x,)], tile, dim=axis, reverse=reverse, identities=(number(t.I32, 0),),
        regions=[p.region([i32] * 2, lambda acc, e: [e])],
    )  # fmt: skip
    p.store(found, shape, t.I32)
    out, values = zeros(shape, t.I32), numbers(shape, t.I32, 1)
    p.agrees(values, out)
    np.testing.assert_array_equal(out, values)


def argmax(p, element):
    """(value, index) with the larger value; of equal ones whichever comes: ties are left open."""
    types = [scalar(element), scalar(element), scalar(t.I32), scalar(t.I32)]

    def build(e, acc, index, best):
        flag = p.emit(
            "cmpf", [e, acc], scalar(t.I1), comparison_predicate="greater_than",
            comparison_ordering="ordered",
        )  # fmt: skip
        return [
            p.emit("select", [flag, e, acc], scalar(element)),
            p.emit("select", [flag, index, best], scalar(t.I32)),
        ]

    return p.region(types, build)


def argmax_program(element, shape, axis):
    p = Program()
    x = p.load(shape, element)
    iota = p.emit("iota", [], t.Tile((shape[axis],), t.I32))
    ones = tuple(e if at == axis else 1 for at, e in enumerate(shape))
    places = p.emit("reshape", [iota], t.Tile(ones, t.I32))
    places = p.emit("broadcast", [places], t.Tile(shape, t.I32))
    rest = shape[:axis] + shape[axis + 1 :]
    p.emit(
        "reduce", [(x, places)], t.Tile(rest, element), t.Tile(rest, t.I32), dim=axis,
        identities=(number(element, -np.inf), number(t.I32, 0)), regions=[argmax(p, element)],
    )  # fmt: skip
    value, index = p.ops[-1].results
    p.store(value, rest or (1,), element)
    p.store(index, rest or (1,), t.I32)
    return p, rest or (1,)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("element", [t.F16, t.F32, t.F64], ids=str)
@pytest.mark.parametrize(("shape", "axis"), [((256,), 0), ((8, 32), 1), ((64, 8), 0)])
def test_argmax(shape, axis, element, strategy):
    p, rest = argmax_program(element, shape, axis)
    x = np.random.default_rng(5).permutation(np.prod(shape)).reshape(shape)
    p.agrees(
        x.astype(dtype_of(element)), zeros(rest, element), zeros(rest, t.I32), strategy=strategy
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_many_elements_in_each_thread(axis):
    """128 of them, folded chunk by chunk."""
    shape = (128, 128)
    p, rest = argmax_program(t.F32, shape, axis)
    x = np.random.default_rng(6).permutation(128 * 128).reshape(shape).astype(np.float32)
    p.agrees(x, zeros(rest, t.F32), zeros(rest, t.I32))


def add_up(p, x, element, shape, axis):
    """The sums of `x` along an axis are stored."""
    rest = shape[:axis] + shape[axis + 1 :]
    y = p.emit(
        "reduce", [(x,)], t.Tile(rest, element), dim=axis, identities=(number(element, 0),),
        regions=[total(p, element)],
    )  # fmt: skip
    p.store(y, rest, element)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("element", [t.I8, t.F16, t.F32, t.I64], ids=str)
@pytest.mark.parametrize("shape", [(128, 128), (16, 1024)])
def test_sums_of_columns_and_rows(shape, element, strategy):
    """Where each warp has a part of many columns, one thread folds those of a column for all
    (`partials`).
    """
    p = Program()
    x = p.load(shape, element)
    add_up(p, x, element, shape, 1)
    add_up(p, x, element, shape, 0)
    values = np.random.default_rng(7).integers(-1, 2, shape).astype(dtype_of(element))
    rows, columns = zeros(shape[:1], element), zeros(shape[1:], element)
    p.agrees(values, rows, columns, strategy=strategy)


@pytest.mark.parametrize("element", [t.F16, t.F32, t.F64], ids=str)
def test_largest_of_columns_and_sums_of_rows(element):
    """Two tiles that are folded together, with elements of two sizes."""
    shape = (16, 128)
    p, rest = argmax_program(element, shape, 0)
    loaded = next(op for op in p.ops if op.name == "load_view_tko").results[0]
    add_up(p, loaded, element, shape, 1)
    places = [np.random.default_rng(c).permutation(16) for c in range(128)]
    x = np.stack(places, axis=1).astype(dtype_of(element))
    p.agrees(x, zeros(rest, element), zeros(rest, t.I32), zeros(shape[:1], element))


def test_all_threads_agree_on_a_tie():
    """Every element is the largest; each copy of the answer has to name the same place."""
    p, rest = argmax_program(t.F32, (256,), 0)
    chosen = next(op for op in p.ops if op.name == "reduce").results[1]
    spread = p.emit("reshape", [chosen], t.Tile((1,), t.I32))
    spread = p.emit("broadcast", [spread], t.Tile((512,), t.I32))
    p.store(spread, (512,), t.I32)
    value, one, every = zeros(rest, t.F32), zeros(rest, t.I32), zeros((512,), t.I32)
    p.run(np.ones(256, np.float32), value, one, every)
    assert value[0] == 1
    assert 0 <= one[0] < 256
    np.testing.assert_array_equal(every, one[0])


#: Operation, its attributes, and the identity for elements of so many bits.
INTEGER_FOLDS = {
    "sum": ("addi", {}, lambda bits: 0),
    "all": ("andi", {}, lambda bits: -1),
    "any": ("ori", {}, lambda bits: 0),
    "parity": ("xori", {}, lambda bits: 0),
    "largest": ("maxi", {"signedness": "signed"}, lambda bits: -(1 << bits - 1)),
    "largest_unsigned": ("maxi", {"signedness": "unsigned"}, lambda bits: 0),
    "smallest": ("mini", {"signedness": "signed"}, lambda bits: (1 << bits - 1) - 1),
    "smallest_unsigned": ("mini", {"signedness": "unsigned"}, lambda bits: -1),
}


@pytest.mark.parametrize("element", [t.I8, t.I16, t.I32, t.I64], ids=str)
@pytest.mark.parametrize("fold", INTEGER_FOLDS)
def test_integers_of_a_warp(fold, element):
    """Up to 32 bits each, they fold in one instruction; whole warps, and parts of one."""
    name, attributes, identity = INTEGER_FOLDS[fold]
    bits = np.dtype(dtype_of(element)).itemsize * 8
    for shape, whole in ((4, 128), True), ((64, 8), False):
        p = Program()
        x = p.load(shape, element)
        fold_both = p.region(
            [scalar(element)] * 2,
            lambda a, b: [p.emit(name, [a, b], scalar(element), **attributes)],  # noqa: B023
        )
        tile = t.Tile(shape[:1], element)
        start = (number(element, identity(bits)),)
        y = p.emit("reduce", [(x,)], tile, dim=1, identities=start, regions=[fold_both])
        p.store(y, shape[:1], element)
        values = np.random.default_rng(3).integers(-(1 << bits - 1), (1 << bits - 1) - 1, shape)
        p.agrees(values.astype(dtype_of(element)), zeros(shape[:1], element))
        assert ("redux.sync" in p.ptx()) == (whole and bits <= 32)

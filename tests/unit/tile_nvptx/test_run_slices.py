"""permute, cat and extract, compiled and run, against the reference evaluator."""

from itertools import permutations, product

import numpy as np
import pytest
from support.programs import I32, STRATEGIES, Program, numbers
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of

ELEMENTS = (t.I1, t.I8, t.I16, t.I64, t.F16, t.BF16, t.F32, t.F64)


def zeros(shape, element):
    return np.zeros(shape, dtype_of(element))


@pytest.mark.parametrize("strategy", STRATEGIES[:-1])
@pytest.mark.parametrize("axes", [*permutations(range(3)), (1, 0), (3, 1, 0, 2)][::2])
def test_permute(axes, strategy):
    shape = ((32, 64), (4, 16, 8), (2, 4, 16, 8))[len(axes) - 2]
    result = tuple(shape[a] for a in axes)
    p = Program()
    x = p.load(shape, t.F32)
    p.store(p.emit("permute", [x], t.Tile(result, t.F32), permutation=axes), result, t.F32)
    source = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    p.agrees(source, zeros(result, t.F32), strategy=strategy)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_every_element_type(element):
    """A permutation, a concatenation and a slice in one."""
    p = Program()
    x, y = p.load((8, 16), element), p.load((16, 8), element)
    turned = p.emit("permute", [x], t.Tile((16, 8), element), permutation=(1, 0))
    both = p.emit("cat", [turned, y], t.Tile((16, 16), element), dim=1)
    index = p.argument(I32)
    part = p.emit("extract", [both, (index, index)], t.Tile((4, 4), element))
    p.store(both, (16, 16), element)
    p.store(part, (4, 4), element)
    a, b = numbers((8, 16), element, 1), numbers((16, 8), element, 2)
    p.agrees(a, b, 2, zeros((16, 16), element), zeros((4, 4), element))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((1,), 0), ((8,), 0), ((1024,), 0), ((16, 32), 0), ((16, 32), 1), ((4, 1, 8), 1)],
)
def test_cat(shape, dim, strategy):
    result = tuple(e * (1 + (at == dim)) for at, e in enumerate(shape))
    p = Program()
    x, y = p.load(shape, t.F16), p.load(shape, t.F16)
    p.store(p.emit("cat", [x, y], t.Tile(result, t.F16), dim=dim), result, t.F16)
    a = np.arange(np.prod(shape)).reshape(shape).astype(np.float16)
    p.agrees(a, -a - 1, zeros(result, t.F16), strategy=strategy)


@pytest.mark.parametrize(("strategy", "constant"), [*product(STRATEGIES, [False]), (1, True)])
@pytest.mark.parametrize(
    ("shape", "part", "index"),
    [
        ((16, 64), (16, 16), (0, 3)),
        ((16, 64), (4, 32), (2, 1)),
        ((4, 8, 16), (2, 8, 1), (1, 0, 9)),
        ((512,), (1,), (277,)),
    ],
)
def test_extract(shape, part, index, constant, strategy):
    check_extract(shape, part, index, constant, strategy)


def test_a_tile_too_large_for_shared_memory_is_cut_in_registers():
    check_extract((64, 256), (32, 256), (1, 0), False, 3)


def check_extract(shape, part, index, constant, strategy):
    p = Program()
    x = p.load(shape, t.I32)
    places = tuple(p.constant(I32, i) if constant else p.argument(I32) for i in index)
    p.store(p.emit("extract", [x, places], t.Tile(part, t.I32)), part, t.I32)
    source = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    p.agrees(source, *(() if constant else index), zeros(part, t.I32), strategy=strategy)


def check_insert(shape, part, index, constant, strategy, element=t.I32):
    p = Program()
    x, y = p.load(part, element), p.load(shape, element)
    places = tuple(p.constant(I32, i) if constant else p.argument(I32) for i in index)
    p.store(p.emit("insert", [x, y, places], t.Tile(shape, element)), shape, element)
    a, b = numbers(part, element, 1), numbers(shape, element, 2)
    p.agrees(a, b, *(() if constant else index), zeros(shape, element), strategy=strategy)


INSERTS = [((16, 64), (4, 32), (2, 1), False, strategy) for strategy in STRATEGIES]
INSERTS += [
    ((16, 64), (16, 16), (0, 3), True, "blocked"),
    ((4, 8, 16), (2, 8, 1), (1, 0, 9), False, 0),
    ((4, 8, 16), (2, 8, 1), (1, 0, 9), True, 1),
    ((512,), (1,), (277,), False, "blocked"),
]


@pytest.mark.parametrize(("shape", "part", "index", "constant", "strategy"), INSERTS)
def test_insert(shape, part, index, constant, strategy):
    check_insert(shape, part, index, constant, strategy)


@pytest.mark.parametrize("element", [t.I1, t.I8, t.BF16, t.F64], ids=str)
def test_every_element_type_is_inserted(element):
    check_insert((16, 16), (4, 8), (3, 1), False, "blocked", element)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_slice_too_large_for_shared_memory_is_inserted_in_registers(seed, monkeypatch):
    """With less memory than there is, so that the tile need not be large."""
    monkeypatch.setattr("tile_tileas.passes.assign_layouts.OPERATION_LIMIT", 64)
    check_insert((16, 32), (8, 16), (1, 0), False, seed)

"""Arithmetic in every rounding mode and float type, against the reference evaluator."""

import numpy as np
import pytest
from support.programs import Program
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of
from tile_cudatile.rules.arith import _conversion_modes

SHAPE = (256,)
DIRECTED = ("zero", "negative_inf", "positive_inf")
NAMES = {"addf": 2, "subf": 2, "mulf": 2, "divf": 2, "fma": 3, "sqrt": 1}


def numbers(element, seed):
    """Numbers near each other and far apart, and the special ones."""
    rng = np.random.default_rng(seed)
    wide = np.ldexp(rng.uniform(-2, 2, SHAPE), rng.integers(-14, 12, SHAPE))
    big, small = {t.F16: (65504, 2.0**-24), t.BF16: (3e38, 2.0**-133)}.get(element, (1e38, 1e-40))
    edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, big, -big, small, -small]
    wide[rng.permutation(SHAPE[0])[: 4 * len(edges)]] = np.resize(edges, 4 * len(edges))
    return wide.astype(dtype_of(element))


@pytest.mark.parametrize("mode", DIRECTED)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("element", [t.F16, t.BF16, t.F32], ids=str)
def test_directed_rounding(element, name, mode):
    p = Program()
    inputs = [p.load(SHAPE, element) for _ in range(NAMES[name])]
    p.store(p.emit(name, inputs, t.Tile(SHAPE, element), rounding_mode=mode), SHAPE, element)
    data = [numbers(element, seed) for seed in range(NAMES[name])]
    if name == "sqrt":
        data = [np.abs(x) for x in data]
    with np.errstate(all="ignore"):
        p.agrees(*data, np.zeros(SHAPE, dtype_of(element)))


@pytest.mark.parametrize("target", ["sm_80", "sm_120"])
@pytest.mark.parametrize("element", [t.F16, t.BF16], ids=str)
def test_scalars(element, target):
    """A sum of two scalars, the same on all targets."""
    p, one = Program(), t.Tile((), element)
    x, y = p.argument(one), p.argument(one)
    total = p.emit("addf", [x, y], one, rounding_mode="positive_inf")
    p.store(total, (1,), element)
    kind = dtype_of(element).type
    p.agrees(kind(1.0), kind(2.0**-12), np.zeros(1, kind), target=target)


CASTS = [
    (before, after, mode)
    for before in (t.F64, t.F32, t.BF16, t.F16, t.TF32, t.F8E4M3FN)
    for after in (t.F32, t.TF32, t.BF16, t.F16, t.F64)
    for mode in (*DIRECTED, "nearest_away")
    if before != after and mode in _conversion_modes(before, after)[0]
]


@pytest.mark.parametrize(("before", "after", "mode"), CASTS, ids=str)
def test_casts_in_every_mode(before, after, mode):
    p = Program()
    x = p.load(SHAPE, before)
    p.store(p.emit("ftof", [x], t.Tile(SHAPE, after), rounding_mode=mode), SHAPE, after)
    data = numbers(before, 1)
    if before == t.TF32:
        data = (data.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    ties = np.array([1 + 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-24, -1e-46, 1e300, -1e300, 7e4])
    with np.errstate(all="ignore"):
        if before in (t.F32, t.F64):
            data[:7] = ties.astype(data.dtype)
        p.agrees(data, np.zeros(SHAPE, dtype_of(after)))


def test_the_widest_power_of_two_is_cut_to_the_largest_f16():
    p = Program()
    raw = p.load((16,), t.I8)
    x = p.emit("bitcast", [raw], t.Tile((16,), t.F8E8M0FNU))
    y = p.emit("ftof", [x], t.Tile((16,), t.F16), rounding_mode="zero")
    p.store(y, (16,), t.F16)
    codes = np.arange(0, 256, 16, dtype=np.uint8)
    p.agrees(codes.view(np.int8), np.zeros(16, np.float16))

"""Arithmetic in every rounding mode and float type, against the reference evaluator."""

import numpy as np
import pytest
from support.programs import Program
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of

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

"""Divisions of several elements at once, against NumPy's, bit for bit."""

import numpy as np
import pytest
from support.tiles import Kernel, tile
from tile_nvptx.passes.tileas.device.division import DIVISORS, NUMERATORS, QUOTIENTS, RECIPROCALS

ROWS, COLUMNS = 32, 64
SHAPE, ROW = (ROWS, COLUMNS), (ROWS, 1)
EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 2.0**-126, 3.4e38, 1 / 3],
    np.float32,
)


def divided(numerators: np.ndarray, divisors: np.ndarray, target: str = "sm_90") -> np.ndarray:
    """As compiled code does it: each row by its own divisor, or each element."""
    kernel, shape = Kernel(), divisors.shape
    kernel.load("%a", SHAPE, "f32")
    kernel.load("%d", shape, "f32")
    whole, held = tile(SHAPE, "f32"), tile(shape, "f32")
    kernel.op(f'%b = "nv_tileaa.broadcast"(%d) : ({held}) -> {whole}' if shape == ROW else "")
    by = "%b" if shape == ROW else "%d"
    kernel.op(f'%q = "nv_tileaa.divf"(%a, {by}) : ({whole}, {whole}) -> {whole}')
    kernel.store("%q", SHAPE, "f32")
    assert "rcp.approx" in kernel.ptx(target, 2)
    out = np.zeros(numerators.size, np.float32)
    kernel.run(numerators.ravel(), divisors.ravel(), out, target=target)
    return out.reshape(SHAPE)


def inverted(divisors: np.ndarray, target: str = "sm_90") -> np.ndarray:
    """1 / d, as compiled code does it."""
    kernel, whole = Kernel(), tile(SHAPE, "f32")
    kernel.load("%d", SHAPE, "f32")
    kernel.op(f"%a = arith.constant dense<1.0> : {whole}")
    kernel.op(f'%q = "nv_tileaa.divf"(%a, %d) : ({whole}, {whole}) -> {whole}')
    kernel.store("%q", SHAPE, "f32")
    assert "rcp.approx" in kernel.ptx(target, 1)
    out = np.zeros(divisors.size, np.float32)
    kernel.run(divisors.ravel(), out, target=target)
    return out.reshape(SHAPE)


def spread(seed: int, least: int, most: int, size: tuple[int, ...]) -> np.ndarray:
    """Numbers of both signs, their exponents even over a range."""
    rng = np.random.default_rng(seed)
    exponents = rng.integers(least, most, size)
    return np.ldexp(rng.uniform(1, 2, size) * rng.choice((-1, 1), size), exponents).astype("f4")


def same(found: np.ndarray, numerators: np.ndarray, divisors: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        expected = numerators / divisors
    nan = np.isnan(expected)
    assert np.isnan(found[nan]).all()
    np.testing.assert_array_equal(found.view("u4")[~nan], expected.view("u4")[~nan])


def within(seed: int, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Numerators and divisors that are divided together: exponents over all of the bounds."""
    shared = shape == ROW
    divisors = np.abs(spread(seed, -DIVISORS if shared else -QUOTIENTS, DIVISORS, shape))
    numerators = spread(seed + 1, -NUMERATORS, NUMERATORS, SHAPE)
    if not shared:
        quotients = spread(seed + 1, -QUOTIENTS + 1, QUOTIENTS - 1, SHAPE)
        numerators = (quotients.astype("f8") * divisors).clip(-(2.0**127), 2.0**127).astype("f4")
        numerators[np.abs(numerators) < 2.0**-NUMERATORS] = 2.0**-NUMERATORS
    numerators[::3, ::5], numerators[1::3, ::5] = 0.0, -0.0
    return numerators, divisors


@pytest.mark.parametrize("shape", [ROW, SHAPE], ids=["rows", "each"])
@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
def test_what_lies_within_the_bounds(target, shape):
    numerators, divisors = within(1, shape)
    same(divided(numerators, divisors, target), numerators, divisors)


@pytest.mark.parametrize("shape", [ROW, SHAPE], ids=["rows", "each"])
def test_what_lies_beyond_is_divided_one_by_one(shape):
    numerators = spread(3, -149, 127, SHAPE)
    numerators[:, 7] = np.resize(EDGES, ROWS)
    divisors = spread(4, -149, 127, shape)
    divisors[: len(EDGES), 0] = EDGES
    same(divided(numerators, divisors), numerators, divisors)


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("edge", ["numerator", "divisor"])
def test_one_element_beyond_is_enough(edge, place):
    """Whichever of those that are tested together."""
    numerators, divisors = within(5, SHAPE)
    (numerators if edge == "numerator" else divisors)[:, place::8] = 2.0**-149
    same(divided(numerators, divisors), numerators, divisors)


@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
def test_reciprocals(target):
    within = spread(6, -RECIPROCALS, RECIPROCALS, SHAPE)
    within[0, :4] = 2 - 2.0**-23, -(2 - 2.0**-23), 1, 4 - 2.0**-22
    same(inverted(within, target), np.ones(SHAPE, "f4"), within)
    beyond = spread(7, -149, 128, SHAPE)
    beyond[:, 7] = np.resize(EDGES, ROWS)
    same(inverted(beyond, target), np.ones(SHAPE, "f4"), beyond)


def test_one_divisor_for_all_elements():
    kernel = Kernel()
    kernel.load("%a", SHAPE, "f32")
    kernel.op(f"%d = arith.constant dense<3.0> : {tile(SHAPE, 'f32')}")
    kernel.op(f'%q = "nv_tileaa.divf"(%a, %d) : ({tile(SHAPE, "f32")}, {tile(SHAPE, "f32")}) '
              f"-> {tile(SHAPE, 'f32')}")  # fmt: skip
    kernel.store("%q", SHAPE, "f32")
    assert "rcp.approx" in kernel.ptx("sm_90", 1)
    numerators, out = spread(5, -90, 90, SHAPE), np.zeros(ROWS * COLUMNS, np.float32)
    kernel.run(numerators.ravel(), out)
    same(out.reshape(SHAPE), numerators, np.full(SHAPE, 3, np.float32))


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_quotients_next_to_the_middle_of_two_numbers_are_rounded_right(off):
    """Where a reciprocal is `off` units wrong before its refinement, as `rcp.approx` may be."""
    numerators, divisors = hardest(1 << 16)
    y = refined(divisors, off)
    q = (numerators * y.astype("f8")).astype("f4")
    over = divisors.astype("f8") * q - numerators  # 48 bits, of which all but 24 cancel
    found = (q - y.astype(np.longdouble) * over).astype("f4")
    np.testing.assert_array_equal(found, numerators.astype("f4") / divisors)


def refined(divisors: np.ndarray, off: int) -> np.ndarray:
    """1 / d, `off` units in the last place away, after one step of Newton."""
    near = (1 / divisors.astype("f8")).astype("f4")
    near = (near.view("i4") + off).view("f4")
    left = (1 - divisors.astype("f8") * near).astype("f4")
    return (near.astype("f8") + near.astype("f8") * left).astype("f4")


def hardest(count: int) -> tuple[np.ndarray, np.ndarray]:
    """(a, d) with a / d as near to the middle of two f32 numbers as it can be.

    d is odd and has 24 bits, m is odd and has 25: a 2**24 or a 2**25 = d m + 1 or - 1.
    """
    rng = np.random.default_rng(0)
    found = []
    for at, number in enumerate(rng.integers(1 << 23, 1 << 24, count)):
        d, rest = int(number) | 1, 1 - 2 * (at & 1)
        for bits in (24, 25):
            m = -rest * pow(d, -1, 1 << bits) % (1 << bits) | 1 << 24
            a = d * m + rest >> bits
            if a << bits == d * m + rest and a < 1 << 24:
                found.append((a, d))
    assert len(found) > count // 4
    numerators, divisors = np.array(found, "f8").T
    return numerators, divisors.astype("f4")

"""Functions that branch, of several elements at once: bit for bit those of single elements."""

import numpy as np
import pytest
from support.tiles import Kernel, tile
from tile_nvptx.passes.tileas.device.angles import LARGEST
from tile_nvptx.passes.tileas.device.roots import END, LEAST

ALL, FEW = 2048, 128
EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 2.0**-126, 3.4e38], np.float32
)


def computed(function: str, values: np.ndarray, size: int, target: str) -> np.ndarray:
    """As compiled code does it, `size` elements at a time: one of a thread where they are few."""
    kernel, type_ = Kernel(), tile((size,), "f32")
    kernel.load("%x", (size,), "f32")
    kernel.op(f'%y = "nv_tileaa.{function}"(%x) : ({type_}) -> {type_}')
    kernel.store("%y", (size,), "f32")
    if function == "sqrt":
        assert ("rsqrt.approx" in kernel.ptx(target, 1)) == (size == ALL)
    parts = []
    for part in values.reshape(-1, size):
        out = np.zeros(size, np.float32)
        kernel.run(part, out, target=target)
        parts.append(out)
    return np.concatenate(parts)


def same(found: np.ndarray, expected: np.ndarray) -> None:
    nan = np.isnan(expected)
    assert np.isnan(found[nan]).all()
    np.testing.assert_array_equal(found.view("u4")[~nan], expected.view("u4")[~nan])


def spread(seed: int, least: int, most: int) -> np.ndarray:
    """Positive numbers, their exponents even over a range."""
    rng = np.random.default_rng(seed)
    return np.ldexp(rng.uniform(1, 2, ALL), rng.integers(least, most, ALL)).astype("f4")


@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
def test_roots_within_the_bounds(target: str) -> None:
    values = spread(1, -101, 127)
    values[:2] = np.array([LEAST, END - 1], "u4").view("f4")
    same(computed("sqrt", values, ALL, target), np.sqrt(values))


def test_roots_beyond_are_computed_one_by_one() -> None:
    values = spread(2, -149, 127)
    values[7::64] = np.resize(EDGES, len(values[7::64]))
    with np.errstate(invalid="ignore"):
        same(computed("sqrt", values, ALL, "sm_90"), np.sqrt(values))


@pytest.mark.parametrize("edge", [LEAST - 1, END, 1, 0x80000000, 0xFF800000])
@pytest.mark.parametrize("place", range(4))
def test_one_root_beyond_is_enough(place: int, edge: int) -> None:
    """Whichever of those that are tested together."""
    values = spread(3, -101, 127)
    values[place::4] = np.array(edge, "u4").view("f4")
    with np.errstate(invalid="ignore"):
        same(computed("sqrt", values, ALL, "sm_90"), np.sqrt(values))


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_every_mantissa_has_its_root(off: int) -> None:
    """Of exponents that are even and odd, where the approximation is `off` units wrong: the steps
    of `roots` in numbers that hold all of their bits. Where all approximations are a unit off, up
    to three are wrong, as ptxas' own roots would be.
    """
    for exponent in (0, 1):
        x = (np.arange(1 << 23, dtype="u4") | (127 + exponent) << 23).view("f4")
        y = ((1 / np.sqrt(x.astype("f8"))).astype("f4").view("i4") + off).view("f4")
        g, h = x * y, np.float32(0.5) * y
        left = (x - g.astype("f8") * g).astype("f4")  # 48 bits
        # left h has 48 bits, and g one of 24 far above: not in f64, but in 64 bits.
        found = (g.astype(np.longdouble) + left.astype(np.longdouble) * h).astype("f4")
        wrong = np.flatnonzero(found != np.sqrt(x))
        assert len(wrong) <= 3 * abs(off), x[wrong]


@pytest.mark.parametrize("function", ["cos", "sin", "tan"])
@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
def test_angles(function: str, target: str) -> None:
    """Small ones, some among them that are not, and edges."""
    rng = np.random.default_rng(4)
    values = (rng.uniform(-1, 1, ALL) * np.exp2(rng.integers(-20, 17, ALL))).astype("f4")
    values[:3] = LARGEST, np.nextafter(np.float32(LARGEST), np.float32(0)), -LARGEST
    values[512:1024:8] = np.resize(EDGES, 64)
    values[1024:1536:16] = rng.uniform(LARGEST, 1e30, 32)
    found = computed(function, values, ALL, target)
    same(found, computed(function, values, FEW, target))
    finite = np.isfinite(values)
    wanted = getattr(np, function)(values[finite].astype("f8"))
    np.testing.assert_allclose(found[finite], wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("function", ["cos", "sin", "tan"])
def test_small_angles_have_one_test(function: str) -> None:
    """LLVM drops the long way of each of them behind it: a test in front, and one where angles are
    taken one by one, but none on the short way.
    """
    kernel, type_ = Kernel(), tile((ALL,), "f32")
    kernel.load("%x", (ALL,), "f32")
    kernel.op(f'%y = "nv_tileaa.{function}"(%x) : ({type_}) -> {type_}')
    kernel.store("%y", (ALL,), "f32")
    tests = [line for line in kernel.ptx("sm_90", 3).splitlines() if "0f47CE4780" in line]
    assert 2 * 16 <= len(tests) < 2 * 16 + 4, tests

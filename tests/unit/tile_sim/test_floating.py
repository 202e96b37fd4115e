"""Floating instructions against exact arithmetic: rounding modes, halves, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from tile_sim import Module
from tile_sim.numeric import rounding

Cuda = Callable[[str], Module]


def _floats(rng: np.random.Generator, n: int, dtype: type) -> np.ndarray:
    """Values of all magnitudes, close neighbours, subnormals, zeros and infinities."""
    spread = rng.normal(size=n) * 2.0 ** rng.integers(-20, 20, n)
    edge = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 65504.0, 1e-40, -1e-42, 3e38, np.inf, -np.inf]
    spread[: len(edge)] = edge
    return rng.permutation(spread).astype(dtype)


def _round(exact: Fraction, mode: str, dtype: type) -> float:
    """An exact value rounded to `dtype`, by search among its neighbours."""
    near = dtype(0)
    with np.errstate(over="ignore"):
        # A binary32 is at most one binary64 rounding away; correct it by exact comparison.
        limit = Fraction(float(np.finfo(np.float64).max))
        near = dtype(float(max(-limit, min(exact, limit))))
    if not np.isfinite(near):
        near = np.copysign(np.finfo(dtype).max, near)
    with np.errstate(over="ignore"):
        best = [near, np.nextafter(near, dtype(math.inf)), np.nextafter(near, dtype(-math.inf))]
    finite = [v for v in best if np.isfinite(v)]
    low = max((v for v in finite if Fraction(float(v)) <= exact), default=dtype(-math.inf))
    high = min((v for v in finite if Fraction(float(v)) >= exact), default=dtype(math.inf))
    if low == high:
        return low
    if mode == "rd" or (mode == "rz" and exact > 0):
        return low
    if mode == "ru" or mode == "rz":
        return high
    return _nearest(exact, low, high, dtype)


def _nearest(exact: Fraction, low: float, high: float, dtype: type) -> float:
    limit = Fraction(float(np.finfo(dtype).max))
    half = Fraction(float(np.finfo(dtype).max - np.nextafter(np.finfo(dtype).max, dtype(0)))) / 2
    if not np.isfinite(low):
        return low if -exact >= limit + half else high
    if not np.isfinite(high):
        return high if exact >= limit + half else low
    below, above = exact - Fraction(float(low)), Fraction(float(high)) - exact
    if below != above:
        return low if below < above else high
    bits = np.array(low).view(np.uint32 if dtype is np.float32 else np.uint64)
    return low if int(bits) % 2 == 0 else high


@pytest.fixture(scope="module")
def results(cuda: Cuda) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    n = 384
    a, b = _floats(rng, n, np.float32), _floats(rng, n, np.float32)
    c = _floats(rng, n, np.float32)
    # Sums that nearly cancel, products near a tie of the sum.
    c[:64] = -(a[:64].astype(np.float64) * b[:64]).astype(np.float32)
    c[64:128] = np.ldexp(a[64:128] * b[64:128], -24)
    out = np.zeros((n, 32), np.float32)
    cuda("arithmetic").launch("floats", (3, 1, 1), (128, 1, 1), [a, b, c, out, n])
    return a, b, c, out


def _check(name: str, got: np.ndarray, exact: list[Fraction | None], mode: str) -> None:
    for i, value in enumerate(exact):
        if value is not None and value != 0:
            assert got[i] == _round(value, mode, np.float32), (name, i, got[i], float(value))


def _exact(fn, *arrays: np.ndarray) -> list[Fraction | None]:
    """`fn` on fractions; None where an operand is not finite or the result undefined."""
    out: list[Fraction | None] = []
    for values in zip(*arrays, strict=True):
        if all(np.isfinite(v) for v in values):
            try:
                out.append(fn(*(Fraction(float(v)) for v in values)))
            except ZeroDivisionError:
                out.append(None)
        else:
            out.append(None)
    return out


@pytest.mark.parametrize("k", range(14))
def test_rounding_modes(results, k: int) -> None:
    a, b, c, out = results
    order = ["rn", "rz", "ru", "rd"]
    if k < 4:
        _check("add", out[:, k], _exact(lambda x, y: x + y, a, b), order[k])
    elif k < 8:
        _check("mul", out[:, k], _exact(lambda x, y: x * y, a, b), order[k - 4])
    elif k < 12:
        _check("fma", out[:, k], _exact(lambda x, y, z: x * y + z, a, b, c), order[k - 8])
    else:
        _check("div", out[:, k], _exact(lambda x, y: x / y, a, b), ["rn", "rz"][k - 12])


def test_roots_and_reciprocals(results) -> None:
    a, _, _, out = results
    root = np.sqrt(np.abs(a))
    np.testing.assert_array_equal(out[:, 14], root)
    up = out[:, 15].astype(np.float64)
    assert (up[np.isfinite(a)] ** 2 >= np.abs(a.astype(np.float64))[np.isfinite(a)]).all()
    assert ((out[:, 15] == root) | (out[:, 15] == np.nextafter(root, np.float32(np.inf)))).all()
    _check("rcp", out[:, 16], _exact(lambda x: 1 / x, a), "rd")


def test_min_max_integral_and_signs(results) -> None:
    a, b, _, out = results
    np.testing.assert_array_equal(out[:, 17], np.minimum(a, b))
    np.testing.assert_array_equal(out[:, 18], np.maximum(a, b))
    for k, fn in ((19, np.trunc), (20, np.rint), (21, np.floor), (22, np.ceil)):
        np.testing.assert_array_equal(out[:, k], fn(a))
        np.testing.assert_array_equal(np.signbit(out[:, k]), np.signbit(fn(a)))
    np.testing.assert_array_equal(out[:, 25], np.clip(a, 0, 1))
    np.testing.assert_array_equal(out[:, 26], np.copysign(a, b))


def test_integer_conversions_clamp(results) -> None:
    a, _, _, out = results
    wide = np.trunc(a.astype(np.float64))
    np.testing.assert_array_equal(out[:, 23], np.clip(wide, -(2**31), 2**31 - 1).astype(np.float32))
    np.testing.assert_array_equal(
        out[:, 24], np.clip(np.abs(wide), 0, 2**32 - 1).astype(np.float32)
    )
    exact = [Fraction(int(v)) for v in a.view(np.int32)]
    _check("int2float_rz", out[:, 27], exact, "rz")


def test_halves(results) -> None:
    a, b, c, out = results
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out[:, 28], a.astype(np.float16).astype(np.float32))
    bf16 = ml_dtypes.bfloat16
    np.testing.assert_array_equal(out[:, 29], a.astype(bf16).astype(np.float32))
    for k, dtype in ((30, np.float16), (31, bf16)):
        with np.errstate(over="ignore"):
            x, y, z = (v.astype(dtype).astype(np.float64) for v in (a, b, c))
        # binary64 holds these sums unless the addends are more than 53 bits apart.
        with np.errstate(over="ignore", invalid="ignore"):
            product = x * y
            near = (product + z).astype(dtype).astype(np.float32)
            gap = np.abs(np.log2(np.abs(product) + 1e-300) - np.log2(np.abs(z) + 1e-300))
        safe = np.isfinite(near) & (gap < 30)
        assert safe.sum() > 100
        np.testing.assert_array_equal(out[safe, k], near[safe])


_FUNCTIONS = {
    0: math.sin, 1: math.cos, 2: math.exp, 4: math.tanh, 7: math.erf, 8: np.cbrt,
    9: lambda x: math.atan2(x, 2.0), 10: math.sin, 11: math.exp, 13: lambda x: 2.0**x,
    14: lambda x: math.fmod(x, float(np.float32(0.7))),
}  # fmt: skip


def test_library_functions(cuda: Cuda) -> None:
    rng = np.random.default_rng(2)
    a = np.append(rng.normal(0, 3, 250), [0.0, 1e-6, 20.0, -20.0]).astype(np.float32)
    out = np.zeros((len(a), 16), np.float32)
    cuda("arithmetic").launch("functions", (2, 1, 1), (128, 1, 1), [a, out, len(a)])
    for k, fn in _FUNCTIONS.items():
        expected = [fn(float(v)) for v in a]
        np.testing.assert_allclose(out[:, k], expected, rtol=3e-6, atol=1e-6, err_msg=str(k))
    p = (np.abs(a) + np.float32(1e-3)).astype(np.float64)
    for k, expected in (
        (3, np.log(p)),
        (5, p**-0.5),
        (6, p ** float(np.float32(1.7))),
        (12, np.log(p)),
    ):
        np.testing.assert_allclose(out[:, k], expected, rtol=3e-6, atol=1e-6, err_msg=str(k))
    np.testing.assert_allclose(out[:, 15], a / p, rtol=1e-6)


def test_doubles(cuda: Cuda) -> None:
    rng = np.random.default_rng(3)
    n = 256
    a, b, c = (_floats(rng, n, np.float64) for _ in range(3))
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = (np.where(finite, x, 1.0) for x in (a, b, c))
    c[:32] = -(a[:32] * b[:32])
    out = np.zeros((n, 16), np.float64)
    cuda("arithmetic").launch("doubles", (2, 1, 1), (128, 1, 1), [a, b, c, out, n])
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_array_equal(out[:, 0], a / b)
    np.testing.assert_array_equal(out[:, 1], np.sqrt(np.abs(a)))
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(a, b, c, strict=True)]
    assert [float(e) for e in exact] == out[:, 2].tolist()
    small = np.abs(a) < 700
    np.testing.assert_allclose(out[:, 3], np.sin(a), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(out[small, 4], np.exp(a[small]), rtol=1e-14)
    np.testing.assert_allclose(out[:, 5], np.log(np.abs(a) + 1e-9), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(out[:, 6], np.abs(a) ** 0.3, rtol=1e-14)
    for i in range(n):
        if a[i] + b[i] != 0:
            assert out[i, 7] == _round(Fraction(a[i]) + Fraction(b[i]), "rz", np.float64)
        if a[i] * b[i] != 0:
            assert out[i, 8] == _round(Fraction(a[i]) * Fraction(b[i]), "ru", np.float64)
    np.testing.assert_array_equal(out[:, 9], np.floor(a))
    clipped = np.clip(np.trunc(a), -(2.0**63), 2.0**63)
    np.testing.assert_array_equal(out[:, 10], clipped)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out[:, 12], a.astype(np.float32))


def test_fp8_conversions(cuda: Cuda) -> None:
    rng = np.random.default_rng(4)
    a = np.append(rng.normal(0, 1, 500) * 2.0 ** rng.integers(-18, 18, 500), [0.0, -0.0, 448, 464])
    a = a.astype(np.float32)
    n = len(a)
    e4, e5 = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    back = np.zeros((n, 2), np.float32)
    cuda("arithmetic").launch("narrow", (5, 1, 1), (128, 1, 1), [a, e4, e5, back, n])
    clipped = np.clip(a, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(e4, clipped.view(np.uint8))
    clipped5 = np.clip(a, -57344, 57344).astype(ml_dtypes.float8_e5m2)
    np.testing.assert_array_equal(e5, clipped5.view(np.uint8))
    np.testing.assert_array_equal(back[:, 0], clipped.astype(np.float32))
    np.testing.assert_array_equal(back[:, 1], clipped5.astype(np.float32))


_ENDS = [
    *(0.0, -0.0, 1.0, -1.0, 2.5, -0.6875, 5e-324, -1.5e-323, 2.0**-1022, -(2.0**-1022), 1e-160),
    *(-3e-200, 1.7e308, -1.7e308, np.inf, -np.inf, np.nan),
]


_TERMS: dict[int, dict[str, Callable[..., np.ndarray]]] = {
    2: {"add": rounding.add, "mul": rounding.multiply, "div": rounding.divide},
    3: {"fma": rounding.fma},
}


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("count", [2, 3])
def test_doubles_at_the_ends_of_the_range(mode: str, count: int) -> None:
    """Where products and remainders underflow, cancel, or are too large."""
    operands = [x.ravel() for x in np.meshgrid(*[_ENDS] * count)]
    with np.errstate(all="ignore"):
        for name, compute in _TERMS[count].items():
            found = compute(*operands, mode)
            for row, number in zip(zip(*operands, strict=True), found, strict=True):
                wanted = _exactly(name, tuple(map(float, row)), mode)
                assert repr(float(number)) == repr(wanted), (name, row)


def test_the_root_of_a_subnormal_double() -> None:
    x = np.array([1.5e-323])
    down, up = (rounding.square_root(x, mode)[0] for mode in ("rm", "rp"))
    assert Fraction(float(down)) ** 2 < Fraction(1.5e-323) < Fraction(float(up)) ** 2
    assert up == np.nextafter(down, 1)


_OPERATIONS: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
}


def _exactly(name: str, row: tuple[float, ...], mode: str) -> float:
    """By rational arithmetic; infinities and zeros by the rules of IEEE 754, 6.3 and 7."""
    if any(map(math.isnan, row)):
        return math.nan
    if not all(map(math.isfinite, row)) or (name == "div" and row[1] == 0):
        return _limit(name, row)
    exact = _OPERATIONS[name](*map(Fraction, row))
    if exact:
        directed = {"rm": "rd", "rp": "ru"}.get(mode, mode)
        found = float(_round(exact, directed, np.float64))
        return math.copysign(found, 1 if exact > 0 else -1)
    if name in ("mul", "div"):
        return math.copysign(0.0, math.copysign(1, row[0]) * math.copysign(1, row[1]))
    terms = row if name == "add" else (_exactly("mul", row[:2], mode), row[2])
    signs = {math.copysign(1, term) for term in terms}
    if len(signs) == 1 and not any(terms):
        return math.copysign(0.0, signs.pop())
    return -0.0 if mode == "rm" else 0.0


def _limit(name: str, row: tuple[float, ...]) -> float:
    """Of infinite operands, or of a division by zero: a finite operand is only a sign."""
    signs = [np.float64(x if math.isinf(x) or x == 0 else math.copysign(1, x)) for x in row]
    if name == "fma":
        return float(signs[0] * signs[1] + signs[2]) if not math.isinf(row[2]) or any(
            map(math.isinf, row[:2])
        ) else row[2]  # fmt: skip
    plain = {"add": np.add, "mul": np.multiply, "div": np.divide}[name]
    return float(plain(*signs))

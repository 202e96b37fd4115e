"""Arithmetic and conversions of the evaluator, against exact arithmetic."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from tile_cudatile import types as t
from tile_cudatile.evaluator import EvaluationError
from tile_cudatile.evaluator.formats import FLOATS, decode, dtype_of
from tile_cudatile.evaluator.rounding import narrow, widen
from unit.tile_cudatile.apply import elementwise

MODES = ("nearest_even", "zero", "negative_inf", "positive_inf")
BINARY = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": lambda a, b: a / b,
}


def table(element: t.Scalar) -> np.ndarray:
    """All finite values of a format of at most 16 bits as float64, ascending, once each."""
    size = max(element.width // 8, 1)
    patterns = np.arange(1 << element.width).astype(np.uint8 if size == 1 else np.uint16)
    values = widen(decode(patterns[:, None].view(np.uint8).reshape(-1, size), element))
    return np.unique(values[np.isfinite(values)])


def brackets(exact: Fraction, values: np.ndarray) -> tuple[float, float]:
    """The largest value not above and the smallest not below; infinite beyond the ends."""
    above = bisect_left(values, exact, key=Fraction)
    if above < len(values) and Fraction(values[above]) == exact:
        return values[above], values[above]
    low = values[above - 1] if above else -np.inf
    return low, (values[above] if above < len(values) else np.inf)


def expected(exact: Fraction, values: np.ndarray, mode: str) -> float:
    """The rounding of an exact number, found by search."""
    low, high = brackets(exact, values)
    if low == high or mode == "negative_inf":
        return low
    if mode == "positive_inf":
        return high
    if mode == "zero":
        return low if exact > 0 else high
    step = values[-1] - values[-2]
    below = Fraction(low) if np.isfinite(low) else Fraction(values[0] - step)
    above = Fraction(high) if np.isfinite(high) else Fraction(values[-1] + step)
    if exact - below != above - exact:
        return low if exact - below < above - exact else high
    even = lambda v: not np.isfinite(v) or int(np.float16(v).view(np.uint16)) % 2 == 0  # noqa: E731
    return low if (even(low) and np.isfinite(low)) or not even(high) else high


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BINARY)
def test_f16_arithmetic_is_correctly_rounded(name: str, mode: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 1 << 16, 60).astype(np.uint16).view(np.float16) for _ in range(2))
    a[:4], b[:4] = [65504, 6e-8, 1, 1], [65504, 6e-8, 2.0**-11, 3 * 2.0**-12]
    keep = np.isfinite(a) & np.isfinite(b) & (b != 0) & (a != 0)
    a, b = a[keep], b[keep]
    found = elementwise(name, [(t.F16, a), (t.F16, b)], t.F16, rounding_mode=mode)
    values = table(t.F16)
    for x, y, r in zip(a, b, found, strict=True):
        exact = BINARY[name](Fraction(float(x)), Fraction(float(y)))
        assert float(r) == expected(exact, values, mode), (x, y)


def near(value: np.ndarray, direction: float) -> np.ndarray:
    return np.nextafter(value, np.asarray(direction, value.dtype))


@pytest.mark.parametrize("element", [t.F32, t.F64], ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*BINARY, "sqrt", "fma"])
def test_wide_arithmetic_brackets_the_exact_result(name: str, mode: str, element: t.Scalar) -> None:
    rng = np.random.default_rng(2)
    dtype = dtype_of(element)
    count = 3 if name == "fma" else 1 if name == "sqrt" else 2
    operands = [
        (rng.standard_normal(64) * 2.0 ** rng.integers(-30, 30, 64)).astype(dtype)
        for _ in range(count)
    ]
    if name == "sqrt":
        operands[0] = np.abs(operands[0])
    if name == "fma":  # cancellation: only one rounding shows the low half of the product
        operands[2][:32] = -(operands[0][:32] * operands[1][:32])
    found = elementwise(name, [(element, o) for o in operands], element, rounding_mode=mode)
    for i, r in enumerate(found):
        row = [Fraction(float(o[i])) for o in operands]
        if name == "sqrt":
            check = lambda v, row=row: Fraction(float(v)) ** 2 - row[0]  # noqa: E731
        else:
            value = row[0] * row[1] + row[2] if name == "fma" else BINARY[name](*row)
            check = lambda v, value=value: Fraction(float(v)) - value  # noqa: E731
        error = check(r)
        if mode == "nearest_even":
            middle = (Fraction(float(near(r, np.inf))) - Fraction(float(r))) / 2
            assert abs(error) <= abs(middle) * (2 * abs(float(r)) + 1 if name == "sqrt" else 1)
            continue
        up = mode == "positive_inf" or (mode == "zero" and float(r) < 0)
        inward = near(r, -np.inf if up else np.inf)
        if up:
            assert error >= 0 > check(inward) or error == 0
        else:
            assert error <= 0 < check(inward) or error == 0


def test_exact_sums_of_opposites_and_signed_zeros() -> None:
    x = np.array([1.5, 0.0, -0.0, 0.0], np.float32)
    y = np.array([-1.5, -0.0, -0.0, 0.0], np.float32)
    for mode in MODES:
        found = elementwise("addf", [(t.F32, x), (t.F32, y)], t.F32, rounding_mode=mode)
        down = mode == "negative_inf"
        assert list(np.signbit(found)) == [down, down, True, False]


def test_flush_to_zero() -> None:
    x = np.array([1e-39, -1e-39, 1e-38, 3e-38], np.float32)
    y = np.array([0, -0.0, -5e-39, 0], np.float32)
    found = elementwise(
        "addf",
        [(t.F32, x), (t.F32, y)],
        t.F32,
        rounding_mode="nearest_even",
        flush_to_zero=True,
    )
    assert list(found[:3]) == [0, 0, 0]
    assert list(np.signbit(found)) == [False, True, False, False]
    assert found[3] == x[3]


def test_extrema_of_nan_and_zeros() -> None:
    nan = np.nan
    x = np.array([nan, 1, nan, 0.0, -0.0, 2], np.float32)
    y = np.array([1, nan, nan, -0.0, 0.0, 3], np.float32)
    for name, expected_values, signs in (
        ("maxf", [1, 1, nan, 0, 0, 3], [False, False]),
        ("minf", [1, 1, nan, 0, 0, 2], [True, True]),
    ):
        found = elementwise(name, [(t.F32, x), (t.F32, y)], t.F32)
        np.testing.assert_array_equal(found, expected_values)
        assert list(np.signbit(found[3:5])) == signs
        strict = elementwise(name, [(t.F32, x), (t.F32, y)], t.F32, propagate_nan=True)
        assert list(np.isnan(strict)) == [True, True, True, False, False, False]


def test_remainder_special_cases() -> None:
    x = np.array([5.5, -5.5, 1.0, np.inf, 3.0, np.nan], np.float32)
    y = np.array([2.0, 2.0, 0.0, 2.0, np.inf, 1.0], np.float32)
    found = elementwise("remf", [(t.F32, x), (t.F32, y)], t.F32)
    np.testing.assert_array_equal(found, [1.5, -1.5, np.nan, np.nan, 3.0, np.nan])


@pytest.mark.parametrize("ordering", ["ordered", "unordered"])
def test_comparison_of_nan(ordering: str) -> None:
    x, y = np.array([1, np.nan, 2], np.float32), np.array([1, 1, 1], np.float32)
    found = elementwise(
        "cmpf",
        [(t.F32, x), (t.F32, y)],
        t.I1,
        comparison_predicate="less_than_or_equal",
        comparison_ordering=ordering,
    )
    assert list(found) == [True, ordering == "unordered", False]


@pytest.mark.parametrize("element", [t.F16, t.BF16, t.F32, t.F64], ids=str)
@pytest.mark.parametrize("name", ["exp", "exp2", "log", "sin", "tanh", "rsqrt", "cosh"])
def test_functions_are_close(name: str, element: t.Scalar) -> None:
    x = np.linspace(0.1, 4, 40).astype(dtype_of(element))
    attrs = {"rounding_mode": "full"} if name in ("exp", "tanh") else {}
    found = elementwise(name, [(element, x)], element, **attrs)
    reference = {"rsqrt": lambda v: 1 / np.sqrt(v)}.get(name) or getattr(np, name)
    exact = reference(widen(x))
    ulp = 2.0 ** (1 - FLOATS[element].precision)
    np.testing.assert_allclose(widen(found), exact, rtol=ulp * (2 if element == t.F64 else 0.501))


def test_sign_operations_keep_nan_payloads() -> None:
    x = np.array([0x7FC12345, 0xFFC12345, 0x80000000], np.uint32).view(np.float32)
    assert list(elementwise("negf", [(t.F32, x)], t.F32).view(np.uint32)) == [
        0xFFC12345,
        0x7FC12345,
        0,
    ]
    assert list(elementwise("absf", [(t.F32, x)], t.F32).view(np.uint32)) == [
        0x7FC12345,
        0x7FC12345,
        0,
    ]


# Conversions.

NARROW = [t.F8E4M3FN, t.F8E5M2, t.F4E2M1FN, t.F8E5M3FNU]


@pytest.mark.parametrize("element", [t.F8E4M3FN, t.F8E5M2], ids=str)
def test_eight_bit_floats_there_and_back(element: t.Scalar) -> None:
    every = np.arange(256, dtype=np.uint8).view(dtype_of(element))
    wide = elementwise("ftof", [(element, every)], t.F32, rounding_mode="nearest_even")
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    back = elementwise("ftof", [(t.F32, wide)], element, rounding_mode="nearest_even")
    finite = np.isfinite(wide)
    assert (back.view(np.uint8)[finite] == np.arange(256)[finite]).all()
    assert np.isnan(back.astype(np.float32)[np.isnan(wide)]).all()
    largest = FLOATS[element].largest
    assert (np.abs(back.astype(np.float32)[np.isinf(wide)]) == largest).all()


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_narrowing_is_to_nearest_even_and_saturates(element: t.Scalar) -> None:
    values = table(element)
    middles = (values[1:] + values[:-1]) / 2
    probes = np.concatenate([values, middles, near(middles, np.inf), near(middles, -np.inf)])
    found = widen(narrow(probes, element, saturate=True))
    distance = np.abs(values[None, :] - probes[:, None])
    best = distance.min(axis=1)
    np.testing.assert_array_equal(np.abs(found - probes), best)
    ties = np.isin(probes, middles)
    lower = values[np.searchsorted(values, probes[ties]) - 1]
    index = np.searchsorted(values, np.abs(lower)) - np.searchsorted(values, 0.0)
    even_low = index % 2 == 0
    assert ((found[ties] == lower) == even_low).all()
    big = np.array([1e30, np.inf])
    assert (widen(narrow(big, element, saturate=True)) == FLOATS[element].largest).all()


def test_to_powers_of_two() -> None:
    x = np.array([1.0, 1.5, 3.0, 0.0, 2.0**-130, 1e38, np.inf, np.nan], np.float32)
    down = elementwise("ftof", [(t.F32, x)], t.F8E8M0FNU, rounding_mode="zero")
    up = elementwise("ftof", [(t.F32, x)], t.F8E8M0FNU, rounding_mode="positive_inf")
    least = 2.0**-127
    np.testing.assert_array_equal(
        down.astype(np.float32), np.float32([1, 1, 2, least, least, 2.0**126, 2.0**127, np.nan])
    )
    np.testing.assert_array_equal(
        up.astype(np.float32), np.float32([1, 2, 4, least, least, 2.0**127, 2.0**127, np.nan])
    )


def test_tf32_keeps_ten_bits() -> None:
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-20], np.float32)
    found = elementwise("ftof", [(t.F32, x)], t.TF32, rounding_mode="nearest_even")
    assert list(found) == [1.0, 1 + 2.0**-9, 1 + 2.0**-10]


def test_integers_to_floats_round_once() -> None:
    x = np.array([2**53 + 1, 2**62 + 2**38 + 1, -(2**63), 2**63 - 1, (1 << 24) + 1], np.int64)
    found = elementwise(
        "itof", [(t.I64, x)], t.F32, signedness="signed", rounding_mode="nearest_even"
    )
    exact = [float(2**53), float(2**62 + 2**39), -float(2**63), float(2**63), float(1 << 24)]
    assert list(map(float, found)) == exact
    half = elementwise(
        "itof",
        [(t.I64, np.array([-1], np.int64))],
        t.F16,
        signedness="unsigned",
        rounding_mode="nearest_even",
    )
    assert np.isinf(half[0])


def test_floats_to_integers_saturate() -> None:
    x = np.array([1.9, -1.9, 1e10, -1e10, np.nan, np.inf], np.float32)
    signed = elementwise(
        "ftoi", [(t.F32, x)], t.I32, signedness="signed", rounding_mode="nearest_int_to_zero"
    )
    assert list(signed) == [1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1]
    unsigned = elementwise(
        "ftoi", [(t.F32, x)], t.I8, signedness="unsigned", rounding_mode="nearest_int_to_zero"
    )
    assert list(unsigned.view(np.uint8)) == [1, 0, 255, 0, 0, 255]


@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
def test_floats_to_truth_values(signedness: str) -> None:
    x = np.array([0.0, -0.0, 0.25, -3.0, 2.0, np.nan, np.inf], np.float32)
    found = elementwise(
        "ftoi", [(t.F32, x)], t.I1, signedness=signedness, rounding_mode="nearest_int_to_zero"
    )
    assert list(found) == [False, False, True, True, True, True, True]


# Integers: all pairs of bytes.

LEFT = np.repeat(np.arange(-128, 128), 256).astype(np.int8)
RIGHT = np.tile(np.arange(-128, 128), 256).astype(np.int8)


def _pairs(name: str, keep: np.ndarray, **attrs) -> list[tuple[int, int, int]]:
    x, y = LEFT[keep], RIGHT[keep]
    found = elementwise(name, [(t.I8, x), (t.I8, y)], t.I8, **attrs)
    if attrs.get("signedness") == "unsigned" or name in ("mulhii", "shli"):
        x, y, found = (v.view(np.uint8) for v in (x, y, found))
    return [(int(a), int(b), int(c)) for a, b, c in zip(x, y, found, strict=True)]


@pytest.mark.parametrize("rounding", ["zero", "negative_inf", "positive_inf"])
@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
def test_division_of_all_bytes(signedness: str, rounding: str) -> None:
    keep = (RIGHT != 0) & ~((LEFT == -128) & (RIGHT == -1) & (signedness == "signed"))
    for a, b, c in _pairs("divi", keep, signedness=signedness, rounding=rounding):
        exact = Fraction(a, b)
        down = a // b
        if rounding == "zero":
            assert c == int(exact)
        else:
            assert c == (down if rounding == "negative_inf" else -((-a) // b))


@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
def test_remainder_of_all_bytes(signedness: str) -> None:
    for a, b, c in _pairs("remi", RIGHT != 0, signedness=signedness):
        assert c == a - int(Fraction(a, b)) * b


def test_high_product_and_shifts_of_all_bytes() -> None:
    everything = np.ones(LEFT.shape, bool)
    for a, b, c in _pairs("mulhii", everything):
        assert c == a * b >> 8
    for a, b, c in _pairs("shli", everything):
        assert c == (a << b & 255 if b < 8 else 0)
    for a, b, c in _pairs("shri", everything, signedness="unsigned"):
        assert c == (a >> b if b < 8 else 0)
    for a, b, c in _pairs("shri", everything, signedness="signed"):
        assert c == a >> min(b & 255, 7)


def test_wide_high_product() -> None:
    x = np.array([-1, 1 << 62, 12345678901234567], np.int64)
    y = np.array([-1, 1 << 2, -987654321987654321], np.int64)
    found = elementwise("mulhii", [(t.I64, x), (t.I64, y)], t.I64).view(np.uint64)
    mask = (1 << 64) - 1
    assert [int(v) for v in found] == [
        (int(a) & mask) * (int(b) & mask) >> 64 for a, b in zip(x, y, strict=True)
    ]


def test_undefined_integer_operations_are_reported() -> None:
    one, zero, low = (np.array([v], np.int32) for v in (1, 0, -(2**31)))
    with pytest.raises(EvaluationError, match="divides by zero"):
        elementwise("remi", [(t.I32, one), (t.I32, zero)], t.I32, signedness="signed")
    with pytest.raises(EvaluationError, match="smallest number by -1"):
        elementwise("divi", [(t.I32, low), (t.I32, -one)], t.I32, signedness="signed")
    with pytest.raises(EvaluationError, match="overflows"):
        elementwise("subi", [(t.I32, low), (t.I32, one)], t.I32, overflow="no_signed_wrap")
    wrapped = elementwise("subi", [(t.I32, low), (t.I32, one)], t.I32)
    assert wrapped[0] == 2**31 - 1


@pytest.mark.parametrize(
    ("claim", "value", "holds"),
    [("no_signed_wrap", 128, False), ("no_signed_wrap", -128, True),
     ("no_unsigned_wrap", 255, True), ("no_unsigned_wrap", -1, False), ("none", 1000, True)],
)  # fmt: skip
def test_a_truncation_keeps_what_it_says(claim: str, value: int, holds: bool) -> None:
    given = [(t.I32, np.array([value], np.int32))]
    if holds:
        assert elementwise("trunci", given, t.I8, overflow=claim)[0] == np.int32(value).astype(
            np.int8
        )
    else:
        with pytest.raises(EvaluationError, match=r"'cuda_tile\.trunci' op overflows"):
            elementwise("trunci", given, t.I8, overflow=claim)


def test_booleans_are_one_bit_integers() -> None:
    x, y = np.array([False, True, True]), np.array([True, True, False])
    pair = [(t.I1, x), (t.I1, y)]
    assert list(elementwise("addi", pair, t.I1)) == [True, False, True]
    assert list(elementwise("maxi", pair, t.I1, signedness="signed")) == [False, True, False]
    assert list(elementwise("exti", [(t.I1, x)], t.I8, signedness="signed")) == [0, -1, -1]


def test_bitcast_to_narrow_formats() -> None:
    every = np.arange(256, dtype=np.uint8).view(np.int8)
    found = elementwise("bitcast", [(t.I8, every)], t.F8E4M3FN)
    assert (found.view(np.uint8) == every.view(np.uint8)).all()
    back = elementwise(
        "bitcast", [(t.F8E5M3FNU, elementwise("bitcast", [(t.I8, every)], t.F8E5M3FNU))], t.I8
    )
    assert (back == every).all()
    assert ml_dtypes.bfloat16(1).view(np.uint16) == 0x3F80

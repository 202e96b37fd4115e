"""Conversions between all number formats, compiled and run, against the reference evaluator."""

from itertools import product

import numpy as np
import pytest
from support.programs import STRATEGIES, Program
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of

SMALL = (t.F8E4M3FN, t.F8E5M2)
FLOATS = (*SMALL, t.F16, t.BF16, t.TF32, t.F32, t.F64)
INTS = (t.I8, t.I16, t.I32, t.I64)
COUNT = 512


def numbers(element: t.Scalar, seed: int = 0) -> np.ndarray:
    """Numbers of all magnitudes, edges included."""
    rng = np.random.default_rng(seed)
    if not element.is_float:
        info = np.iinfo(dtype_of(element))
        found = rng.integers(info.min, info.max, COUNT, dtype_of(element), endpoint=True)
        found >>= rng.integers(0, element.width, COUNT).astype(found.dtype)
        found[:6] = [0, 1, -1, info.min, info.max, info.max - 1]
        return found
    wide = np.ldexp(rng.uniform(-1, 1, COUNT), rng.integers(-24, 24, COUNT))
    wide[:9] = [0.0, -0.0, np.inf, -np.inf, 464, 464.5, 61440, 2.0**-10, 3 * 2.0**-11]
    # Ties of every format, and what lies just beside them.
    ties = (rng.integers(8, 32, 128) + 0.5) * 2.0 ** rng.integers(-18, 12, 128)
    wide[16:144] = ties
    wide[144:272] = np.nextafter(ties, np.where(rng.random(128) < 0.5, 0, np.inf))
    if element == t.TF32:
        bits = wide.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
        return bits.view(np.float32)
    with np.errstate(over="ignore"):
        return wide.astype(dtype_of(element))


def cast(before, after, name, target="sm_90", strategy=None, **attrs):
    """The cast of `numbers(before)`, by the compiler and by the evaluator."""
    shape = (COUNT,)
    p = Program()
    x = p.load(shape, before)
    p.store(p.emit(name, [x], t.Tile(shape, after), **attrs), shape, after)
    with np.errstate(all="ignore"):
        p.agrees(numbers(before), np.zeros(shape, dtype_of(after)), target=target,
                 strategy=strategy)  # fmt: skip


CASES = [(a, b, "sm_90") for a, b in product(FLOATS, FLOATS) if a != b]
CASES += [(a, b, "sm_80") for a, b, _ in CASES if b in SMALL]  # elsewhere it makes no difference


@pytest.mark.parametrize(("before", "after", "target"), CASES, ids=str)
def test_float_to_float(before, after, target):
    cast(before, after, "ftof", target, rounding_mode="nearest_even")


@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
@pytest.mark.parametrize("after", FLOATS, ids=str)
def test_bit_to_float(after, signedness):
    """Of bits that were computed: LLVM converts those, and not the bytes they were loaded from."""
    shape = (4, 8)
    p = Program()
    x = p.emit("andi", [p.load(shape, t.I1), p.load(shape, t.I1)], t.Tile(shape, t.I1))
    y = p.emit(
        "itof", [x], t.Tile(shape, after), signedness=signedness, rounding_mode="nearest_even"
    )
    p.store(y, shape, after)
    given = np.random.default_rng(1).integers(0, 2, shape) > 0
    for target, level in (("sm_80", 1), ("sm_90", 0), ("sm_100", 3)):
        found = np.zeros(shape, dtype_of(after))
        p.agrees(given, given.copy(), found, target=target, opt_level=level)


@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
@pytest.mark.parametrize(("before", "after"), [*product(INTS, FLOATS)], ids=str)
def test_integer_to_float(before, after, signedness):
    cast(before, after, "itof", signedness=signedness, rounding_mode="nearest_even")


@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
@pytest.mark.parametrize(("before", "after"), [*product(FLOATS, (t.I1, *INTS))], ids=str)
def test_float_to_integer(before, after, signedness):
    cast(before, after, "ftoi", signedness=signedness, rounding_mode="nearest_int_to_zero")


@pytest.mark.parametrize(
    ("before", "after"),
    [(t.F8E4M3FN, t.I8), (t.I8, t.F8E5M2), (t.F8E5M2, t.F8E4M3FN), (t.BF16, t.I16), (t.F64, t.I64)],
    ids=str,
)
def test_bitcast(before, after):
    cast(before, after, "bitcast")


@pytest.mark.parametrize("kind", SMALL, ids=str)
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_every_code_of_a_byte(kind, target):
    """All 256 patterns to f32 and back."""
    shape, p = (256,), Program()
    x = p.load(shape, kind)
    wide = p.emit("ftof", [x], t.Tile(shape, t.F32), rounding_mode="nearest_even")
    back = p.emit("ftof", [wide], t.Tile(shape, kind), rounding_mode="nearest_even")
    p.store(wide, shape, t.F32)
    p.store(back, shape, kind)
    codes = np.arange(256, dtype=np.uint8).view(dtype_of(kind))
    found, again = np.zeros(256, np.float32), np.zeros(256, np.uint8)
    p.run(codes, found, again, target=target)
    expected = codes.astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(again[finite], codes.view(np.uint8)[finite])
    nan = np.isnan(again.view(dtype_of(kind)).astype(np.float32))
    np.testing.assert_array_equal(nan, np.isnan(expected))


def test_the_instruction_is_used_where_there_is_one():
    p = Program()
    x = p.load((COUNT,), t.F32)
    y = p.emit("ftof", [x], t.Tile((COUNT,), t.F8E4M3FN), rounding_mode="nearest_even")
    p.store(y, (COUNT,), t.F8E4M3FN)
    assert "cvt.rn.satfinite.e4m3x2.f32" in p.ptx("sm_89")
    assert "e4m3x2" not in p.ptx("sm_80")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("element", [*SMALL, t.TF32], ids=str)
def test_formats_without_arithmetic_move(element, strategy):
    """Constants, selections, permutations, conversions of layout, and padding."""
    p, shape, turned = Program(), (8, 32), (32, 8)
    x = p.load(shape, element)
    values = np.resize(np.array([1.5, -0.5, 0.25, -2.0]), turned)
    splat = p.constant(t.Tile(turned, element), 1.5)
    dense = p.constant(t.Tile(turned, element), values) if element != t.TF32 else splat
    flag = p.load(turned, t.I1)
    y = p.emit("permute", [x], t.Tile(turned, element), permutation=(1, 0))
    y = p.emit("select", [flag, y, dense], t.Tile(turned, element))
    both = p.emit("cat", [y, splat], t.Tile((32, 16), element), dim=1)
    p.store(both, (32, 16), element)
    flags = np.random.default_rng(2).integers(0, 2, turned).astype(bool)
    p.agrees(
        numbers(element)[:256].reshape(shape), flags, np.zeros((32, 16), dtype_of(element)),
        strategy=strategy,
    )  # fmt: skip


@pytest.mark.parametrize("element", [t.F16, t.BF16, t.F32, t.F64], ids=str)
@pytest.mark.parametrize("power", [t.I8, t.I32], ids=str)
def test_whole_powers(element, power):
    """Odd and even exponents, beyond what f32 can tell apart, of numbers of both signs."""
    p, shape = Program(), (16,)
    x, n = p.load(shape, element), p.load(shape, power)
    p.store(p.emit("fpowi", [x, n], t.Tile(shape, element)), shape, element)
    base = np.array([-1, -1, 2, -2, 0.5, -0.5, 0, 1.5, -3, 1, -1, -1, 4, -4, 1, 2])
    base = base.astype(dtype_of(element))
    edge = np.iinfo(dtype_of(power)).max  # odd
    exponents = [edge, edge - 1, 3, 3, -2, -3, 0, 4, 3, -9, -edge, 0, 2, -1, edge, 7]
    out = np.zeros(shape, dtype_of(element))
    p.run(base, np.array(exponents, dtype_of(power)), out)
    exact = base.astype(np.float64) ** np.array(exponents, np.float64)
    np.testing.assert_array_equal(out, exact.astype(dtype_of(element)))


@pytest.mark.parametrize("strategy", ["blocked", 0])
@pytest.mark.parametrize("element", [t.I1, t.I16, t.BF16, t.F32, t.I64], ids=str)
def test_pack_and_unpack(element, strategy):
    p, count = Program(), 64
    size = 8 if element == t.I1 else count * element.width // 8
    x, raw = p.load((count,), element), p.load((size,), t.I8)
    p.store(p.emit("pack", [x], t.Tile((size,), t.I8)), (size,), t.I8)
    p.store(p.emit("unpack", [raw], t.Tile((count,), element)), (count,), element)
    rng = np.random.default_rng(4)
    data = rng.integers(0, 2, count).astype(bool)
    if element != t.I1:
        data = rng.integers(-50, 50, count).astype(dtype_of(element))
    p.agrees(
        data, rng.integers(-128, 128, size).astype(np.int8), np.zeros(size, np.int8),
        np.zeros(count, dtype_of(element)), strategy=strategy,
    )  # fmt: skip


@pytest.mark.parametrize("element", [*SMALL, t.F16, t.BF16], ids=str)
def test_constants_of_every_pattern(element):
    """MLIR prints six digits, which is less than some of the numbers have."""
    raw = np.arange(256, dtype=np.uint8 if element in SMALL else np.uint16)
    if element not in SMALL:
        raw = raw * np.uint16(257)
    values = raw.view(dtype_of(element))
    p = Program()
    p.store(p.constant(t.Tile((256,), element), values), (256,), element)
    p.agrees(np.zeros(256, dtype_of(element)))


@pytest.mark.parametrize("count", [512, 2])
@pytest.mark.parametrize("after", SMALL)
def test_codes_of_four_bits_as_codes_of_eight(after: t.Scalar, count: int) -> None:
    """All of them, the sign of zero too: four at a time, or fewer."""
    p = Program()
    raw = p.load((count // 2,), t.I8)
    x = p.emit("unpack", [raw], t.Tile((count,), t.F4E2M1FN))
    made = p.emit("ftof", [x], t.Tile((count,), after))
    p.store(p.emit("bitcast", [made], t.Tile((count,), t.I8)), (count,), t.I8)
    codes = (np.arange(count // 2) - 128 if count > 2 else np.array([-112])).astype(np.int8)
    p.agrees(codes, np.zeros(count, np.int8), target="sm_90")

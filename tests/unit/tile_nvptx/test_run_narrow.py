"""Scale formats, numbers of four bits, and their packing, against the reference evaluator.

Codes travel as bytes: `bitcast` and `unpack` make numbers of them.
"""

from typing import Any

import numpy as np
import pytest
from support.programs import STRATEGIES, Program
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of

from tile_core.diagnostics import CompileError

WIDE = (t.F16, t.BF16, t.TF32, t.F32, t.F64, t.F8E4M3FN, t.F8E5M2)
NARROW = (t.F8E8M0FNU, t.F8E5M3FNU, t.F4E2M1FN)
COUNT = 256


def mode_to(element):
    """The modes in which numbers become `element`."""
    return ("zero", "positive_inf") if element == t.F8E8M0FNU else ("nearest_even",)


def from_codes(p: Program, raw: Any, element: t.Scalar) -> Any:
    """Numbers of `element` from a tile of bytes."""
    if element.width == 4:
        return p.emit("unpack", [raw], t.Tile((2 * raw.type.shape[0],), element))
    return p.emit("bitcast", [raw], t.Tile(raw.type.shape, element))


def to_codes(p, x, element):
    if element.width == 4:
        return p.emit("pack", [x], t.Tile((x.type.shape[0] // 2,), t.I8))
    return p.emit("bitcast", [x], t.Tile(x.type.shape, t.I8))


def size_of(element, count):
    return (count * element.width // 8,)


def numbers(element, seed=0):
    """Numbers of all magnitudes, ties, edges and beyond; few of them negative."""
    rng = np.random.default_rng(seed)
    wide = np.ldexp(rng.uniform(1, 2, COUNT), rng.integers(-24, 24, COUNT))
    wide[:12] = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 2.0**-127, 2.0**-130, 3 * 2.0**-128,
                 2.0**126, 1.5 * 2.0**127, -2.0**-30]  # fmt: skip
    ties = (rng.integers(2, 32, 64) + 0.5) * 2.0 ** rng.integers(-18, 12, 64)
    wide[16:80] = ties
    wide[80:144] = np.nextafter(ties, np.where(rng.random(64) < 0.5, 0, np.inf))
    wide[144:160] = np.arange(16) / 2 - 4  # f4E2M1FN and its ties
    wide[160:176] = 2.0 ** np.arange(-8, 8)
    if element == t.TF32:
        bits = wide.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
        return bits.view(np.float32)
    with np.errstate(all="ignore"):
        return wide.astype(dtype_of(element))


@pytest.mark.parametrize("target", ["sm_80", "sm_120"])
@pytest.mark.parametrize("after", WIDE, ids=str)
@pytest.mark.parametrize("before", NARROW, ids=str)
def test_all_codes_widen(before, after, target):
    p = Program()
    raw = p.load((256,), t.I8)
    x = from_codes(p, raw, before)
    count = x.type.shape
    p.store(p.emit("ftof", [x], t.Tile(count, after), rounding_mode="nearest_even"), count, after)
    codes = np.arange(256, dtype=np.uint8).view(np.int8)
    p.agrees(codes, np.zeros(count, dtype_of(after)), target=target)


@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
@pytest.mark.parametrize("before", WIDE, ids=str)
@pytest.mark.parametrize(("after", "mode"), [(k, m) for k in NARROW for m in mode_to(k)], ids=str)
def test_numbers_narrow(before, after, mode, target):
    p = Program()
    x = p.load((COUNT,), before)
    y = p.emit("ftof", [x], t.Tile((COUNT,), after), rounding_mode=mode)
    size = size_of(after, COUNT)
    p.store(to_codes(p, y, after), size, t.I8)
    p.agrees(numbers(before), np.zeros(size, np.int8), target=target)


@pytest.mark.parametrize(
    ("before", "after"), [(a, b) for a in NARROW for b in NARROW if a != b], ids=str
)
def test_narrow_to_narrow(before, after):
    p = Program()
    x = from_codes(p, p.load((256,), t.I8), before)
    shape = x.type.shape
    y = p.emit("ftof", [x], t.Tile(shape, after), rounding_mode=mode_to(after)[-1])
    size = size_of(after, shape[0])
    p.store(to_codes(p, y, after), size, t.I8)
    p.agrees(np.arange(256, dtype=np.uint8).view(np.int8), np.zeros(size, np.int8))


@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
@pytest.mark.parametrize("integer", [t.I1, t.I8, t.I16, t.I32, t.I64], ids=str)
@pytest.mark.parametrize("element", [t.F8E5M3FNU, t.F4E2M1FN], ids=str)
def test_integers(element, integer, signedness):
    """To narrow floats, and from them."""
    p, shape = Program(), (64,)
    x = p.load(shape, integer)
    y = p.emit(
        "itof", [x], t.Tile(shape, element), signedness=signedness, rounding_mode="nearest_even"
    )
    size = size_of(element, 64)
    p.store(to_codes(p, y, element), size, t.I8)
    z = from_codes(p, p.load(size, t.I8), element)
    back = p.emit(
        "ftoi", [z], t.Tile(shape, integer), signedness=signedness,
        rounding_mode="nearest_int_to_zero",
    )  # fmt: skip
    p.store(back, shape, integer)
    rng = np.random.default_rng(5)
    data = rng.integers(0, 2, 64).astype(bool)
    if integer != t.I1:
        data = rng.integers(-100, 100, 64).astype(dtype_of(integer))
    codes = rng.integers(0, 0x50, size).astype(np.int8)
    p.agrees(data, np.zeros(size, np.int8), codes, np.zeros(shape, dtype_of(integer)))


@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
@pytest.mark.parametrize("element", [t.I8, t.I16, t.I32, t.I64], ids=str)
def test_four_bit_integers(element, signedness):
    """unpack, widen, narrow, pack."""
    p, shape = Program(), (128,)
    x = p.emit("unpack", [p.load((64,), t.I8)], t.Tile(shape, t.I4))
    wide = p.emit("exti", [x], t.Tile(shape, element), signedness=signedness)
    p.store(wide, shape, element)
    y = p.emit("trunci", [p.load(shape, element)], t.Tile(shape, t.I4))
    bit = p.emit("trunci", [x], t.Tile(shape, t.I1))
    again = p.emit("exti", [bit], t.Tile(shape, t.I4), signedness=signedness)
    p.store(p.emit("pack", [y], t.Tile((64,), t.I8)), (64,), t.I8)
    p.store(p.emit("pack", [again], t.Tile((64,), t.I8)), (64,), t.I8)
    raw = np.random.default_rng(1).integers(-128, 128, 64).astype(np.int8)
    data = np.random.default_rng(2).integers(-100, 100, shape).astype(dtype_of(element))
    out, *packed = np.zeros(shape, dtype_of(element)), *np.zeros((2, 64), np.int8)
    p.agrees(raw, out, data, *packed)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("element", [*NARROW, t.I4], ids=str)
def test_they_move(element, strategy):
    """Constants, permutations, concatenation, slices and layouts of narrow formats."""
    p = Program()
    size = size_of(element, 256)
    raw = p.load(size, t.I8)
    if element.width == 4:
        x = p.emit("unpack", [raw], t.Tile((256,), element))
    else:
        x = from_codes(p, raw, element)
    x = p.emit("reshape", [x], t.Tile((8, 32), element))
    x = p.emit("permute", [x], t.Tile((32, 8), element), permutation=(1, 0))
    other = x
    if element != t.I4:
        values = np.resize([1.0, 2.0, 4.0, 0.5], (32, 8))
        other = p.constant(t.Tile((32, 8), element), values)
    both = p.emit("cat", [x, other], t.Tile((32, 16), element), dim=1)
    half = p.emit("extract", [both, (p.argument(t.Tile((), t.I32)), p.constant(
        t.Tile((), t.I32), 0))], t.Tile((16, 16), element))  # fmt: skip
    flat = p.emit("reshape", [half], t.Tile((256,), element))
    p.store(to_codes(p, flat, element), size, t.I8)
    codes = np.random.default_rng(3).integers(-128, 128, size).astype(np.int8)
    p.agrees(codes, 1, np.zeros(size, np.int8), strategy=strategy)


@pytest.mark.parametrize("element", [t.F8E8M0FNU, t.F8E5M3FNU], ids=str)
def test_scales_in_memory(element):
    """A view of bytes, with what lies outside of it."""
    p, shape = Program(), (32, 8)
    p.store(p.load(shape, element), shape, element)
    codes = np.random.default_rng(4).integers(0, 255, shape).astype(np.uint8)
    p.agrees(codes, np.zeros(shape, np.uint8))


def test_elements_that_share_a_byte_in_memory_are_refused():
    message = "works on elements of type f4E2M1FN in memory, which is not supported"
    p = Program()
    p.store(p.load((16,), t.F4E2M1FN), (16,), t.F4E2M1FN)
    with pytest.raises(CompileError, match=f"'cuda_tile.make_tensor_view' op {message}"):
        p.ptx()
    p = Program()
    base = p.argument(t.Tile((), t.Pointer(t.F4E2M1FN)))
    p.emit("offset", [base, p.constant(t.Tile((), t.I32), 1)], base.type)
    with pytest.raises(CompileError, match=f"'cuda_tile.offset' op {message}"):
        p.ptx()


def test_tf32_takes_a_word():
    """Its numbers have 19 bits, and 13 zeros."""
    p = Program()
    x = p.emit("unpack", [p.load((32,), t.I8)], t.Tile((8,), t.TF32))
    p.store(p.emit("pack", [x], t.Tile((32,), t.I8)), (32,), t.I8)
    numbers = np.arange(8, dtype=np.float32).view(np.int8)
    p.agrees(numbers, np.zeros(32, np.int8))

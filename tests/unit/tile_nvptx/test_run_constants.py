"""Functions of constants, which MLIR and LLVM compute: the same numbers as at run time."""

from __future__ import annotations

import numpy as np
import pytest
from support.programs import Program
from tile_cudatile import types as t
from tile_cudatile.attrs import Dense
from tile_nvptx.passes.tileas.thread.small_floats import float_values


def test_the_angle_of_zeros_is_a_number() -> None:
    p = Program()
    tile = t.Tile((4,), t.F32)
    zeros = p.constant(tile, 0.0)
    p.store(p.emit("atan2", [zeros, zeros], tile), (4,), t.F32)
    p.agrees(np.ones(4, np.float32), opt_level=1)


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("name", ["maxf", "minf"])
def test_an_extremum_of_a_number_and_itself_flushes(name: str, nan: bool) -> None:
    p = Program()
    tile = t.Tile((4,), t.F32)
    flags = {"flush_to_zero": True} | ({"propagate_nan": True} if nan else {})
    x = p.load((4,), t.F32)
    p.store(p.emit(name, [x, x], tile, **flags), (4,), t.F32)
    tiny = p.constant(tile, 1e-45)
    p.store(p.emit(name, [tiny, tiny], tile, **flags), (4,), t.F32)
    numbers = np.array([1e-45, -1e-45, np.nan, 2], np.float32)
    p.agrees(numbers, np.ones(4, np.float32), np.ones(4, np.float32), opt_level=1)


@pytest.mark.parametrize("count", [1, 4, 64])
@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
def test_constants_of_four_bits(signedness: str, count: int) -> None:
    """Made by folding: the language has none itself."""
    p = Program()
    numbers = (np.arange(count) * 3 - 7).astype(np.int8)
    for values in (numbers, numbers[0]):
        eight = p.constant(t.Tile((count,), t.I8), values)
        four = p.emit("trunci", [eight], t.Tile((count,), t.I4))
        wide = p.emit("exti", [four], t.Tile((count,), t.I32), signedness=signedness)
        p.store(wide, (count,), t.I32)
    p.agrees(np.zeros(count, np.int32), np.zeros(count, np.int32), opt_level=1)


def test_printed_numbers_are_those_of_their_type() -> None:
    """MLIR prints 3.401160e+38 for the largest tf32, which is not the f32 of that text."""
    bits = np.random.default_rng(17).integers(0, 255 << 10, 500)  # finite: sign, 8 and 10 bits
    bits = np.concatenate([bits, bits | 1 << 18, [0, (255 << 10) - 1, 1, 1 << 10]])
    numbers = (bits.astype(np.uint32) << 13).view(np.float32)
    text = ", ".join(f"{number:.6e}" for number in numbers)
    np.testing.assert_array_equal(list(float_values(f"dense<[{text}]>", "tf32")), numbers)


@pytest.mark.parametrize("count", [8, 128])
def test_constants_of_tf32(count: int) -> None:
    """Printed with six digits, from which all nineteen bits have to come back."""
    p = Program()
    bits = (np.arange(count, dtype=np.uint32) * 524287 + 4095) % (0x7F7FE000 >> 13)
    raw = bits.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3]
    tile = t.Tile((count,), t.TF32)
    value = p.emit("constant", [], tile, value=Dense(tile, raw.tobytes()))
    p.store(value, (count,), t.TF32)
    p.agrees(np.zeros(count, np.float32))

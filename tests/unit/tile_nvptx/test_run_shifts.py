"""Shifts at the edges: by the width less one, by the width or more, and behind a guard."""

from __future__ import annotations

import numpy as np
import pytest
from support.programs import Program
from tile_cudatile import types as t
from tile_cudatile.tree import Value
from tile_cudatile.types import Tile

TRUTH = Tile((), t.I1)


@pytest.mark.parametrize(("narrow", "wide"), [(t.I32, t.I64), (t.I16, t.I32)])
@pytest.mark.parametrize("overflow", ["none", "no_signed_wrap"])
def test_widening_what_was_shifted_to_the_sign(
    narrow: t.Scalar, wide: t.Scalar, overflow: str
) -> None:
    """LLVM's NVPTX back end multiplies by a power of two that it takes for negative."""
    p = Program()
    x = p.load((4,), narrow)
    amount = p.constant(Tile((4,), narrow), narrow.width - 1)
    moved = p.emit("shli", [x, amount], Tile((4,), narrow), overflow=overflow)
    wider = p.emit("exti", [moved], Tile((4,), wide), signedness="signed")
    p.store(wider, (4,), wide)
    numbers = np.array([0, -1, 0, -1], f"int{narrow.width}")
    p.agrees(numbers, np.zeros(4, f"int{wide.width}"), opt_level=3)


@pytest.mark.parametrize("by", range(8))
@pytest.mark.parametrize("name", ["shli", "shri"])
def test_bytes_in_words(name: str, by: int) -> None:
    """Four at a time, and nothing goes from one into its neighbour."""
    p, tile = Program(), Tile((256,), t.I8)
    sign = {} if name == "shli" else {"signedness": "unsigned"}
    moved = p.emit(name, [p.load((256,), t.I8), p.constant(tile, by)], tile, **sign)
    p.store(moved, (256,), t.I8)
    given = np.arange(256).astype(np.uint8).view(np.int8)
    p.agrees(given, np.zeros(256, np.int8), opt_level=3)


@pytest.mark.parametrize("made", ["truth", "bit", "sign", "choice"])
def test_widening_a_sign_that_llvm_knows(made: str) -> None:
    """0 and -1 do not overflow, as LLVM finds out by itself."""
    p = Program()
    tile, wide = Tile((4,), t.I32), Tile((4,), t.I64)
    x = p.load((4,), t.I32)
    some = p.emit(
        "cmpi", [x, p.constant(tile, 1)], Tile((4,), t.I1),
        comparison_predicate="greater_than", signedness="signed",
    )  # fmt: skip
    sign = {
        "truth": lambda: p.emit("exti", [some], tile, signedness="signed"),
        "bit": lambda: p.emit("negi", [p.emit("andi", [x, p.constant(tile, 1)], tile)], tile),
        "sign": lambda: p.emit("shri", [x, p.constant(tile, 31)], tile, signedness="signed"),
        "choice": lambda: p.emit("select", [some, p.constant(tile, -1), x], tile),
    }[made]()
    moved = p.emit("shli", [sign, p.constant(tile, 31)], tile)
    p.store(p.emit("exti", [moved], wide, signedness="signed"), (4,), t.I64)
    p.agrees(np.array([0, -1, 3, 2], np.int32), np.zeros(4, np.int64), opt_level=3)


@pytest.mark.parametrize("element", [t.I32, t.I64])
@pytest.mark.parametrize("name", ["shli", "shri"])
def test_a_guarded_shift(element: t.Scalar, name: str) -> None:
    """LLVM's NVPTX back end drops a guard, and looks at the low half of the amount alone."""
    p = Program()
    tile = Tile((8,), element)
    x, by = p.load((8,), element), p.load((8,), element)
    inside = p.emit(
        "cmpi", [by, p.constant(tile, element.width)], Tile((8,), t.I1),
        comparison_predicate="less_than", signedness="unsigned",
    )  # fmt: skip
    flags = {"overflow": "none"} if name == "shli" else {"signedness": "unsigned"}
    moved = p.emit(name, [x, by], tile, **flags)
    p.store(p.emit("select", [inside, moved, p.constant(tile, 0)], tile), (8,), element)
    kind = f"int{element.width}"
    amounts = [0, 1, 31, 32, 63, 64, 2**31 - 1, -1]
    if element == t.I64:
        amounts[-2:] = [2**32 + 1, 2**63 - 2**33 + 3]
    p.agrees(np.arange(5, 13).astype(kind), np.array(amounts, kind), np.zeros(8, kind), opt_level=3)


def _one(p: Program, name: str, x: Value, by: Value) -> Value:
    flags = {"shli": {"overflow": "none"}, "shri": {"signedness": "signed"}}[name]
    return p.emit(name, [x, by], Tile((), t.I32), **flags)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("name", ["shli", "shri"])
def test_a_branch_goes_the_way_that_the_number_says(name: str, known: bool) -> None:
    """Whatever a shift by too much gives, it gives it to all."""
    p = Program()
    scalar = Tile((), t.I32)
    x = p.argument(scalar)
    by = p.constant(scalar, 40) if known else p.argument(scalar)
    moved = _one(p, name, x, by)
    condition = p.emit(
        "cmpi", [moved, p.constant(scalar, 0)], TRUTH,
        comparison_predicate="equal", signedness="signed",
    )  # fmt: skip
    sides = tuple(p.region([], lambda n=n: [p.constant(scalar, n)]) for n in (1, 2))
    taken = p.emit("if", [condition], scalar, regions=sides)
    p.store(moved, (1,), t.I32)
    p.store(taken, (1,), t.I32)
    numbers = [np.int32(-5), *([] if known else [np.int32(40)])]
    out, way = np.zeros(1, np.int32), np.zeros(1, np.int32)
    p.run(*numbers, out, way, opt_level=3)
    assert way[0] == (1 if out[0] == 0 else 2)
    if known:
        assert out[0] == (0 if name == "shli" else -1)

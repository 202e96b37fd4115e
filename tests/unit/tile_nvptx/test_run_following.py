"""Gathers and scatters of elements in a row: where their addresses follow from the first one's, and
where an index that wraps around in the middle parts them.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.tiles import Kernel, tile

COUNT, BASE, LENGTH = 512, 40_000, 120_000
_NUMPY = {"i16": np.int16, "i32": np.int32}
_SPLAT = '{name} = "nv_tileaa.splat"({value}) : ({kind}) -> {type}'
_CONSTANT = "{name} = arith.constant {value} : {kind}"


class Gather:
    """A kernel that reads out[k] = x[BASE + offset[k]] where its mask says so, else 0."""

    def __init__(self, kind: str, start: int) -> None:
        """%i: start, start + 1, ... of `kind`."""
        self.kernel, self.kind = Kernel(), kind
        self.pointer = self.kernel.param("!nv_tileaa.ptr<f32, 1 : i32>")
        self.op('%r32 = "nv_tileaa.make_range"() {start = 0 : i32, end = 512 : i32} : () -> '
                f"{tile((COUNT,), 'i32')}")  # fmt: skip
        row = "%r32"
        if kind == "i16":
            self.op(f"%r = arith.trunci %r32 : {tile((COUNT,), 'i32')} to {self.type(kind)}")
            row = "%r"
        self.splat("%start", start, kind)
        self.op(f"%i = arith.addi %start, {row} : {self.type(kind)}")
        wrapped = np.array(start).astype(_NUMPY[kind]) + np.arange(COUNT).astype(_NUMPY[kind])
        self.index = wrapped

    def type(self, kind: str) -> str:
        return tile((COUNT,), kind)

    def op(self, text: str) -> None:
        self.kernel.op(text)

    def splat(self, name: str, value: int, kind: str) -> None:
        self.op(_CONSTANT.format(name=f"{name}c", value=value, kind=kind))
        made = _SPLAT.format(name=name, value=f"{name}c", kind=kind, type=self.type(kind))
        self.op(made)

    def compare(self, name: str, predicate: str, left: str, bound: int, kind: str) -> None:
        self.splat(f"{name}b", bound, kind)
        self.op(f"{name} = arith.cmpi {predicate}, {left}, {name}b : {self.type(kind)}")

    def pointers(self, offset: str, kind: str) -> None:
        """%p: x + BASE + offset."""
        pointer = "!nv_tileaa.ptr<f32, 1 : i32>"
        self.op(_CONSTANT.format(name="%base", value=BASE, kind="i64"))
        self.op(f'%x = "nv_tileaa.addptr"({self.pointer}, %base) : ({pointer}, i64) -> {pointer}')
        many = f"tensor<{COUNT}x{pointer}>"
        self.op(_SPLAT.format(name="%xs", value="%x", kind=pointer, type=many))
        self.op(f'%p = "nv_tileaa.addptr"(%xs, {offset}) : ({many}, {self.type(kind)}) -> {many}')

    def gathered(self, mask: str | None) -> np.ndarray:
        many, value = f"tensor<{COUNT}x!nv_tileaa.ptr<f32, 1 : i32>>", self.type("f32")
        self.op(f"%zeros = arith.constant dense<0.0> : {value}")
        operands, types = ["%p"], [many]
        if mask is not None:
            operands, types = ["%p", mask, "%zeros"], [many, self.type("i1"), value]
        sizes = "1, 1, 1, 0" if mask is not None else "1, 0, 0, 0"
        self.op(
            f'%v, %k = "nv_tileaa.load"({", ".join(operands)}) {{mem_semantic = "weak", '
            f"operandSegmentSizes = array<i32: {sizes}>}} : ({', '.join(types)}) -> "
            f"({value}, !nv_tileaa.mem_token)"
        )
        self.kernel.store("%v", (COUNT,), "f32")
        out = np.full(COUNT, -1, np.float32)
        self.kernel.run(NUMBERS, out)
        return out

    def follows(self) -> bool:
        """Whether addresses of the gather are those of others and some bytes."""
        return bool(re.search(r"ld\.global\.b32 [^;]*\+\d+\];", self.kernel.ptx("sm_90", 2)))


NUMBERS = np.arange(1, LENGTH + 1, dtype=np.float32)


def wanted(offset: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    taken = np.ones(COUNT, bool) if mask is None else mask
    return np.where(taken, NUMBERS[BASE + np.where(taken, offset, 0).astype(np.int64)], 0)


@pytest.mark.parametrize("predicate", ["ult", "ule", "ugt", "uge"])
@pytest.mark.parametrize("start", [-2, -300, 7, 699, 2**31 - 3])
def test_indices_below_a_bound(start: int, predicate: str) -> None:
    """Whether rows begin in front of the array, or end behind it, or wrap around, where none of
    them is taken; and on either side of the comparison.
    """
    made = Gather("i32", start)
    made.op(f"%o = arith.extsi %i : {made.type('i32')} to {made.type('i64')}")
    made.pointers("%o", "i64")
    made.splat("%n", 1000, "i32")
    left, right = ("%i", "%n") if predicate.startswith("ul") else ("%n", "%i")
    made.op(f"%m = arith.cmpi {predicate}, {left}, {right} : {made.type('i32')}")
    index = made.index.astype(np.int64)
    mask = (index >= 0) & (index < 1000 + (predicate in ("ule", "uge")))
    np.testing.assert_array_equal(made.gathered("%m"), wanted(index, mask))
    assert made.follows()


def test_zero_extended_indices_part_where_they_become_zero() -> None:
    made = Gather("i32", -2)
    made.op(f"%o = arith.extui %i : {made.type('i32')} to {made.type('i64')}")
    made.pointers("%o", "i64")
    made.compare("%m", "ult", "%i", 1000, "i32")
    index = made.index.astype(np.int64)
    np.testing.assert_array_equal(made.gathered("%m"), wanted(index, index >= 0))
    assert not made.follows()


@pytest.mark.parametrize("mask", ["none", "signed", "negative", "either"])
def test_indices_of_16_bits_that_all_are_taken_part_where_they_wrap_around(mask: str) -> None:
    """Without a mask, or with one that takes negative numbers, too: below a number that is negative
    as a signed one, or where one of two comparisons holds.
    """
    made = Gather("i16", 2**15 - 3)
    made.op(f"%o = arith.extsi %i : {made.type('i16')} to {made.type('i64')}")
    made.pointers("%o", "i64")
    index, taken = made.index.astype(np.int64), np.ones(COUNT, bool)
    if mask == "signed":
        made.compare("%m", "sge", "%i", -20_000, "i16")
        taken = index >= -20_000
    elif mask == "negative":
        made.compare("%m", "ult", "%i", -32_600, "i16")
        taken = made.index.astype(np.uint16) < 2**16 - 32_600
    elif mask == "either":
        made.compare("%l", "ult", "%i", 2**15 - 2, "i16")
        made.compare("%h", "slt", "%i", -32_000, "i16")
        made.op(f"%m = arith.ori %l, %h : {made.type('i1')}")
        taken = (index == 2**15 - 3) | (index < -32_000)
    assert taken[0] or taken[-1]
    found = made.gathered(None if mask == "none" else "%m")
    np.testing.assert_array_equal(found, wanted(index, taken))
    assert not made.follows()


def test_a_bound_of_what_was_widened_before() -> None:
    """The row parts in 16 bits, and all of it lies below the bound of 32."""
    made = Gather("i16", 2**15 - 3)
    made.op(f"%w = arith.extsi %i : {made.type('i16')} to {made.type('i32')}")
    made.splat("%far", 33_000, "i32")
    made.op(f"%s = arith.addi %w, %far : {made.type('i32')}")
    made.op(f"%o = arith.extsi %s : {made.type('i32')} to {made.type('i64')}")
    made.pointers("%o", "i64")
    made.compare("%m", "ult", "%s", 70_000, "i32")
    index = made.index.astype(np.int64) + 33_000
    np.testing.assert_array_equal(made.gathered("%m"), wanted(index, index < 70_000))
    assert not made.follows()


@pytest.mark.parametrize("bounded", [False, True])
def test_offsets_that_pointers_widen(bounded: bool) -> None:
    made = Gather("i16", 2**15 - 3)
    made.pointers("%i", "i16")
    index, mask = made.index.astype(np.int64), None
    if bounded:
        made.compare("%m", "ult", "%i", 2**15 - 1, "i16")
        mask = (index >= 0) & (index < 2**15 - 1)
    np.testing.assert_array_equal(made.gathered("%m" if bounded else None), wanted(index, mask))
    assert made.follows() == bounded


def test_a_mask_of_other_elements_bounds_nothing() -> None:
    """The same comparisons, of the row turned around."""
    made = Gather("i16", 2**15 - 3)
    made.op(f"%o = arith.extsi %i : {made.type('i16')} to {made.type('i64')}")
    made.pointers("%o", "i64")
    square = {kind: tile((16, 32), kind) for kind in ("i1", "i16")}
    turned = {kind: tile((32, 16), kind) for kind in ("i1", "i16")}
    made.op(f'%q = "nv_tileaa.view"(%i) : ({made.type("i16")}) -> {square["i16"]}')
    made.op('%t = "nv_tileaa.permute"(%q) {permutation = array<i32: 1, 0>} : '
            f"({square['i16']}) -> {turned['i16']}")  # fmt: skip
    made.op(f'%u = "nv_tileaa.view"(%t) : ({turned["i16"]}) -> {made.type("i16")}')
    made.compare("%m", "ult", "%u", 2**15 - 1, "i16")
    index = made.index.astype(np.int64)
    other = index.reshape(16, 32).T.reshape(-1)
    mask = (other >= 0) & (other < 2**15 - 1)
    assert mask[0]
    np.testing.assert_array_equal(made.gathered("%m"), wanted(index, mask))
    assert not made.follows()


def test_a_mask_of_where_elements_were_before_they_moved() -> None:
    """Rows of 32 change places behind what is compared: the one that wraps around comes to a place
    that the mask lets by.
    """
    made = Gather("i16", 2**15 - 3 - 8 * 32)
    made.op(f"%o = arith.extsi %i : {made.type('i16')} to {made.type('i64')}")
    rows = tile((4, 4, 32), "i64")
    made.op(f'%q = "nv_tileaa.view"(%o) : ({made.type("i64")}) -> {rows}')
    made.op('%t = "nv_tileaa.permute"(%q) {permutation = array<i32: 1, 0, 2>} : '
            f"({rows}) -> {rows}")  # fmt: skip
    made.op(f'%u = "nv_tileaa.view"(%t) : ({rows}) -> {made.type("i64")}')
    made.pointers("%u", "i64")
    made.compare("%m", "ult", "%i", 2**15 - 1, "i16")
    index = made.index.astype(np.int64)
    moved = index.reshape(4, 4, 32).swapaxes(0, 1).reshape(-1)
    mask = (index >= 0) & (index < 2**15 - 1)
    assert mask[64:96].all()
    assert moved[64] > 0 > moved[95]
    np.testing.assert_array_equal(made.gathered("%m"), wanted(moved, mask))
    assert not made.follows()

"""`cuda-tile-skip-masks`: which masks it leaves out, and that programs compute what they did."""

from __future__ import annotations

import numpy as np
import pytest
from tile_cudatile import evaluate, parse_text, print_text, verify
from tile_cudatile.transforms.masks import skip_masks
from tile_cudatile.tree import Module

ROWS, COLUMNS = 32, 32
TILE = f"{ROWS}x{COLUMNS}"
#: How elements compare: names, and what NumPy calls them.
ORDERS = {
    "greater_than_or_equal": np.greater_equal,
    "greater_than": np.greater,
    "less_than": np.less,
    "less_than_or_equal": np.less_equal,
}


def compared(order: str, name: str = "mask") -> str:
    """%name = the element's row (from %r on) compared with its column (from %i times 32 on)."""
    return f"%{name} = cmpi {order} %rows, %columns, signed : tile<{TILE}xi32> -> tile<{TILE}xi1>\n"


def program(masks: str, *, product: bool = True, kind: str = "i32") -> Module:
    """A sum of tiles of ones that masks hide, by a loop from 0 to %n; rows begin at %r."""
    made = (
        f"%d = mmaf %a, %b, %x : tile<{ROWS}x8xf32>, tile<8x{COLUMNS}xf32>, tile<{TILE}xf32>\n"
        if product
        else f"%d = addf %x, %x rounding<nearest_even> : tile<{TILE}xf32>\n"
    )
    module = parse_text(
        "entry @k(%p: tile<ptr<f32>>, %n: tile<i32>, %r: tile<i32>, %f: tile<i32>) {\n"
        "%zero = constant <i32: 0> : tile<i32>\n%step = constant <i32: 1> : tile<i32>\n"
        f"%wide = constant <i32: {COLUMNS}> : tile<i32>\n"
        f"%a = constant <f32: 0.0> : tile<{ROWS}x8xf32>\n"
        f"%b = constant <f32: 0.0> : tile<8x{COLUMNS}xf32>\n"
        f"%ones = constant <f32: 1.0> : tile<{TILE}xf32>\n"
        f"%none = constant <f32: 0.0> : tile<{TILE}xf32>\n"
        f"%ri = iota : tile<{ROWS}xi32>\n"
        f"%rc = reshape %ri : tile<{ROWS}xi32> -> tile<{ROWS}x1xi32>\n"
        f"%rb = broadcast %rc : tile<{ROWS}x1xi32> -> tile<{TILE}xi32>\n"
        "%r1 = reshape %r : tile<i32> -> tile<1x1xi32>\n"
        f"%r2 = broadcast %r1 : tile<1x1xi32> -> tile<{TILE}xi32>\n"
        f"%rows = addi %rb, %r2 : tile<{TILE}xi32>\n"
        f"%ci = iota : tile<{COLUMNS}xi32>\n"
        f"%cc = reshape %ci : tile<{COLUMNS}xi32> -> tile<1x{COLUMNS}xi32>\n"
        f"%cb = broadcast %cc : tile<1x{COLUMNS}xi32> -> tile<{TILE}xi32>\n"
        f"%t = for %i in (%zero to %n, step %step) : tile<i32> "
        f"iter_values(%v = %none) -> (tile<{TILE}xf32>) {{\n"
        "%c0 = muli %i, %wide : tile<i32>\n%c3 = addi %c0, %f : tile<i32>\n"
        "%c1 = reshape %c3 : tile<i32> -> tile<1x1xi32>\n"
        f"%c2 = broadcast %c1 : tile<1x1xi32> -> tile<{TILE}xi32>\n"
        f"%columns = addi %cb, %c2 : tile<{TILE}xi32>\n"
        f"{masks}%x = select %mask, %ones, %none : tile<{TILE}xi1>, tile<{TILE}xf32>\n"
        f"{made}%w = addf %v, %x rounding<nearest_even> : tile<{TILE}xf32>\n"
        f"continue %w : tile<{TILE}xf32>\n}}\n"
        f"%oi = constant <i32: {COLUMNS}> : tile<{TILE}xi32>\n"
        f"%om = muli %rb, %oi : tile<{TILE}xi32>\n%oa = addi %om, %cb : tile<{TILE}xi32>\n"
        "%p1 = reshape %p : tile<ptr<f32>> -> tile<1x1xptr<f32>>\n"
        f"%p2 = broadcast %p1 : tile<1x1xptr<f32>> -> tile<{TILE}xptr<f32>>\n"
        f"%p3 = offset %p2, %oa : tile<{TILE}xptr<f32>>, tile<{TILE}xi32> "
        f"-> tile<{TILE}xptr<f32>>\n"
        f"%k = store_ptr_tko weak %p3, %t : tile<{TILE}xptr<f32>>, tile<{TILE}xf32> -> token\n"
        "return\n}\n"
    )
    verify(module)
    return module


def skip(module: Module) -> int:
    """How many masks went into branches."""
    found = skip_masks(module)
    verify(module)
    return len(found)


def result(module: Module, *numbers: int) -> np.ndarray:
    out = np.zeros((ROWS, COLUMNS), np.float32)
    evaluate(module, "k", (1,), [out, *numbers])
    return out


#: Iterations, the first row, the first column.
NEAR = [(4, row, 0) for row in (0, 1, 31, 32, 33, 63, 64, 95, 127)]
#: Rows and columns that begin anew behind the largest number, or the smallest.
FAR = [
    (2, 2**31 - 1 - 31, 0), (2, 2**31 - 31, 0), (2, 2**31 - 1, 0), (2, 0, 2**31 - 40),
    (2, 0, 2**31 - 1), (2, -(2**31), 0), (1, -(2**31), -(2**31)), (2, -5, 2**31 - 64),
]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
def test_programs_compute_what_they_did(order: str) -> None:
    before, after = program(compared(order)), program(compared(order))
    assert skip(after) == 1
    assert "if" in [op.name for op in after.entries[0].body.walk()]
    with np.errstate(over="ignore"):
        for steps, row, column in NEAR + FAR:
            found = result(after, steps, row, column)
            np.testing.assert_array_equal(found, result(before, steps, row, column))
            rows = (np.int32(row) + np.arange(ROWS, dtype=np.int32))[:, None]
            wanted = np.zeros((ROWS, COLUMNS))
            for at in range(steps):
                first = np.int64(column + 32 * at).astype(np.int32)
                wanted += ORDERS[order](rows, first + np.arange(COLUMNS, dtype=np.int32))
            np.testing.assert_array_equal(found, wanted)


#: How far rows are behind columns, in two ways.
NEARBY = ("less_than", "%rows, %columns", 40), ("greater_than_or_equal", "%columns, %rows", -39)


@pytest.mark.parametrize(("order", "sides", "most"), NEARBY)
def test_both_of_two_must_hold(order: str, sides: str, most: int) -> None:
    """As of a window: not behind its column, and not far before."""
    masks = (
        compared("greater_than_or_equal", "late")
        + f"%near = constant <i32: {most}> : tile<{TILE}xi32>\n"
        + f"%apart = subi {sides} : tile<{TILE}xi32>\n"
        + f"%soon = cmpi {order} %apart, %near, signed : tile<{TILE}xi32> -> tile<{TILE}xi1>\n"
        + f"%mask = andi %late, %soon : tile<{TILE}xi1>\n"
    )
    before, after = program(masks), program(masks)
    assert skip(after) == 1
    for numbers in NEAR + FAR:
        np.testing.assert_array_equal(result(after, *numbers), result(before, *numbers))


OTHERS = {
    "unsigned": (
        f"%mask = cmpi less_than %rows, %columns, unsigned : tile<{TILE}xi32> -> tile<{TILE}xi1>\n"
    ),
    "equal": f"%mask = cmpi equal %rows, %columns, signed : tile<{TILE}xi32> -> tile<{TILE}xi1>\n",
    "the same in each iteration": (
        f"%mask = cmpi less_than %rb, %cb, signed : tile<{TILE}xi32> -> tile<{TILE}xi1>\n"
    ),
    "no range": (
        f"%odd = muli %rows, %rows : tile<{TILE}xi32>\n"
        f"%mask = cmpi less_than %odd, %columns, signed : tile<{TILE}xi32> -> tile<{TILE}xi1>\n"
    ),
    "one of two": (
        compared("less_than", "one")
        + compared("greater_than", "other")
        + f"%mask = ori %one, %other : tile<{TILE}xi1>\n"
    ),
}


@pytest.mark.parametrize("mask", OTHERS.values(), ids=OTHERS)
def test_what_stays(mask: str) -> None:
    module = program(mask)
    text = print_text(module)
    assert skip(module) == 0
    assert print_text(module) == text


def test_loops_without_products_stay() -> None:
    assert skip(program(compared("less_than"), product=False)) == 0


def test_what_memory_gave_is_read_once() -> None:
    """A number of the block that the loop loads: its branch has the mask alone."""
    mask = (
        "%given, %token = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token\n"
        "%whole = ftoi %given signed : tile<f32> -> tile<i32>\n"
        "%one = reshape %whole : tile<i32> -> tile<1x1xi32>\n"
        f"%all = broadcast %one : tile<1x1xi32> -> tile<{TILE}xi32>\n"
        f"%least = addi %cb, %all : tile<{TILE}xi32>\n"
        f"%mask = cmpi less_than %rows, %least, signed : tile<{TILE}xi32> -> tile<{TILE}xi1>\n"
    )
    before, after = program(mask), program(mask)
    assert skip(after) == 1
    assert [op.name for op in after.entries[0].body.walk()].count("load_ptr_tko") == 1
    for numbers in NEAR:
        np.testing.assert_array_equal(result(after, *numbers), result(before, *numbers))


def test_long_sums_stay() -> None:
    """Whose numbers of the block double with each step."""
    sums = "".join(
        f"%d{at + 1} = addi %{f'd{at}' if at else 'rows'}, %{f'd{at}' if at else 'rows'} : "
        f"tile<{TILE}xi32>\n"
        for at in range(2000)
    )
    mask = (
        f"%mask = cmpi less_than %d2000, %columns, signed : tile<{TILE}xi32> -> tile<{TILE}xi1>\n"
    )
    assert skip(program(sums + mask)) == 0

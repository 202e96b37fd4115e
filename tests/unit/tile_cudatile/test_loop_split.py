"""Which loops are split: thresholds, and what branches, loops and kernels say for themselves."""

from __future__ import annotations

import numpy as np
import pytest
from tile_cudatile import (
    evaluate,
    from_mlir,
    parse_text,
    print_text,
    to_mlir,
    verify,
    write_bytecode,
)
from tile_cudatile.transforms import canonicalize, split_loops
from tile_cudatile.tree import LOOP_SPLIT, Module

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir

ADDS = "%x = addi %v, %i : tile<i32>\n%y = addi %x, %one : tile<i32>\n"
STORES = "%t = store_ptr_tko weak %p, %i : tile<ptr<i32>>, tile<i32> -> token\n"


def hint(value: int | None) -> str:
    return "" if value is None else f" {{{LOOP_SPLIT} = {value}}}"


def loop(
    inner: str = ADDS + "yield %y : tile<i32>\n",
    compare: str = "less_than %i, %m",
    branch: int | None = None,
    around: int | None = None,
    kernel: int | None = None,
) -> Module:
    module = parse_text(
        "entry @k(%p: tile<ptr<i32>>, %n: tile<i32>, %m: tile<i32>, %s: tile<i32>) {\n"
        "%one = constant <i32: 1> : tile<i32>\n%zero = constant <i32: 0> : tile<i32>\n"
        "%r = for %i in (%zero to %n, step %s) : tile<i32> iter_values(%v = %one) "
        "-> (tile<i32>) {\n"
        f"%c = cmpi {compare}, signed : tile<i32> -> tile<i1>\n"
        f"%w = if %c -> (tile<i32>) {{\n{inner}}} else {{\nyield %v : tile<i32>\n}}{hint(branch)}\n"
        f"continue %w : tile<i32>\n}}{hint(around)}\n"
        "%t = store_ptr_tko weak %p, %r : tile<ptr<i32>>, tile<i32> -> token\n"
        f"return\n}}{hint(kernel)}\n"
    )
    verify(module)
    return module


def test_thresholds_count_operations_of_a_branch() -> None:
    assert split_loops(loop(), 1) == 1
    assert split_loops(loop(), 2) == 1
    assert split_loops(loop(), 3) == 0  # the yield does not count
    assert split_loops(loop(), 0) == 0
    assert split_loops(loop(STORES + "yield %i : tile<i32>\n"), 1000) == 1


@pytest.mark.parametrize(
    ("branch", "around", "kernel", "split"),
    [
        (0, None, None, False),
        (None, 0, None, False),
        (None, None, 0, False),
        (1, 0, 0, True),
        (None, 1, 0, True),
        (0, 1, 1, False),
        (3, 1, 1, False),
        (None, None, 2, True),
    ],
)
def test_the_nearest_hint_counts(branch, around, kernel, split: bool) -> None:
    assert split_loops(loop(branch=branch, around=around, kernel=kernel)) == split
    opposite = 0 if split else 1
    module = loop(branch=branch, around=around, kernel=kernel)
    assert split_loops(module, opposite) == split


@pytest.mark.parametrize(
    "compare",
    [
        "equal %i, %m",
        "not_equal %i, %m",
        "less_than %v, %m",
        "less_than %m, %n",
        "less_than %i, %v",
    ],
)
def test_conditions_that_do_not_turn_once(compare: str) -> None:
    assert split_loops(loop(compare=compare)) == 0


def test_a_comparison_of_the_other_signedness_is_left_alone() -> None:
    text = print_text(loop()).replace(", signed", ", unsigned")
    assert split_loops(parse_text(text)) == 0


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("predicate", ["less_than", "less_than_or_equal", "greater_than",
                                       "greater_than_or_equal"])  # fmt: skip
@pytest.mark.parametrize("turned", [False, True])
def test_results_stay(predicate: str, turned: bool, step: int) -> None:
    compare = f"{predicate} {'%m, %i' if turned else '%i, %m'}"
    before, after = loop(compare=compare), loop(compare=compare)
    assert split_loops(after) == 1
    verify(after)
    canonicalize(after)
    for bound in (-2, 0, 1, 4, 5, 6, 7, 100, 2**31 - 1, -(2**31)):
        for count in (0, 1, 7):
            found = []
            for module in (before, after):
                out = np.zeros(1, np.int32)
                evaluate(module, "k", (1,), [out, count, bound, step])
                found.append(int(out[0]))
            assert found[0] == found[1], (bound, count)


def test_a_branch_deep_inside_splits_too() -> None:
    """Its comparison is a constant in both halves, wherever it stands."""
    inner = (
        "%d = cmpi greater_than %i, %n, signed : tile<i32> -> tile<i1>\n"
        "%u = if %d -> (tile<i32>) {\n" + ADDS + "yield %y : tile<i32>\n} else {\n"
        "yield %i : tile<i32>\n}\nyield %u : tile<i32>\n"
    )
    module = loop(inner, compare="equal %i, %m")
    assert split_loops(module) == 1
    canonicalize(module)
    verify(module)
    assert "greater_than" not in print_text(module)


def test_hints_survive_text_and_mlir() -> None:
    module = loop(branch=4, around=0, kernel=7)
    text = print_text(module)
    assert text.count(LOOP_SPLIT) == 3
    assert print_text(parse_text(text)) == text
    with ir.Context():
        assert print_text(from_mlir(to_mlir(module))) == text
    write_bytecode(module)  # which has no place for them


def test_hints_are_integers() -> None:
    with ir.Context():
        made = to_mlir(loop(kernel=1))
        entry = made.operation.regions[0].blocks[0].operations[0].regions[0].blocks[0].operations[0]
        entry.operation.attributes[LOOP_SPLIT] = ir.StringAttr.get("often")
        with pytest.raises(CompileError, match="is no integer"):
            from_mlir(made)

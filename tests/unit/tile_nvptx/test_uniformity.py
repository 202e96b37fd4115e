"""Which values threads share, and that every barrier is reached by all of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import tile_cudatile
from support.functions import function
from support.tiles import registry
from tile_nvptx.analysis.uniformity import Same, UniformityAnalysis
from unit.tile_nvptx.operations import CASES

import tile_core
from tile_core.diagnostics import CompileError
from tile_core.opt import OptJob, Selection, optimize

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402  # pyright: ignore[reportMissingImports] - beside the programs

HEAD = """
  %zero = arith.constant 0 : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %b = nvvm.read.ptx.sreg.ctaid.x : i32
  %high = arith.constant 96 : i32
  %low = arith.constant 3 : i32
  %five = arith.constant 5 : i32
  %own = arith.cmpi eq, %t, %zero : i32
  %all = arith.cmpi eq, %b, %n : i32
"""


def last(body: str) -> Same:
    """Among whom the last value of `body` is the same."""
    with function(f"func.func @f(%n: i32, %p: !llvm.ptr<1>) {{{HEAD}{body}\nreturn\n}}") as func:
        known = UniformityAnalysis(func.operation)
        return known[list(func.regions[0].blocks[0].operations)[-2].results[0]]


@pytest.mark.parametrize(
    ("body", "same"),
    [
        ("%x = arith.addi %n, %b : i32", Same.BLOCK),
        ("%x = arith.addi %n, %t : i32", Same.NOBODY),
        ("%x = arith.andi %t, %high : i32", Same.WARP),
        ("%x = arith.andi %t, %low : i32", Same.NOBODY),
        ("%x = arith.shrui %t, %five : i32", Same.WARP),
        ("%x = arith.shrui %t, %low : i32", Same.NOBODY),
        ("%x = llvm.load %p : !llvm.ptr<1> -> i32", Same.BLOCK),
        (
            "%q = llvm.getelementptr %p[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
            "%x = llvm.load %q : !llvm.ptr<1> -> i32",
            Same.NOBODY,
        ),
        (
            '%x = llvm.atomicrmw add %p, %n syncscope("device") monotonic : !llvm.ptr<1>, i32',
            Same.NOBODY,
        ),
        ("%x = nvvm.read.ptx.sreg.laneid : i32", Same.NOBODY),
        ("%x = nvvm.read.ptx.sreg.warpid : i32", Same.WARP),
        (
            "%x = scf.if %all -> (i32) { scf.yield %n : i32 } else { scf.yield %b : i32 }",
            Same.BLOCK,
        ),
        # Each branch yields what is the same for all, but not all take the same one.
        (
            "%x = scf.if %own -> (i32) { scf.yield %n : i32 } else { scf.yield %b : i32 }",
            Same.NOBODY,
        ),
        (
            "%x = scf.for %i = %zero to %n step %five iter_args(%y = %n) -> (i32) : i32 {\n"
            "%z = arith.addi %y, %i : i32\nscf.yield %z : i32 }",
            Same.BLOCK,
        ),
        # What a loop adds up is only the same for those that go round as often.
        (
            "%x = scf.for %i = %zero to %t step %five iter_args(%y = %n) -> (i32) : i32 {\n"
            "%z = arith.addi %y, %n : i32\nscf.yield %z : i32 }",
            Same.NOBODY,
        ),
        (
            "%x = scf.for %i = %zero to %n step %five iter_args(%y = %n) -> (i32) : i32 {\n"
            "%z = arith.addi %y, %t : i32\nscf.yield %z : i32 }",
            Same.NOBODY,
        ),
    ],
)
def test_values(body: str, same: Same) -> None:
    assert last(body) == same


def checked(source: Any, start: str | None) -> int:
    """Barriers of a compiled program, all of which all threads reach."""
    made = tile_core.compile(
        source,
        "sm_90",
        opt_level=2,
        start_at=start,
        stop_after="convert-tileas-to-llvm",
        registry=registry(),
    )
    text = str(made.stages["mlir"])
    optimize(text, 0, OptJob(registry(), Selection(passes="nvptx-check-convergence")))
    return text.count("nvvm.barrier")


@pytest.mark.parametrize("name", cases.NAMES)
def test_examples(name: str) -> None:
    checked(cases.case(name).bytecode, None)


#: Products with scales branch on what all threads fold from all lanes, which cannot be seen here.
FOLDED = "scaled_product"


@pytest.mark.parametrize("family", sorted({make.__name__ for make, _ in CASES}))
def test_operations(family: str) -> None:
    """Barriers of every kind of operation."""
    make, kind = next((make, kind) for make, kind in CASES if make.__name__ == family)
    source = str(tile_cudatile.to_mlir(make(kind).p.module()))
    if family == FOLDED:
        with pytest.raises(CompileError, match="are known to come by"):
            checked(source, "convert-cudatile-to-tileaa")
    else:
        barriers = checked(source, "convert-cudatile-to-tileaa")
        assert barriers or family not in ("folds", "shapes")

"""Bisection names the pass that was planted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.planted import registry
from tile_cudatile import parse_text, verify
from tile_fuzz.bisection import Verdict, bisect, steps_of
from tile_fuzz.case import Argument, Case, Launch
from tile_fuzz.oracle import Setting
from tile_fuzz.workers import Worker

PROGRAM = """
entry @k(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>) {
  %0 = iota : tile<64xi32>
  %1 = reshape %x : tile<ptr<i32>> -> tile<1xptr<i32>>
  %2 = broadcast %1 : tile<1xptr<i32>> -> tile<64xptr<i32>>
  %3 = offset %2, %0 : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
  %4, %t4 = load_ptr_tko weak %3 : tile<64xptr<i32>> -> tile<64xi32>, token
  %5 = subi %4, %0 : tile<64xi32>
  %6 = reshape %y : tile<ptr<i32>> -> tile<1xptr<i32>>
  %7 = broadcast %6 : tile<1xptr<i32>> -> tile<64xptr<i32>>
  %8 = offset %7, %0 : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
  %9 = store_ptr_tko weak %8, %5 : tile<64xptr<i32>>, tile<64xi32> -> token
  return
}
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker(registry, 120)
    yield made
    made.close()


def case() -> Case:
    module = parse_text(PROGRAM)
    verify(module)
    arguments = (Argument("i32", 64, "bits", 3), Argument("i32", 64))
    return Case(module, [Launch("k", (1, 1, 1), arguments)])


def searched(
    worker: Worker, folder: Path, inserts: str, level: int = 2
) -> tuple[Verdict, list[str]]:
    """What bisection says of the level's pipeline with passes inserted."""
    path = folder / "mine.toml"
    path.write_text(f'[pipeline]\nname = "mine"\nextends = "O{level}"\n{inserts}')
    lines: list[str] = []
    setting = Setting("sm_90", None, str(path))
    verdict = bisect(case(), setting, registry(), worker, lines.append)
    return verdict, lines


def inserted(name: str, after: str = "tileas-plan-accesses") -> str:
    return f'[[insert]]\nsegment = "tileas"\nafter = "{after}"\npasses = ["{name}"]\n'


BEFORE = '[[insert]]\nsegment = "to-tileaa"\nbefore = "convert-cudatile-to-tileaa"\npasses = [{}]\n'


def test_a_wrong_pass_is_named_among_right_ones(worker: Worker, tmp_path: Path) -> None:
    inserts = inserted("planted-harmless") + inserted("planted-swap-subi", "planted-harmless")
    verdict, lines = searched(worker, tmp_path, inserts)
    assert verdict.culprits == ("tileas/planted-swap-subi",)
    assert verdict.failure is not None
    assert verdict.failure.kind == "result"
    before = lines[lines.index("tileas/planted-swap-subi: result") - 1]
    assert before.endswith(": right")


def test_a_wrong_pass_on_cuda_tile_is_found_by_the_evaluator(
    worker: Worker, tmp_path: Path
) -> None:
    passes = '"cuda-tile-canonicalize", "planted-swap-early"'
    verdict, lines = searched(worker, tmp_path, BEFORE.format(passes))
    assert verdict.culprits == ("to-tileaa/planted-swap-early",)
    assert "evaluator" in verdict.how
    assert "to-tileaa/cuda-tile-canonicalize: the evaluator's result is the same" in lines


@pytest.mark.parametrize(
    ("name", "how"),
    [("planted-refuse", "fails"), ("planted-break", "not valid"), ("planted-crash", "survive")],
)
def test_a_pass_that_fails_is_named(worker: Worker, tmp_path: Path, name: str, how: str) -> None:
    verdict, _ = searched(worker, tmp_path, inserted(name), level=0)
    assert verdict.culprits == (f"tileas/{name}",)
    assert how in verdict.how


def test_nothing_is_blamed_for_a_right_result(worker: Worker, tmp_path: Path) -> None:
    verdict, _ = searched(worker, tmp_path, inserted("planted-harmless"))
    assert verdict.culprits == ()
    assert verdict.failure is None


def test_a_mistake_of_the_mandatory_passes_is_told_from_others(
    worker: Worker, tmp_path: Path
) -> None:
    """A layout strategy and a replaced option are steps of their own."""
    path = tmp_path / "mine.toml"
    path.write_text('[pipeline]\nname = "mine"\nextends = "O1"\n')
    names = [step.name for step in steps_of(Setting("sm_90", None, str(path)), registry())]
    assert "option layout-strategy = blocked (not first-legal)" in names
    assert names.index("tileas/mlir:cse") > names.index("tileas/tileas-remove-layout-conversions")
    assert not [n for n in names if re.search("tileas-assign-layouts|convert", n)]

"""Shrinking keeps what makes a program fail, and little else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.planted import registry
from tile_cudatile import parse_text, verify
from tile_fuzz.case import Argument, Case, Launch
from tile_fuzz.generator import Settings, generate
from tile_fuzz.generator.gaps import GAPS
from tile_fuzz.oracle import Reference, Setting, examine
from tile_fuzz.shrink import Shrinker
from tile_fuzz.shrink.copying import copied, numbered, tidy

LIMITS = Settings(operations=16, elements=32, avoid=frozenset(GAPS))


def names(case: Case) -> list[str]:
    return [op.name for op in numbered(case)]


def has(name: str) -> Callable[[Case], bool]:
    """Whether a case does what is defined, and has an operation of that name."""
    return lambda case: name in names(case) and Reference(case) is not None


def case_with(name: str) -> Case:
    return next(c for c in (generate(seed, LIMITS) for seed in range(200)) if name in names(c))


@pytest.mark.parametrize("name", ["store_ptr_tko", "store_view_tko", "assert"])
def test_only_what_matters_is_left(name: str) -> None:
    case = case_with(name)
    before = names(case)
    small = Shrinker(case, has(name)).run()
    verify(small.module)
    Reference(small)
    assert name in names(small)
    assert len(names(small)) <= 14 < len(before)
    assert names(case) == before, "the original was changed"


@pytest.mark.parametrize("seed", range(4))
def test_a_copy_is_the_same_program(seed: int) -> None:
    case = generate(seed, LIMITS)
    copy = copied(case)
    assert names(copy) == names(case)
    assert not {*numbered(copy)} & {*numbered(case)}
    tidy(copy)
    verify(copy.module)
    Reference(copy)


def test_shapes_shrink() -> None:
    text = """
    entry @k(%p: tile<ptr<i32>>) {
      %0 = iota : tile<64xi32>
      %1 = reshape %0 : tile<64xi32> -> tile<8x8xi32>
      %2 = constant <i32: 3> : tile<8x8xi32>
      %3 = cmpi less_than %1, %2, signed : tile<8x8xi32> -> tile<8x8xi1>
      assert %3, "no" : tile<8x8xi1>
      return
    }"""
    case = Case(parse_text(text), [Launch("k", (1, 1, 1), (Argument("i32", 64),))])
    small = Shrinker(case, has("assert")).run()
    (asserted,) = (op for op in numbered(small) if op.name == "assert")
    assert asserted.values()[0].type.shape == (1, 1)  # type: ignore[union-attr]


LOOP = """
entry @k(%p: tile<ptr<i32>>) {
  %0 = constant <i32: 0> : tile<i32>
  %1 = constant <i32: 1> : tile<i32>
  %4 = constant <i32: 4> : tile<i32>
  %r, %s = for %i in (%0 to %4, step %1) : tile<i32> iter_values(%a = %0, %b = %1)
      -> (tile<i32>, tile<i32>) {
    %c = cmpi less_than %i, %1, signed : tile<i32> -> tile<i1>
    %d = if %c -> (tile<i32>) {
      %e = subi %a, %i : tile<i32>
      yield %e : tile<i32>
    } else {
      yield %b : tile<i32>
    }
    %f = addi %d, %1 : tile<i32>
    continue %d, %f : tile<i32>, tile<i32>
  }
  %t = store_ptr_tko weak %p, %r : tile<ptr<i32>>, tile<i32> -> token
  return
}
"""


def test_control_flow_goes_away() -> None:
    case = Case(parse_text(LOOP), [Launch("k", (1, 1, 1), (Argument("i32", 1),))])
    small = Shrinker(case, has("subi")).run()
    assert not {"for", "if"} & {*names(small)}


@pytest.mark.slow
def test_a_planted_mistake_is_found_and_made_small(tmp_path) -> None:
    """The whole way: random programs, a pass that is wrong, a few operations that show it."""
    path = tmp_path / "mine.toml"
    path.write_text(
        '[pipeline]\nname = "mine"\nextends = "O1"\n[[insert]]\nsegment = "tileas"\n'
        'after = "tileas-plan-accesses"\npasses = ["planted-swap-subi"]\n'
    )
    setting, plugins = Setting("sm_90", None, str(path)), registry()
    for seed in range(200):
        case = generate(seed, LIMITS)
        failure = examine(case, [setting], plugins) if "subi" in names(case) else None
        if failure is not None and failure.kind == "result":
            break
    else:
        raise AssertionError("no program noticed")

    def fails(candidate: Case) -> bool:
        found = examine(candidate, [setting], plugins)
        return found is not None and found.key == failure.key

    small = Shrinker(case, fails, seconds=30).run()
    assert "subi" in names(small)
    assert len(names(small)) < len(names(case)) / 2
    assert examine(small, [Setting("sm_90", 1)], plugins) is None

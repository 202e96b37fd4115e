"""Loops of products with two accumulators in turn: agents copy, multiply, and have the rest."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.pipelined import Steps
from support.removals import SCHEDULES, is_caught, without, without_meetings, wrong_waits

import tile_core
from tile_core.artifact import Artifact

_LEAST_STEPS = 20_000  # of a kernel that ends; mutants may wait for ever
_MOST = 7
#: More runs than accumulators, so that each is used again, and an odd number of them.
_TURNS = 5
#: By the number of blocks that make a product together.
STEPS = {
    1: Steps(turns=_TURNS, moving=True, most=_MOST),
    2: Steps(turns=_TURNS, moving=True, most=_MOST, tile=(256, 16, 32)),
}
#: First and last step: more than stages; some runs have none; none has.
RANGES = ((-8, _MOST), (0, _MOST), (0, 4), (1, 1))


def made(steps: Steps, blocks: int = 1, options: dict[str, bool] | None = None) -> Artifact:
    module = steps.program().module()
    tile_cudatile.verify(module)
    return tile_core.compile(
        str(tile_cudatile.to_mlir(module)), "sm_100", opt_level=2, emit="ptx",
        start_at="convert-cudatile-to-tileaa",
        options={"num-ctas": blocks, "unspecialized-pipeline-num-stages": 2},
        pass_options=options, keep_stages=False,
    )  # fmt: skip


@cache
def ptx(blocks: int) -> str:
    found = made(STEPS[blocks], blocks)
    assert any("two accumulators in turn" in str(remark) for remark in found.remarks)
    return str(found.stage("ptx"))


def check(blocks: int, text: str, first: int, last: int, schedule: str) -> None:
    """The steps from `first` to `last`, all in the last turn, against NumPy."""
    steps = STEPS[blocks]
    arguments = steps.arguments(first, last)
    a, b = (one.astype(np.float32) for one in arguments[:2])
    turns = [range(first + 3 * turn, last) for turn in range(steps.turns)]
    inside = [i for turn in turns for i in turn if 0 <= i < len(a)]
    meant = sum((a[i] @ b[i] for i in inside), np.zeros_like(arguments[-1]))
    report = tile_sim.Module(text).launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=_LEAST_STEPS
    )
    assert not report.findings
    np.testing.assert_array_equal(arguments[-1], meant)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("blocks", STEPS)
def test_every_trip_count(blocks: int, schedule: str) -> None:
    for first, last in RANGES:
        check(blocks, ptx(blocks), first, last, schedule)


def fails(blocks: int, text: str) -> bool:
    ranges = ((0, _MOST), (0, 4))
    return any(is_caught(partial(check, blocks, text, *one)) for one in ranges)


@pytest.mark.parametrize("blocks", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_wait_can_go_or_be_for_another_phase(blocks: int) -> None:
    for number, broken in enumerate(wrong_waits(ptx(blocks))):
        assert fails(blocks, broken), number


_MEETING = "meeting of blocks"
#: Fences with nothing but comments between count as one.
_FENCES = r"(?:tcgen05\.fence::{}_thread_sync[^;]*;\s*(?://[^\n]*\s*)*)+"
_BEFORE, _AFTER = (_FENCES.format(side) for side in ("before", "after"))
#: What the simulator does not miss, by the number of blocks: fences around allocation and
#: deallocation (see test_run_tensor_dot); of the meetings behind the agents of a pair, that of the
#: block or that of both.
SPARE = {
    _BEFORE: {1: 1, 2: 4},
    _AFTER: {1: 3, 2: 3},
    r"\bbar\.sync[^;]*;": {2: 1},
    _MEETING: {2: 1},
}


@pytest.mark.parametrize("blocks", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_nothing_of_it_can_go(blocks: int) -> None:
    text = ptx(blocks)
    for pattern in (
        r"\bbar\.sync[^;]*;", _MEETING, r"tcgen05\.commit[^;]*;",
        r"mbarrier\.arrive\.expect_tx[^;]*;", r"mbarrier\.arrive\.shared[^;]*;",
        r"mbarrier\.init[^;]*;", r"fence\.mbarrier_init[^;]*;", _BEFORE, _AFTER,
        r"tcgen05\.alloc[^;]*;", r"tcgen05\.dealloc[^;]*;", r"tcgen05\.wait::ld[^;]*;",
    ):  # fmt: skip
        broken = without_meetings(text) if pattern == _MEETING else without(text, pattern)
        assert broken or (pattern == _MEETING and blocks == 1) or "arrive" in pattern, pattern
        missed = [number for number, one in enumerate(broken) if not fails(blocks, one)]
        assert len(missed) <= SPARE.get(pattern, {}).get(blocks, 0), (pattern, missed, len(broken))


def test_where_two_accumulators_do_not_fit() -> None:
    found = made(Steps(turns=_TURNS, most=_MOST, tile=(256, 16, 256)))
    remarks = [str(remark) for remark in found.remarks]
    assert not any("two accumulators in turn" in remark for remark in remarks)
    assert any("has one accumulator" in remark for remark in remarks)


def test_not_where_it_is_not_wanted() -> None:
    found = made(STEPS[1], options={"tileas-unspecialized-pipeline.in-turn": False})
    assert not any("two accumulators in turn" in str(remark) for remark in found.remarks)

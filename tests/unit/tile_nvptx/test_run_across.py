"""Loops of products whose stages go on from run to run: the numbers of one run after the other, and
nothing too many.
"""

from __future__ import annotations

import re
from functools import cache, partial

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.pipelined import Steps
from support.removals import SCHEDULES, is_caught, without, without_meetings, wrong_waits

import tile_core
from tile_core.artifact import Artifact

_LEAST_STEPS = 5_000  # of a kernel that ends; mutants may wait for ever
_MOST = 9
#: By the number of blocks that make a product together.
STEPS = {
    1: Steps(turns=3, moving=True, most=_MOST),
    2: Steps(turns=3, moving=True, most=_MOST, tile=(256, 16, 32)),
}


def made(steps: Steps, blocks: int = 1, *, stages: int = 2, across: bool = True) -> Artifact:
    module = steps.program().module()
    tile_cudatile.verify(module)
    options = {"num-ctas": blocks, "unspecialized-pipeline-num-stages": stages}
    return tile_core.compile(
        str(tile_cudatile.to_mlir(module)), "sm_100", opt_level=2, emit="ptx",
        start_at="convert-cudatile-to-tileaa", options=options, keep_stages=False,
        pass_options={
            "tileas-unspecialized-pipeline.across": across,
            "tileas-unspecialized-pipeline.in-turn": False,
        },
    )  # fmt: skip


@cache
def ptx(blocks: int, stages: int = 2) -> str:
    return str(made(STEPS[blocks], blocks, stages=stages).stage("ptx"))


def check(blocks: int, text: str, first: int, last: int, schedule: str) -> None:
    """The steps from `first` to `last`, all in the last turn, against NumPy."""
    steps = STEPS[blocks]
    arguments = steps.arguments(first, last)
    a, b = (one.astype(np.float32) for one in arguments[:2])
    turns = [range(first + 3 * turn, last) for turn in range(steps.turns)]
    meant = sum((a[i] @ b[i] for turn in turns for i in turn), np.zeros_like(arguments[-1]))
    report = tile_sim.Module(text).launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=_LEAST_STEPS
    )
    assert not report.findings
    np.testing.assert_array_equal(arguments[-1], meant)


@pytest.mark.parametrize(("blocks", "stages"), [(1, 2), (2, 2), (1, 3)])
def test_every_trip_count(blocks: int, stages: int) -> None:
    """Runs with more steps than stages, with fewer, and with none."""
    text = ptx(blocks, stages)
    assert "mbarrier.inval" not in text
    for first, last in ((0, _MOST), (0, 6), (0, 4), (2, 4), (1, 1)):
        for schedule in SCHEDULES:
            check(blocks, text, first, last, schedule)


def fails(blocks: int, text: str) -> bool:
    ranges = ((0, _MOST), (0, 6))
    return any(is_caught(partial(check, blocks, text, *one)) for one in ranges)


@pytest.mark.parametrize("blocks", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_wait_can_go_or_be_for_another_phase(blocks: int) -> None:
    for number, broken in enumerate(wrong_waits(ptx(blocks))):
        assert fails(blocks, broken), number


_MEETING = "meeting of blocks"
#: What can go, by the number of blocks: the meeting behind the end of a product where another one
#: follows; fences around meetings behind which nobody touches what they are for.
SPARE = {r"\bbar\.sync[^;]*;": 1, _MEETING: 1}


@pytest.mark.parametrize("blocks", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_nothing_of_it_can_go(blocks: int) -> None:
    text = ptx(blocks)
    for pattern in (
        r"\bbar\.sync[^;]*;", _MEETING, r"tcgen05\.commit[^;]*;",
        r"mbarrier\.arrive\.expect_tx[^;]*;",
    ):  # fmt: skip
        broken = without_meetings(text) if pattern == _MEETING else without(text, pattern)
        missed = [number for number, one in enumerate(broken) if not fails(blocks, one)]
        assert len(missed) <= SPARE.get(pattern, 0), (pattern, missed, len(broken))


def test_copies_are_not_begun_by_the_thread_that_begins_products() -> None:
    """Waits for products and copies are of one thread, products of another one."""
    text = ptx(1)
    leader = re.search(r"setp\.ne\.b32 \t(%p\d+), %r\d+, 0;", text)
    copier = re.search(r"setp\.ne\.b32 \t(%p\d+), %r\d+, 32;", text)
    assert leader
    assert copier


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (Steps(turns=3, step=2, most=_MOST), "its step is not one"),
    ],
)
def test_what_begins_each_run_anew(steps: Steps, why: str) -> None:
    found = made(steps)
    assert any(why in str(remark) for remark in found.remarks)
    assert "mbarrier.inval" in str(found.stage("ptx"))


def test_not_where_it_is_not_wanted() -> None:
    assert "mbarrier.inval" in str(made(STEPS[1], across=False).stage("ptx"))

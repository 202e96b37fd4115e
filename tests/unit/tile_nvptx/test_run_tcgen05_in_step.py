"""Products by tcgen05 that are in flight within a step of a loop, or begin a step ahead: the same
numbers for every trip count, and nothing too many.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import pytest
import tile_cudatile
from support.removals import SCHEDULES, is_caught, without, wrong_waits
from support.several_products import MOST, Several
from support.trips import check

import tile_core

BOTH, FOLDED, BESIDE, BEGUN = map(Several, ("both", "folded", "beside", "begun"))
#: Stages, and whether products that read tiles alone begin a step ahead of others.
WAYS = {"in step, waits at its end": 2, "in step": 3, "a step ahead": 4}


@cache
def ptx(program: Several, stages: int, strategy: str = "unspecialize") -> str:
    module = program.program().module()
    tile_cudatile.verify(module)
    options = {
        "unspecialized-pipeline-num-stages": stages,
        "pipeline-strategy": strategy,
        "num-ctas": 1,
    }
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), "sm_100", opt_level=2, emit="ptx",
        start_at="convert-cudatile-to-tileaa", options=options, keep_stages=False,
    )  # fmt: skip
    return str(made.stage("ptx"))


def test_which_way_is_taken() -> None:
    """K of 64 takes four instructions a product. Ends are told to a barrier of each product whose
    result is used and of the last ones, a step ahead also of those before the loop.
    """
    assert [ptx(BOTH, stages).count("tcgen05.mma") for stages in (2, 3, 4)] == [16, 16, 24]
    assert [ptx(BOTH, stages).count("tcgen05.commit") for stages in (2, 3, 4)] == [3, 3, 7]
    # One product is begun ahead or not in flight at all; no other one is there to keep in flight.
    assert [ptx(FOLDED, stages).count("tcgen05.mma") for stages in (2, 3)] == [4, 8]
    assert ptx(BOTH, 3, "none").count("mbarrier.arrive.shared") == 0


@pytest.mark.parametrize("stages", WAYS.values(), ids=list(WAYS))
@pytest.mark.parametrize("program", [BOTH, FOLDED, BESIDE, BEGUN], ids=lambda one: one.kind)
def test_every_trip_count(program: Several, stages: int) -> None:
    text = ptx(program, stages)
    for first, last in ((0, MOST), (3, 7), (2, 5), (4, 6), (5, 6), (1, 1)):
        for schedule in SCHEDULES:
            check(program, text, first, last, schedule)


@pytest.mark.parametrize("stages", WAYS.values(), ids=list(WAYS))
@pytest.mark.parametrize("kind", ["both", "folded", "beside"])
def test_a_loop_that_runs_again(kind: str, stages: int) -> None:
    """Turns of barriers go on from run to run: none is left that nobody has waited for."""
    program = Several(kind, runs=3)
    text = ptx(program, stages)
    for first, last in ((0, MOST), (2, 5), (5, 6), (1, 1)):
        for schedule in SCHEDULES:
            check(program, text, first, last, schedule)


def fails(program: Several, text: str) -> bool:
    return any(is_caught(partial(check, program, text, *one)) for one in ((0, MOST), (2, 5)))


#: What can go, by the number of stages: that the thread that begins a step's first product waits
#: for the others, which it has done behind all that they read; a step ahead its wait for a stage,
#: as it has waited a step before, and behind the loop the one for the last products, which the next
#: run of the loop counts on, as all are waited for there.
SPARE_WAITS = {2: 1, 3: 1, 4: 2}


@pytest.mark.parametrize("stages", WAYS.values(), ids=list(WAYS))
def test_no_wait_can_go_or_be_for_another_phase(stages: int) -> None:
    missed = [
        number
        for number, broken in enumerate(wrong_waits(ptx(BOTH, stages)))
        if not fails(BOTH, broken)
    ]
    assert len(missed) <= SPARE_WAITS[stages], missed


#: Meetings behind initialisations of barriers, and before tensor memory is taken: another follows.
SPARE = {r"\bbar\.sync[^;]*;": 2}
INSTRUCTIONS = (
    r"tcgen05\.commit[^;]*;", r"mbarrier\.arrive\.shared[^;]*;", r"\bbar\.sync[^;]*;",
    r"mbarrier\.arrive\.expect_tx[^;]*;", r"tcgen05\.wait::ld[^;]*;", r"tcgen05\.wait::st[^;]*;",
)  # fmt: skip


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
@pytest.mark.parametrize("stages", [3, 4])
def test_nothing_of_it_can_go(stages: int, instruction: str) -> None:
    mutants = without(ptx(BOTH, stages), instruction)
    assert mutants
    missed = [number for number, broken in enumerate(mutants) if not fails(BOTH, broken)]
    assert len(missed) <= SPARE.get(instruction, 0), (missed, len(mutants))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_stage_is_filled_again_between_products_of_one_sum(schedule: str) -> None:
    """They begin together, where the last one stands."""
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    program = Path(__file__).resolve().parents[2] / "support" / "one_sum.py"
    command = [sys.executable, str(program), schedule]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]

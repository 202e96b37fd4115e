"""Two products of a step that multiply one tile: it lies in memory once, and where fragments are
read ahead or products stay in flight, the same numbers for every trip count, nothing too many.
"""

from __future__ import annotations

import re
from functools import cache, partial

import pytest
import tile_cudatile
from support.removals import SCHEDULES, is_caught, without
from support.shared_left import MOST, SharedLeft
from support.trips import check

import tile_core

ADDED, FOLDED, LINKED = map(SharedLeft, ("added", "folded", "linked"))
TRIPS = ((0, MOST), (3, 7), (2, 5), (4, 6), (5, 6), (1, 1))


@cache
def made(
    program: SharedLeft, target: str, what: str, stages: int = 3, *, ahead: bool = True
) -> str:
    module = program.program().module()
    tile_cudatile.verify(module)
    option = "tileas-unspecialized-pipeline.fragments-ahead"
    compiled = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), target, opt_level=2, emit=what,
        start_at="convert-cudatile-to-tileaa", keep_stages=False,
        options={"unspecialized-pipeline-num-stages": stages}, pass_options={option: ahead},
    )  # fmt: skip
    return str(compiled.stage(what))


@pytest.mark.parametrize("target", ["sm_80", "sm_120"])
def test_the_tile_is_stored_once_and_read_once(target: str) -> None:
    """Three buffers for three tiles; of each part along K, three reads and two products."""
    text = made(ADDED, target, "mlir:tileas-unspecialized-pipeline")
    assert len(re.findall(r'"nv_tileas.alloc_tensor"\(\) .*pipelined', text)) == 3
    parts = 64 // 16
    assert text.count('"nv_tileas.dot"') == 2 * parts
    reads = text.count('"nv_tileas.extract_slice"')
    assert reads == 3 * (parts + 1)  # the first ones before the loop, too


#: Warpgroups read shared memory themselves: no fragments ahead or not.
TIERS = (("sm_80", True), ("sm_80", False), ("sm_90", True), ("sm_120", True), ("sm_120", False))


@pytest.mark.parametrize(("target", "ahead"), TIERS)
@pytest.mark.parametrize("program", [ADDED, FOLDED, LINKED], ids=lambda one: one.kind)
def test_every_trip_count(program: SharedLeft, target: str, ahead: bool) -> None:
    text = made(program, target, "ptx", ahead=ahead)
    for first, last in TRIPS:
        for schedule in SCHEDULES:
            check(program, text, first, last, schedule)


def fails(program: SharedLeft, text: str) -> bool:
    return any(is_caught(partial(check, program, text, *one)) for one in ((0, MOST), (2, 5)))


#: What synchronises, and how many of it can go: fragments that are read ahead; stages of products
#: in flight that are filled anew behind the wait for the step before. Behind the loop there is a
#: wait for each of two results; where a step waits for its second product, it does for the first.
NEEDED = (
    (ADDED, "sm_80", r"cp\.async\.wait_group[^;]*;", 0),
    (ADDED, "sm_80", r"\bbar(rier)?\.\w*\.?sync[^;]*;", 0),
    (ADDED, "sm_90", r"mbarrier\.arrive\.shared[^;]*;", 0),
    (ADDED, "sm_90", r"wgmma\.wait_group[^;]*;", 2),
    (FOLDED, "sm_90", r"mbarrier\.arrive\.shared[^;]*;", 0),
    (FOLDED, "sm_90", r"wgmma\.wait_group[^;]*;", 2),
)


@pytest.mark.parametrize(("program", "target", "instruction", "spare"), NEEDED)
def test_nothing_of_it_can_go(
    program: SharedLeft, target: str, instruction: str, spare: int
) -> None:
    text = made(program, target, "ptx")
    broken = without(text, instruction)
    assert len(broken) > spare
    missed = [mutant for mutant in broken if not fails(program, mutant)]
    assert len(missed) == spare

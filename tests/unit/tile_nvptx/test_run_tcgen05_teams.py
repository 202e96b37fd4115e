"""Attention of 256 queries on sm_100: four warps each have the rows of one instruction."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from support.removals import SCHEDULES, is_caught
from support.tensor_attention import Attention, attend, compiled, ptx

#: One block of a multiprocessor, whose leaders and whose scaling are agents of their own.
FULL = Attention(rows=256)
MASKED = Attention(rows=256, causal=True)
#: Two, without registers for other agents: some of each team's threads lead.
TWO = Attention(rows=256, keys=64, depth=64, hints="occupancy=2")


def products(text: str) -> list[int]:
    """Instructions of products that are begun one after the other, in program order."""
    sizes = [len(re.findall(r"tcgen05\.mma", line)) for line in text.splitlines()]
    return [size for size in sizes if size]


def test_leaders_and_scaling_are_agents() -> None:
    """256 threads, as many that scale, and a warpgroup of which three threads work: code for each
    leader, of its own team's instructions. Scores and sums take all columns.
    """
    text = ptx(FULL)
    assert ".reqntid 640" in text
    assert text.count("setmaxnreg.inc") == 1
    assert text.count("setmaxnreg.dec") == 2
    # Of each of two leaders: by the first keys; in the loop six steps of 16 keys and two, all of
    # depth.
    assert products(text) == [8, 6, 2, 8] * 2
    assert re.findall(r"tcgen05\.alloc[^;]*, (\d+);", text) == ["512"]


def test_two_blocks_have_no_other_agents() -> None:
    text = ptx(TWO)
    assert ".reqntid 256" in text
    assert "setmaxnreg" not in text
    assert products(text) == [4, 3, 1, 4]
    assert re.findall(r"tcgen05\.alloc[^;]*, (\d+);", text) == ["256"]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("what", [FULL, TWO], ids=["one block", "two blocks"])
def test_results(what: Attention, schedule: str) -> None:
    """Two blocks: weights of a team lay over scores of the other one, which may not have read."""
    attend(what, ptx(what), schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_with_a_mask(schedule: str) -> None:
    attend(MASKED, ptx(MASKED), schedule, 1)


@pytest.mark.parametrize(
    "what",
    [
        Attention(256, 64, 128),
        Attention(256, 128, 64),
        Attention(256, 64, 64),
        Attention(512, 64, 64),
    ],
    ids=lambda what: f"{what.rows}x{what.keys}x{what.depth}",
)
def test_other_tiles(what: Attention) -> None:
    """More keys or fewer, shallow heads; four teams."""
    attend(what, ptx(what), "random")


def test_a_hint_of_blocks_that_have_no_columns_is_given_up() -> None:
    """Sums of 384 columns leave none to a second block: threads get the registers of both."""
    what = Attention(256, 64, 128, hints="occupancy=2")
    messages = [remark.message for remark in compiled(what).remarks]
    assert any("occupancy is 1, not 2: sums of chained products take 384" in m for m in messages)
    assert ".minnctapersm 2" not in ptx(what)
    attend(what, ptx(what), "late")


def fails(what: Attention) -> Callable[[str], bool]:
    return lambda text: is_caught(lambda schedule: attend(what, text, schedule))


def found(text: str, pattern: str) -> list[re.Match[str]]:
    """Instructions behind those that make barriers."""
    start = text.index("tcgen05.alloc")
    return [one for one in re.finditer(pattern, text) if one.start() > start]


#: With more tiles than stages, all of which are filled anew.
MANY = (FULL, Attention(256, 64, 64, hints="occupancy=2", tiles=6))
#: What orders teams and their tiles.
ORDERS = (
    r"mbarrier\.arrive\.shared[^;]*;",
    r"tcgen05\.commit[^;]*;",
    r"mbarrier\.arrive\.expect_tx[^;]*;",
)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ORDERS)
@pytest.mark.parametrize("what", MANY, ids=["one block", "two blocks"])
def test_nothing_that_orders_teams_can_go(what: Attention, pattern: str) -> None:
    text, broken = ptx(what), fails(what)
    every = found(text, pattern)
    assert every
    missed = [one for one in every if not broken(text[: one.start()] + text[one.end() :])]
    assert not missed


@pytest.mark.slow
@pytest.mark.parametrize("what", MANY, ids=["one block", "two blocks"])
def test_stores_are_awaited_before_threads_arrive(what: Attention) -> None:
    """Those of one arrival by the wait for the last of them. That of the first parts of the weights
    is not missed here: their threads wait for the last part before products begin.
    """
    text, broken = ptx(what), fails(what)
    waits = found(text, r"tcgen05\.wait::st[^;]*;")
    arrivals = found(text, r"mbarrier\.arrive\.shared[^;]*;")
    last = {
        max(wait.start() for wait in waits if wait.start() < arrival.start())
        for arrival in arrivals
        if any(wait.start() < arrival.start() for wait in waits)
    }
    ends = [wait for wait in waits if wait.start() in last]
    missed = [one for one in ends if not broken(text[: one.start()] + text[one.end() :])]
    assert len(ends) > 1
    assert len(missed) <= 1


def test_teams_wait_at_barriers_of_their_own() -> None:
    """With one number for all threads, the other team's scores are taken for its own."""
    text = ptx(FULL)
    broken, times = re.subn(r"shr\.u32 \t(%r\d+), %r\d+, 7;", r"mov.u32 \t\1, 0;", text)
    assert times
    assert fails(FULL)(broken)

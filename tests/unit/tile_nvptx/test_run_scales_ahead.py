"""Products of warps with block scales whose fragments and scales are read a part of K ahead."""

from __future__ import annotations

import re

import pytest
from support.removals import SCHEDULES, is_caught, without
from support.scaled_loop import MOST, K, agrees, compiled

TARGET = "sm_120"
#: Whether elements are two to a byte, rows of A, and steps of the instruction along K.
LOOPS = [(True, 128, 2), (False, 64, 4)]


def ptx(narrow: bool, rows: int) -> str:
    return compiled(False, TARGET, narrow=narrow, m=rows)


def body(text: str) -> str:
    """The loop: from the label in front of the products to the branch back."""
    products = [one.start() for one in re.finditer(r"mma\.sync", text)]
    return text[text.rindex("$L__", 0, products[0]) : products[-1] + len("mma.sync")]


@pytest.mark.parametrize(("narrow", "rows", "parts"), LOOPS)
def test_products_begin_with_what_is_there(narrow: bool, rows: int, parts: int) -> None:
    """Scales are there, and read behind the meeting for the next step."""
    inside = body(ptx(narrow, rows))
    last, behind = inside.split("bar.sync")[0], inside.split("bar.sync")[-1]
    events = re.findall(r"ldmatrix|mma\.sync", last)
    assert events.count("mma.sync") == len(re.findall(r"mma\.sync", inside)) // parts * (parts - 1)
    assert "ld.shared" not in last
    assert "ld.shared" in behind


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("narrow", "rows", "parts"), LOOPS)
def test_loops_of_every_length(narrow: bool, rows: int, parts: int, schedule: str) -> None:
    text = ptx(narrow, rows)
    assert f"k{K // parts}." in text
    for first, last in ((0, 0), (2, 3), (0, 2), (1, 4), (0, MOST)):
        agrees(text, False, schedule, first, last, narrow, rows)


@pytest.mark.parametrize(
    "instruction",
    [
        r"cp\.async\.wait_group[^;]*;", r"cp\.async\.commit_group[^;]*;", r"bar\.sync[^;]*;",
        r"\{[^{}]*mbarrier\.try_wait[^{}]*\}", r"mbarrier\.arrive\.expect_tx[^;]*;",
    ],
)  # fmt: skip
def test_nothing_of_it_can_go(instruction: str) -> None:
    narrow, rows, _ = LOOPS[0]
    mutants = without(ptx(narrow, rows), instruction)
    assert mutants
    missed = [at for at, text in enumerate(mutants) if not fails(text, narrow, rows)]
    assert missed == []


def fails(text: str, narrow: bool, rows: int) -> bool:
    return is_caught(lambda schedule: agrees(text, False, schedule, 0, MOST, narrow, rows))

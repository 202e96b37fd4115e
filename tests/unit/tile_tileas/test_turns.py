"""Which turns of barriers stand for others (`analysis/turns.py`), by the shape of the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tile_tileas.analysis.turns import Inside, Item, Turn, same_turns

A, B, C = range(3)


def turn(barrier: int, name: str) -> Turn:
    op: Any = name
    return Turn(barrier, op)


def inside(kind: str, *regions: Sequence[Item]) -> Inside:
    op: Any = kind
    barriers = (
        one
        for items in regions
        for item in items
        for one in ([item.barrier] if isinstance(item, Turn) else item.barriers)
    )
    return Inside(op, kind, tuple(map(tuple, regions)), frozenset(barriers))


ROUND = (turn(A, "a"), turn(B, "b"))
STEPS: dict[str, tuple[list[Item], dict[str, str]]] = {
    "one after the other": ([*ROUND, turn(C, "c")], {"b": "a", "c": "a"}),
    "again": ([*ROUND, turn(B, "b2")], {}),
    "the second first": ([turn(A, "a"), turn(A, "a2"), turn(B, "b")], {}),
    "loop": ([inside("loop", ROUND), turn(A, "a2"), turn(B, "b2")], {"b": "a", "b2": "a2"}),
    "one left over in a loop": ([inside("loop", [*ROUND, turn(A, "a2")])], {}),
    "begun before a loop": ([turn(A, "a"), inside("loop", [turn(B, "b")])], {}),
    "begun before an inner loop": ([turn(A, "a"), inside("loop", ROUND), turn(B, "b2")], {}),
    "while": ([inside("loop", ROUND, [turn(A, "a2"), turn(B, "b2")])], {"b": "a", "b2": "a2"}),
    "left between": ([inside("loop", [turn(A, "a")], [turn(B, "b")])], {}),
    "both branches": ([inside("branch", ROUND, ROUND)], {"b": "a"}),
    "one branch": ([inside("branch", ROUND, [])], {"b": "a"}),
    "half in a branch": ([turn(A, "a"), inside("branch", [turn(B, "b")], [])], {}),
    "agents": ([inside("agents", [turn(A, "a")], ROUND)], {"b": "a"}),
    "behind agents": ([inside("agents", ROUND, [turn(C, "c")]), turn(A, "a2"), turn(B, "b2")], {}),
    "agents begin apart": ([turn(A, "a"), inside("agents", ROUND)], {}),
    "some other operation": ([inside("other", ROUND)], {}),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_turns_that_others_stand_for(name: str) -> None:
    turns, expected = STEPS[name]
    assert same_turns(turns) == expected

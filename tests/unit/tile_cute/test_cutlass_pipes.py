"""Pipes of cutlass under all interleavings; planted mistakes in the handshake are found."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tile_cute.cutlass.model import explore
from tile_cute.cutlass.numbers import Integers
from tile_cute.cutlass.pipes import (
    EMPTY,
    EXECUTORS,
    FULL,
    HANDSHAKE,
    Shape,
    advance,
    first_phase,
    next_group,
    sequence_slot,
)
from tile_cute.errors import LayoutError

N = Integers()
PARTS = {"1x1": ((0,), (1,)), "1x2": ((0,), (1, 2)), "2x1": ((0, 1), (2,))}


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("parts", PARTS)
def test_all_interleavings(stages: int, parts: str) -> None:
    """Two rounds and a bit, so that both parities come twice."""
    assert explore(Shape(stages, *PARTS[parts]), 2 * stages + 1) is None


def test_two_and_two() -> None:
    assert explore(Shape(2, (0, 1), (2, 3)), 5) is None


@pytest.mark.parametrize("executor", ["strided_urem", "strided_udiv"])
@pytest.mark.parametrize("stages", [2, 4])
def test_producers_that_take_turns(executor: str, stages: int) -> None:
    assert explore(Shape(stages, (0, 1), (2,), executor), 2 * stages + 1) is None
    assert Shape(stages, (0, 1), (2,), executor).arrivals() == (1, 1)


@pytest.mark.parametrize(
    "name", [name for name in HANDSHAKE if name.endswith(("acquire", "wait", "commit", "release"))]
)
def test_each_step_is_needed(name: str) -> None:
    """A wait for the other parity, an arrival at the other barrier: some order goes wrong."""
    step = HANDSHAKE[name]
    other = EMPTY if step.barrier == FULL else FULL
    wrong = [replace(step, barrier=other)]
    if step.waits:
        wrong.append(replace(step, flipped=not step.flipped))
    for mistake in wrong:
        found = explore(Shape(2, (0,), (1,)), 5, {**HANDSHAKE, name: mistake})
        assert found is not None


def test_one_barrier_for_both_reads_stale_data() -> None:
    """What page 043 of the specification shows: one slot for full and empty."""
    one = {name: replace(step, barrier=FULL) for name, step in HANDSHAKE.items()}
    assert explore(Shape(2, (0,), (1,)), 5, one) is not None


def test_too_few_arrivals_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shape, "arrivals", lambda self: (1, 1))
    assert explore(Shape(2, (0,), (1, 2)), 5) is not None


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_cursors(stages: int) -> None:
    cursor = {"index": 0, "phase": 0, "count": 0}
    for at in range(3 * stages):
        assert cursor == {"index": at % stages, "phase": at // stages % 2, "count": at}
        cursor = advance(N, stages, cursor)


def test_arrivals_and_masks() -> None:
    assert Shape(2, (4, 5), (0, 1, 2)).arrivals() == (2, 3)
    assert Shape(2, (0,), (1,), "cluster", 4).arrivals() == (1, 4)
    assert Shape(2, (4, 5), (0,)).producer_mask(N, 1) == 0b110000
    urem = Shape(4, (4, 6), (0,), "strided_urem")
    assert [urem.producer_mask(N, at) for at in range(4)] == [16, 64, 16, 64]
    udiv = Shape(4, (4, 6), (0,), "strided_udiv")
    assert [udiv.producer_mask(N, at) for at in range(4)] == [16, 16, 64, 64]


def test_executors() -> None:
    assert set(EXECUTORS) >= {"cooperative", "cluster"}
    with pytest.raises(LayoutError, match="executor 'cluster' for 2 blocks"):
        Shape(2, (0,), (1,), ctas=2).check()


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("seed", range(10))
def test_sequences_take_turns(length: int, depth: int, seed: int) -> None:
    """Groups go on in whatever order their barriers let them: turns come in order at each stage."""
    random = Random(seed)
    phases = [0] * (depth * length)
    cursors = [{"index": 0, "phase": first_phase(N, group), "count": 0} for group in range(length)]
    order: dict[int, list[int]] = {stage: [] for stage in range(depth)}
    for _ in range(4 * depth * length):
        free = [
            group
            for group, cursor in enumerate(cursors)
            if phases[sequence_slot(N, length, cursor["index"], group)] != cursor["phase"]
        ]
        group = random.choice(free)
        stage = cursors[group]["index"]
        order[stage].append(group)
        phases[sequence_slot(N, length, stage, next_group(N, length, group))] ^= 1
        cursors[group] = advance(N, depth, cursors[group])
    for turns in order.values():
        assert turns == [at % length for at in range(len(turns))]

"""The driver and its parts: arms and gates in their order, nothing left behind by failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from support.loops import MODEL, SMALL, L, M, graph, loops, op
from tile_sched.placement.arms import Arm, CostBased, Fuse, Permute, Retry, Snapshot
from tile_sched.placement.driver import place_all
from tile_sched.placement.gates import GATES
from tile_sched.placement.state import State
from tile_sched.search import Problem, problem_of

from tile_core.sched import Constraints, LoopGraph

V3 = graph((L, M), (0, 1, 8, 0), (1, 1, 8, 1))


def state_of(loop: LoopGraph, ii: int, model=MODEL) -> State:
    problem = problem_of(loop, model)
    assert isinstance(problem, Problem)
    return problem.state(ii)


class Failing:
    """Writes down that it was asked, and with which snapshot."""

    def __init__(self, name: str, log: list[tuple[str, Snapshot]], takes_snapshot: bool) -> None:
        self.name, self.log, self.takes_snapshot = name, log, takes_snapshot

    def place(self, state: State, group: int, snapshot: Snapshot) -> bool:
        self.log.append((self.name, snapshot))
        return False


def test_arms_are_asked_in_order_and_two_of_them_again_with_fresh_snapshots() -> None:
    log: list[tuple[str, Snapshot]] = []
    arms: list[Any] = [  # whose names are of objects here, of classes elsewhere
        Failing("permute", log, takes_snapshot=False),
        Failing("fuse", log, takes_snapshot=False),
        Failing("retry", log, takes_snapshot=True),
        Failing("cbs", log, takes_snapshot=True),
    ]
    state = state_of(V3, 8)
    empty = state.savepoint()
    assert not place_all(state, arms)
    assert [name for name, _ in log] == ["permute", "fuse", "retry", "cbs", "retry", "cbs"]
    shared = [snapshot for _, snapshot in log[:4]]
    assert all(snapshot is shared[0] for snapshot in shared)
    fresh = [snapshot for _, snapshot in log[4:]]
    assert fresh == [{}, {}]
    assert fresh[0] is not fresh[1]
    assert not any(snapshot is shared[0] for snapshot in fresh)
    assert state.savepoint() == empty


@pytest.mark.parametrize("arm", [Permute(), Fuse(), Retry(), CostBased()], ids=lambda a: a.name)
@settings(max_examples=80, deadline=None)
@given(loop=loops())
def test_an_arm_that_fails_leaves_everything_as_it_was(arm: Arm, loop: LoopGraph) -> None:
    problem = problem_of(loop, SMALL)
    assert isinstance(problem, Problem)
    state = problem.state(max(1, problem.bounds.mii // 2))
    for group in state.groups.order:
        before = state.savepoint()
        if not arm.place(state, group, {}):
            assert state.savepoint() == before
            return
        assert all(state.start[op] is not None for op in state.groups.members[group])


def test_what_another_iteration_waits_for_is_not_seated_in_one_cycle() -> None:
    """Two ops without an order within the iteration, of a group: the next iteration's first op
    needs what the second one gave two cycles ago.
    """
    pair = tuple(
        replace(op(name, latency), constraints=Constraints(gid=1))
        for name, latency in (("first", 0), ("second", 2))
    )
    loop = graph(pair, (1, 0, 2, 1))
    for ii, joint in ((1, False), (2, True)):
        state = state_of(loop, ii, SMALL)
        assert Fuse().place(state, 0, {}) == joint
        assert state.start == ([0, 0] if joint else [None, None])


def test_gates_in_their_order() -> None:
    assert [gate.name for gate in GATES] == ["G1", "G2", "G3", "G4"]
    pending, depth, resources, group = GATES
    together = Constraints(gid=1, max_depth=0)
    loop = replace(V3, ops=tuple(replace(node, constraints=together) for node in V3.ops))
    state = replace(state_of(loop, 16), pending=frozenset({1}))
    assert pending.check(state, 1, 0) == "hold"
    assert pending.check(state, 0, 0) is None
    assert depth.check(state, 1, 16) == "dead"
    assert depth.check(state, 1, 15) is None
    state.place(0, 0)
    assert resources.check(state, 0, 7) == "next"
    assert resources.check(state, 0, 8) is None
    assert group.check(state, 1, 16) == "reorder"
    assert group.check(state, 1, 8) is None


def test_a_gid_without_a_leader_is_a_group_of_its_own() -> None:
    """And does not join group 0, as a default of 0 would make it."""
    alone, zero = Constraints(gid=7), Constraints(gid=0)
    ops = (replace(L, constraints=alone), replace(M, constraints=zero))
    state = state_of(replace(V3, ops=ops), 8)
    assert len(set(state.groups.of)) == 2
    led = replace(ops[0], constraints=Constraints(gid=7, leader_gid=0))
    assert len(set(state_of(replace(V3, ops=(led, ops[1])), 16).groups.of)) == 1

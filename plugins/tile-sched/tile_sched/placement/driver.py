"""The driver: the arms in their order on every group, at one initiation interval."""

from __future__ import annotations

from collections.abc import Sequence

from tile_sched.placement.arms import Arm, Snapshot
from tile_sched.placement.state import State


def place_all(state: State, arms: Sequence[Arm]) -> bool:
    """Place every group of `state`; False if one cannot be placed at this interval.

    The first arm that succeeds wins. When all have failed, those that take a snapshot are tried
    once more, each with a fresh one. Ops that are placed already are left alone.
    """
    snapshot: Snapshot = {}
    for group in state.groups.order:
        if all(state.start[op] is not None for op in state.groups.members[group]):
            continue
        if any(arm.place(state, group, snapshot) for arm in arms):
            continue
        if not any(arm.place(state, group, {}) for arm in arms if arm.takes_snapshot):
            return False
    return True

"""The four arms of the driver: ways to place one group at the interval of a state.

An arm that fails leaves starts and the reservation table as they were. A snapshot maps ops to
`DEAD`: what an arm has given up in this attempt, so that later arms need not try again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from tile_sched.placement import gates as gate_kinds
from tile_sched.placement.costs import COSTS, Cost
from tile_sched.placement.gates import GATES, Gate, Resources
from tile_sched.placement.state import State

#: Marks an op that an arm gave up (no path and dead are two different things here).
DEAD = 0x7FFFFFFF
#: Seats that the cost arm compares for one op; more seldom change what is chosen.
SEATS_COMPARED = 32

Snapshot = dict[int, int]


class Arm(Protocol):
    """Part of kind "arm": places all ops of `group`, or none and returns False."""

    name: ClassVar[str]
    takes_snapshot: ClassVar[bool]

    def place(self, state: State, group: int, snapshot: Snapshot) -> bool: ...


class Seating:
    """Probing of seats through the gates, common to all arms."""

    def __init__(self, gates: Sequence[Gate] = GATES) -> None:
        self.gates = tuple(gates)
        #: The table answers for all cycles of an interval at once, so that G3 is asked first;
        #: the gates are a conjunction. With a trace they are asked one by one, in order.
        self._others = tuple(gate for gate in self.gates if not isinstance(gate, Resources))
        self._fast = len(self._others) < len(self.gates)

    def refusal(self, state: State, arm: str, op: int, cycle: int) -> str | None:
        """What to do about the first gate that refuses a seat, or None."""
        everything = state.loop.options.trace or not self._fast
        for gate in self.gates if everything else self._others:
            action = gate.check(state, op, cycle)
            if action is not None:
                state.note(arm, op, cycle, gate.name)
                return action
        return None

    def cycles(self, state: State, op: int) -> Sequence[int]:
        """The cycles worth asking the gates about."""
        first, last = state.window(op)
        if state.loop.options.trace or not self._fast:
            return range(first, last + 1)
        return tuple(state.table.seats(state.footprints[op], first, last))

    def earliest(self, state: State, arm: str, op: int) -> str | None:
        """Seat `op` as early as possible; None if that worked, else what the last refusal asks."""
        action: str | None = None
        first, last = state.window(op)
        slow = state.loop.options.trace or not self._fast
        tries = (
            range(first, last + 1) if slow else state.table.seats(state.footprints[op], first, last)
        )
        for cycle in tries:
            action = self.refusal(state, arm, op, cycle)
            if action is None:
                state.place(op, cycle)
                state.note(arm, op, cycle)
                return None
            if action in (gate_kinds.HOLD, gate_kinds.DEAD):
                break  # no later cycle is better
        state.note(arm, op, None, text=f"no seat from {first} to {last}")
        return action or gate_kinds.NEXT


def by_depth(state: State, group: int) -> list[int]:
    """Ops of a group by longest path from a source, then program order."""
    return sorted(state.groups.members[group], key=lambda op: (state.near.depth[op], op))


class Permute:
    """By depth, each at its earliest legal cycle; a joint group next with its deepest first."""

    name: ClassVar[str] = "permute"
    takes_snapshot: ClassVar[bool] = False

    def __init__(self, seating: Seating | None = None) -> None:
        self.seating = seating or Seating()

    def place(self, state: State, group: int, snapshot: Snapshot) -> bool:
        order = by_depth(state, group)
        if self._in_order(state, order):
            return True
        # G4 asks for another order: the deepest member then chooses the stage.
        return len(order) > 1 and self._in_order(state, order[::-1])

    def _in_order(self, state: State, order: list[int]) -> bool:
        saved = state.savepoint() if len(order) > 1 else None
        for op in order:
            if self.seating.earliest(state, self.name, op) is not None:
                if saved is not None:
                    state.rollback(saved)
                return False
        return True


class Fuse:
    """Pairs of a group that need no order and use like resources, each pair in one cycle."""

    name: ClassVar[str] = "fuse"
    takes_snapshot: ClassVar[bool] = False

    def __init__(self, seating: Seating | None = None) -> None:
        self.seating = seating or Seating()

    def place(self, state: State, group: int, snapshot: Snapshot) -> bool:
        saved, order = state.savepoint(), by_depth(state, group)
        if len(order) < 2:
            return False
        while order:
            op = order.pop(0)
            partner = next((other for other in order if self._fusible(state, op, other)), None)
            if partner is not None and self._together(state, op, partner):
                order.remove(partner)
            elif self.seating.earliest(state, self.name, op) is not None:
                state.rollback(saved)
                return False
        return True

    @staticmethod
    def _fusible(state: State, op: int, other: int) -> bool:
        if other in _reachable(state, op) or op in _reachable(state, other):
            return False
        if _waits(state, op, other) or _waits(state, other, op):
            return False
        uses, others = state.footprints[op], state.footprints[other]
        family = state.model.family_of
        families = [{family.get(use.resource, use.resource) for use in u} for u in (uses, others)]
        return families[0] == families[1] and state.table.fits(uses + others)

    def _together(self, state: State, op: int, other: int) -> bool:
        first, last = state.window(op)
        low, high = state.window(other)
        both = state.footprints[op] + state.footprints[other]
        for cycle in state.table.seats(both, max(first, low), min(last, high)):
            if any(self.seating.refusal(state, self.name, o, cycle) for o in (op, other)):
                continue
            state.place(op, cycle)
            state.place(other, cycle)
            state.note(self.name, op, cycle, text=f"with #{other}")
            return True
        return False


def _reachable(state: State, op: int) -> set[int]:
    """Ops that depend on `op` within the iteration."""
    found: set[int] = set()
    work = [op]
    while work:
        for edge in state.near.after[work.pop()]:
            if edge.distance == 0 and edge.dst not in found:
                found.add(edge.dst)
                work.append(edge.dst)
    return found


def _waits(state: State, op: int, other: int) -> bool:
    """Whether `other`, of a later iteration, cannot start at this interval in the cycle of `op`."""
    return any(
        edge.dst == other and edge.latency > state.ii * edge.distance
        for edge in state.near.after[op]
    )


class Retry:
    """As `Permute`, but an op that finds no seat is marked dead, so that nobody tries again."""

    name: ClassVar[str] = "retry"
    takes_snapshot: ClassVar[bool] = True

    def __init__(self, seating: Seating | None = None) -> None:
        self.seating = seating or Seating()

    def place(self, state: State, group: int, snapshot: Snapshot) -> bool:
        saved, order = state.savepoint(), by_depth(state, group)
        if any(snapshot.get(op) == DEAD for op in order):
            return False  # a group is placed whole or not at all
        for op in order:
            if self.seating.earliest(state, self.name, op) is not None:
                snapshot[op] = DEAD
                state.rollback(saved)
                return False
        return True


class CostBased:
    """Each op where its cost vector is smallest; ties go to the earlier cycle."""

    name: ClassVar[str] = "cost"
    takes_snapshot: ClassVar[bool] = True

    def __init__(self, seating: Seating | None = None, costs: Sequence[Cost] = COSTS) -> None:
        self.seating = seating or Seating()
        self.costs = tuple(costs)

    def place(self, state: State, group: int, snapshot: Snapshot) -> bool:
        saved = state.savepoint()
        for op in by_depth(state, group):
            found = None if snapshot.get(op) == DEAD else self._best(state, op)
            if found is None:
                snapshot[op] = DEAD
                state.rollback(saved)
                return False
            cost, cycle = found
            state.place(op, cycle)
            state.note(self.name, op, cycle, cost=cost)
        return True

    def _best(self, state: State, op: int) -> tuple[tuple[int, ...], int] | None:
        best: tuple[tuple[int, ...], int] | None = None
        for cycle in self.seating.cycles(state, op)[:SEATS_COMPARED]:
            if self.seating.refusal(state, self.name, op, cycle) is not None:
                continue
            scores: list[int] = []
            for cost in self.costs:
                score = cost.score(state, op, cycle)
                if score is None:
                    break
                scores.append(score)
            else:
                found = (tuple(scores), cycle)
                best = found if best is None else min(best, found)
        return best

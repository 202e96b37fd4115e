"""Iterative modulo scheduling with eviction (Rau, MICRO 1994, figure 3)."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from tile_sched.graph.closure import heights
from tile_sched.placement.gates import DEAD, GATES, HOLD, Gate, Group, Resources
from tile_sched.placement.state import State

#: Placements per op before an interval is given up (Rau found 2 enough).
BUDGET = 3


def place_iteratively(state: State, gates: tuple[Gate, ...] = GATES, budget: int = BUDGET) -> bool:
    """Place every op, by falling height; what stands in the way is taken out and comes again.

    False when `budget` placements per op are used up, or an op can never be seated.
    """
    count = len(state.loop.ops)
    height = heights(count, state.loop.edges, state.ii)
    work = [(-height[op], op) for op in range(count) if state.start[op] is None]
    heapify(work)
    last: list[int] = [-1] * count
    left = budget * max(1, len(work))
    while work:
        if not left:
            return False
        left -= 1
        _, op = heappop(work)
        if state.start[op] is not None or not state.table.fits(state.footprints[op]):
            if state.start[op] is None:
                return False
            continue
        first = _earliest(state, op)
        if first is None:
            return False
        cycle = _seat(state, op, first, gates)
        if cycle is None:
            # Rau's rule: at its earliest, but later than where it was before.
            cycle = first if last[op] < first else last[op] + 1
            if not _allowed(state, op, cycle, gates):
                return False
        for other in _evicted(state, op, cycle, height):
            state.unplace(other)
            state.note("rau", other, None, text=f"evicted by #{op}")
            heappush(work, (-height[other], other))
        state.place(op, cycle)
        state.note("rau", op, cycle)
        last[op] = cycle
    return True


def _earliest(state: State, op: int) -> int | None:
    """After the sources that are placed; None if the op cannot follow itself at this interval."""
    first = state.delays[op] if state.delays else 0
    for edge in state.near.before[op]:
        at = state.start[edge.src]
        if edge.src == op:
            if edge.latency > state.ii * edge.distance:
                return None
        elif at is not None:
            first = max(first, at + edge.latency - state.ii * edge.distance)
    return first


def _seat(state: State, op: int, first: int, gates: tuple[Gate, ...]) -> int | None:
    for cycle in state.table.seats(state.footprints[op], first, first + state.ii - 1):
        refused = _refused(state, op, cycle, gates)
        if refused is None:
            return cycle
        if refused in (DEAD, HOLD):
            return None  # later cycles fare no better
    return None


def _refused(state: State, op: int, cycle: int, gates: tuple[Gate, ...]) -> str | None:
    return next(filter(None, (gate.check(state, op, cycle) for gate in gates)), None)


def _allowed(state: State, op: int, cycle: int, gates: tuple[Gate, ...]) -> bool:
    """Whether the gates that eviction cannot open let the op in."""
    return all(
        gate.check(state, op, cycle) is None
        for gate in gates
        if not isinstance(gate, (Resources, Group))
    )


def _evicted(state: State, op: int, cycle: int, height: list[int]) -> list[int]:
    """Placed ops that `op` at `cycle` breaks: users too early, holders of its resources, members
    of its group in another stage.
    """
    out: set[int] = set()
    for edge in state.near.after[op]:
        at = state.start[edge.dst]
        if at is None or edge.dst == op:
            continue
        if at + state.ii * edge.distance < cycle + edge.latency:
            out.add(edge.dst)
    group = state.groups.of[op]
    if state.groups.joint[group]:
        for other in state.groups.members[group]:
            at = state.start[other]
            if at is not None and at // state.ii != cycle // state.ii:
                out.add(other)
    return sorted(out | _holders(state, op, cycle, out, height))


def _holders(state: State, op: int, cycle: int, gone: set[int], height: list[int]) -> set[int]:
    """Ops to take out until the resources of `op` are free at `cycle`, the lowest first."""
    uses, table = state.footprints[op], state.table
    saved, found = table.savepoint(), set()
    for other in sorted(gone):
        table.release(state.footprints[other], state.start[other] or 0)
    for _, other in sorted((height[other], -other) for other in range(len(state.start))):
        if table.probe(uses, cycle):
            break
        at = state.start[-other]
        if at is None or -other in gone:
            continue
        if table.meet(uses, cycle, state.footprints[-other], at):
            table.release(state.footprints[-other], at)
            found.add(-other)
    table.rollback(saved)
    return found

"""Cost of a seat: components compared one after the other, never summed; smaller is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from tile_core.sched import LoopGraph, MachineModel, Schedule, Use
from tile_sched.placement.groups import groups_of
from tile_sched.placement.state import Neighbours, State

#: Weight and cap of the surcharge for registers (specification, page 070).
SPILL_WEIGHT, SPILL_CAP = 17, 4096
#: Banks that may be in use in one cycle, by an iteration and by what earlier ones carry into it.
BANKS_WITHIN, BANKS_ACROSS = 4, 3


class Cost(Protocol):
    """Part of kind "cost": what it costs to start `op` in `cycle`, on top of what is placed."""

    name: ClassVar[str]

    def score(self, state: State, op: int, cycle: int) -> int | None:
        """The cost, or None if the seat must not be taken."""
        ...


class Legality:
    """1: 0 if resources are free, else none."""

    name: ClassVar[str] = "legality"

    def score(self, state: State, op: int, cycle: int) -> int | None:
        return 0 if state.table.probe(state.footprints[op], cycle) else None


class PipeSlot:
    """2: by how much the longest path from a source to the op exceeds the interval."""

    name: ClassVar[str] = "pipe-slot"

    def score(self, state: State, op: int, cycle: int) -> int | None:
        paths = [state.reach(edge.src).get(op, 0) for edge in state.near.before[op]]
        longest = max(paths, default=0)
        if state.model.ceiling and longest > state.model.ceiling:
            return None
        return max(0, longest - state.ii)


class Spill:
    """3: the surcharge that a refinement round put on this seat."""

    name: ClassVar[str] = "spill"

    def score(self, state: State, op: int, cycle: int) -> int | None:
        return state.surcharges.get((op, cycle), 0)


class Banks:
    """4: banks of memory in use at once, within an iteration and carried from earlier ones."""

    name: ClassVar[str] = "banks"

    def score(self, state: State, op: int, cycle: int) -> int | None:
        banks = state.model.banks
        if not any(use.resource in banks for use in state.footprints[op]):
            return 0  # the seat changes nothing
        seats = [(uses, at) for uses, at in zip(state.footprints, state.start, strict=True)
                 if at is not None]  # fmt: skip
        return bank_pressure([*seats, (state.footprints[op], cycle)], state.ii, banks)


class Structure:
    """5: pairs that issue otherwise than the program has them."""

    name: ClassVar[str] = "structure"

    def score(self, state: State, op: int, cycle: int) -> int | None:
        return sum(
            ((at, other) < (cycle, op)) != (other < op)
            for other, at in enumerate(state.start)
            if at is not None and other != op
        )


COSTS: tuple[Cost, ...] = (Legality(), PipeSlot(), Spill(), Banks(), Structure())


def bank_pressure(
    seats: Sequence[tuple[tuple[Use, ...], int]], ii: int, banks: Sequence[str]
) -> int | None:
    """Banks in use at once within an iteration, plus those carried over; None if too many.

    A use counts as carried from the first cycle that lies behind the iteration's own interval.
    """
    own: dict[str, int] = {}
    carried: dict[str, int] = {}
    for uses, start in seats:
        for use in uses:
            if use.resource in banks:
                first = start + use.at
                last = first + use.cycles
                for side, rows in (
                    (own, _rows(first, min(last, ii), ii)),
                    (carried, _rows(max(first, ii), last, ii)),
                ):
                    side[use.resource] = side.get(use.resource, 0) | rows
    within, across = _most(list(own.values())), _most(list(carried.values()))
    return None if within > BANKS_WITHIN or across > BANKS_ACROSS else within + across


def _rows(first: int, last: int, ii: int) -> int:
    """The cycles from `first` up to `last` as bits of the interval."""
    if last <= first:
        return 0
    full = (1 << ii) - 1
    if last - first >= ii:
        return full
    rows = ((1 << (last - first)) - 1) << (first % ii)
    return (rows | rows >> ii) & full


def _most(masks: list[int]) -> int:
    """In how many masks the most common bit is set."""
    levels: list[int] = []
    for mask in masks:
        rest = mask
        for at, level in enumerate(levels):
            levels[at], rest = level | rest, level & rest
        if rest:
            levels.append(rest)
    return len(levels)


def inversions(order: Sequence[object], program: Sequence[object]) -> int:
    """Kendall's tau distance: pairs that stand the other way round in `order`."""
    place = {item: at for at, item in enumerate(program)}
    ranks = [place[item] for item in order]
    return sum(
        ranks[first] > ranks[second]
        for first in range(len(ranks))
        for second in range(first + 1, len(ranks))
    )


def schedule_cost(
    loop: LoopGraph, model: MachineModel, schedule: Schedule
) -> tuple[int | None, ...]:
    """The five components of a whole schedule, as single seats are compared by."""
    state = State(loop, model, schedule.ii, groups_of(loop), Neighbours.of(loop))
    legal = True
    for op, at in enumerate(schedule.start):
        legal = legal and state.table.probe(state.footprints[op], at)
        state.place(op, at)
    slots = [PipeSlot().score(state, op, 0) for op in range(len(loop.ops))]
    return (
        0 if legal else None,
        None if None in slots else max((s for s in slots if s is not None), default=0),
        0,
        bank_pressure(
            list(zip(state.footprints, schedule.start, strict=True)), schedule.ii, model.banks
        ),
        inversions(schedule.order(), range(len(loop.ops))),
    )


def spill_surcharge(pressure: int, budget: int) -> int:
    """Cost of a seat at which `pressure` registers are live, with room for `budget`."""
    return min(max(0, pressure - budget) * SPILL_WEIGHT, SPILL_CAP)


def gallop(probe: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest threshold in [low, high] that a monotone `probe` takes, or None.

    Doubles until `probe` holds, then halves the interval; only for predicates that stay true.
    """
    at = max(low, 1)
    while at < high and not probe(at):
        at = min(2 * at, high)
    if not probe(at):
        return None
    first = low
    while first < at:
        middle = (first + at) // 2
        if probe(middle):
            at = middle
        else:
            first = middle + 1
    return at

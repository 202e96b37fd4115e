"""Intervals that are too short because operations of one recurrence share a resource.

RecMII sees latencies alone. An operation of a recurrence may moreover start only where what it
holds is free of the others': the earliest such cycle lies later than its dependences allow, and so
on around the recurrence. This is the disjunctive propagation of job-shop scheduling (Carlier and
Pinson, 1989) on the modulo table: bounds on the distance of two starts are raised past the cycles
in which both would hold one resource, until nothing changes or a cycle of dependences turns
positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tile_core.sched import Edge, LoopGraph, MachineModel, Use
from tile_sched.graph.components import recurrences

#: Rounds after which bounds are left as they are: what is not excluded by then counts as possible.
_ROUNDS = 16
_NO_PATH = -(1 << 60)


@dataclass(frozen=True)
class _Pair:
    """Uses of one resource that takes one request, by two members of a recurrence."""

    first: int
    second: int
    held: Use  # by the first
    asked: Use  # by the second

    def raised(self, least: int, ii: int) -> int:
        """The least distance of starts, `least` or more, at which the two do not meet."""
        shift = self.asked.at - self.held.at
        behind = (least + shift) % ii
        if behind < self.held.cycles:
            return least + self.held.cycles - behind
        if behind > ii - self.asked.cycles:
            return least + ii - behind + self.held.cycles
        return least


class Exclusions:
    """The recurrences of a loop with the resources that their operations share."""

    def __init__(self, loop: LoopGraph, model: MachineModel) -> None:
        self._loop, self._model = loop, model
        self._known: dict[int, bool] = {}

    @cached_property
    def _parts(self) -> list[_Recurrence]:
        return [
            _Recurrence(members, edges, self._loop, self._model)
            for members, edges in recurrences(self._loop)
            if len(members) > 1
        ]

    def excluded(self, ii: int) -> bool:
        """Whether it is proven that no schedule has the interval `ii`."""
        if ii not in self._known:
            self._known[ii] = any(part.excluded(ii) for part in self._parts)
        return self._known[ii]

    def first_possible(self, low: int, high: int) -> int:
        """An interval from `low` to `high` that is not excluded while one just below it is.

        By bisection, to a 256th. There may be others below, as exclusion is not monotone.
        """
        if low >= high or not self.excluded(low):
            return low
        while high - low > max(1, low // 256):
            middle = (low + high) // 2
            low, high = (middle, high) if self.excluded(middle) else (low, middle)
        return high


class _Recurrence:
    def __init__(
        self, members: list[int], edges: list[Edge], loop: LoopGraph, model: MachineModel
    ) -> None:
        at = {op: index for index, op in enumerate(members)}
        self._count = len(members)
        self._edges = [(at[e.src], at[e.dst], e.latency, e.distance) for e in edges]
        self._pairs = [
            _Pair(at[one], at[other], held, asked)
            for one in members
            for other in members
            if one != other
            for held in loop.ops[one].footprint
            for asked in loop.ops[other].footprint
            if held.resource == asked.resource and model.capacity(held.resource) == 1
        ]

    def excluded(self, ii: int) -> bool:
        if any(pair.held.cycles + pair.asked.cycles > ii for pair in self._pairs):
            return True
        far = self._closed(ii)
        for _ in range(_ROUNDS):
            if any(far[op][op] > 0 for op in range(self._count)):
                return True
            changed = False
            for pair in self._pairs:
                least = far[pair.first][pair.second]
                raised = pair.raised(least, ii)
                if raised > least:
                    if raised + far[pair.second][pair.first] > 0:
                        return True
                    _raise(far, pair.first, pair.second, raised)
                    changed = True
            if not changed:
                return False
        return False

    def _closed(self, ii: int) -> list[list[int]]:
        """Least distances between starts, by dependences alone (Floyd-Warshall, max-plus)."""
        far = [[_NO_PATH] * self._count for _ in range(self._count)]
        for src, dst, latency, distance in self._edges:
            far[src][dst] = max(far[src][dst], latency - ii * distance)
        for middle in range(self._count):
            behind = far[middle]
            for src, row in enumerate(far):
                ahead = row[middle]
                if ahead > _NO_PATH // 2 and src != middle:
                    far[src] = _longer(row, ahead, behind)
        return far


def _raise(far: list[list[int]], src: int, dst: int, weight: int) -> None:
    """Take one larger distance into a closed matrix."""
    behind = far[dst]
    for at, row in enumerate(far):
        ahead = weight if at == src else row[src] + weight
        if at == src or ahead > row[dst]:
            row[dst] = max(row[dst], ahead)
            far[at] = _longer(row, ahead, behind)


def _longer(row: list[int], ahead: int, behind: list[int]) -> list[int]:
    # a comparison, not `max`: most of the time of an interval is spent here
    return [
        old if old >= (new := ahead + rest) else new for old, rest in zip(row, behind, strict=True)
    ]

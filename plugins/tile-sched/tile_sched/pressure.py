"""Registers that a schedule keeps alive, and how much it exceeds what there is."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.sched import LoopGraph, Schedule


def pressure(loop: LoopGraph, schedule: Schedule) -> list[tuple[int, int]]:
    """Registers per thread that results take, by cycle of the interval: (first cycle, registers).

    A result lives from its op's issue to the issue of its last user, `distance` iterations later
    where that is in another one; a life longer than the interval counts once for every iteration.
    """
    events: dict[int, int] = {0: 0}
    ii = schedule.ii
    for first, last, registers in lives(loop, schedule.start, ii):
        whole, rest = divmod(last - first, ii)
        events[0] += whole * registers
        if rest:
            row, end = first % ii, first % ii + rest
            events[row] = events.get(row, 0) + registers
            if end < ii:
                events[end] = events.get(end, 0) - registers
            elif end > ii:
                events[0] += registers
                events[end - ii] = events.get(end - ii, 0) - registers
    found, live = [], 0
    for row in sorted(events):
        live += events[row]
        found.append((row, live))
    return found


def peak(loop: LoopGraph, schedule: Schedule) -> int:
    """Registers per thread in the worst cycle."""
    return max(registers for _, registers in pressure(loop, schedule))


def lives(loop: LoopGraph, start: Sequence[int], ii: int) -> list[tuple[int, int, int]]:
    """(issue, last use, registers) of every op whose results take registers and are used."""
    end: dict[int, int] = {}
    for edge in loop.edges:
        if edge.kind == "data" and loop.ops[edge.src].registers:
            use = start[edge.dst] + ii * edge.distance
            end[edge.src] = max(end.get(edge.src, use), use)
    return [
        (start[op], max(last, start[op]), loop.ops[op].registers)
        for op, last in sorted(end.items())
    ]

"""One iteration after the other: list scheduling by critical path."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from tile_core.sched import (
    Edge,
    LoopGraph,
    MachineModel,
    ReservationTable,
    Schedule,
    topological_order,
)
from tile_sched.graph.bounds import longest_interval
from tile_sched.placement.state import Neighbours


def list_schedule(loop: LoopGraph, model: MachineModel, near: Neighbours) -> Schedule:
    """The schedule of one stage in which the longest paths start first.

    The graph must have no cycle within an iteration, and every op must fit the machine. Priority
    is the longest latency path to any leaf; ties go by program order.
    """
    order = topological_order(loop)
    assert order is not None, "a cycle within one iteration"
    height = [op.latency for op in loop.ops]
    for src in reversed(order):
        for edge in near.after[src]:
            if edge.distance == 0:
                height[src] = max(height[src], edge.latency + height[edge.dst])
    start = _place(loop, model, near.after, height)
    return Schedule(tuple(start), one_iteration(loop, start))


def one_iteration(loop: LoopGraph, start: list[int]) -> int:
    """The shortest interval at which iterations follow one another without overlap."""
    ends = [at + max(1, op.duration) for at, op in zip(start, loop.ops, strict=True)]
    ii = max(ends, default=1)
    for edge in loop.edges:
        if edge.distance:
            gap = start[edge.src] + edge.latency - start[edge.dst]
            ii = max(ii, -(-gap // edge.distance))
    return ii


def _place(
    loop: LoopGraph,
    model: MachineModel,
    after: tuple[tuple[Edge, ...], ...],
    height: list[int],
) -> list[int]:
    """Highest first among those whose sources are placed; each where its resources are free."""
    # A table as long as the whole iteration never wraps: time is plain.
    horizon = longest_interval(loop) + len(loop.ops) + 1
    table = ReservationTable(horizon, model)
    start, earliest = [0] * len(loop.ops), [0] * len(loop.ops)
    waiting = [0] * len(loop.ops)
    for edges in after:
        for edge in edges:
            waiting[edge.dst] += edge.distance == 0
    ready = [(0, -height[op], op) for op, blocked in enumerate(waiting) if not blocked]
    heapify(ready)
    while ready:
        at, _, op = heappop(ready)
        uses = loop.ops[op].footprint
        free = table.earliest(uses, at, horizon - 1)
        assert free is not None, "the horizon holds everything in sequence"
        if free > at:  # others of this priority may be first by then
            heappush(ready, (free, -height[op], op))
            continue
        start[op] = at
        table.commit(uses, at)
        for edge in after[op]:
            if edge.distance:
                continue
            earliest[edge.dst] = max(earliest[edge.dst], at + max(1, edge.latency))
            waiting[edge.dst] -= 1
            if not waiting[edge.dst]:
                heappush(ready, (earliest[edge.dst], -height[edge.dst], edge.dst))
    return start

"""One iteration after the other: list scheduling by critical path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import pairwise

from tile_core.sched import (
    Edge,
    LoopGraph,
    LoopOp,
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


def in_order(
    loop: LoopGraph, model: MachineModel, near: Neighbours, order: Sequence[int]
) -> Schedule:
    """The schedule of one stage in which ops start one after the other in `order`, each when what
    it waits for is there: code that issues in order, and as it is written.
    """
    horizon = longest_interval(loop) + len(loop.ops) + 1
    table = ReservationTable(horizon, model)
    start, last = [0] * len(loop.ops), -1
    for op in order:
        first = last + 1
        for edge in near.before[op]:
            if edge.distance == 0:
                first = max(first, start[edge.src] + edge.latency)
        uses = loop.ops[op].footprint
        free = table.earliest(uses, first, horizon - 1)
        assert free is not None, "the horizon holds everything in sequence"
        start[op] = last = free
        table.commit(uses, free)
    return Schedule(tuple(start), one_iteration(loop, start))


def as_written(loop: LoopGraph, model: MachineModel) -> Schedule:
    """The list schedule of one stage in which what touches memory, tensor cores or barriers keeps
    the turn that the program gives it.

    Arithmetic moves to where its operands are there, past loads, too: ptxas orders that itself,
    whatever the order of the PTX. So this is about the time that the program's order takes.
    """
    order = topological_order(loop)
    assert order is not None, "a cycle within one iteration"
    turns = [op for op in order if not _is_arithmetic(loop.ops[op], model)]
    kept = tuple(Edge(one, other, 0, kind="order") for one, other in pairwise(turns))
    written = replace(loop, edges=(*loop.edges, *kept))
    return list_schedule(written, model, Neighbours.of(written))


def arithmetic_kept(
    loop: LoopGraph, model: MachineModel, near: Neighbours, found: Schedule
) -> Schedule:
    """`found` of one stage, but for arithmetic, which stays in the program's order: what touches
    memory, tensor cores or barriers stands before the arithmetic that `found` has later.

    Loads stand as late as they can without delaying anything, since what they load takes registers
    from there on. (Attention of one query on an A100 in the timing model: with values loaded before
    the first product 0.976, after it 1.010.)
    """
    order = topological_order(loop)
    assert order is not None, "a cycle within one iteration"
    after: list[list[int]] = [[] for _ in loop.ops]
    waiting = [0] * len(loop.ops)
    plain = [op for op in order if _is_arithmetic(loop.ops[op], model)]
    edges = [(edge.src, edge.dst) for edges in near.after for edge in edges if not edge.distance]
    for src, dst in (*edges, *pairwise(plain)):
        after[src].append(dst)
        waiting[dst] += 1
    late = _latest(near, found, order)
    turn = [
        late[op] if node.kind == "load" else found.start[op] for op, node in enumerate(loop.ops)
    ]
    for one, other in pairwise(plain):
        turn[other] = max(turn[one], turn[other])
    ready = [(turn[op], op) for op, blocked in enumerate(waiting) if not blocked]
    heapify(ready)
    moved: list[int] = []
    while ready:
        op = heappop(ready)[1]
        moved.append(op)
        for dst in after[op]:
            waiting[dst] -= 1
            if not waiting[dst]:
                heappush(ready, (turn[dst], dst))
    return in_order(loop, model, near, moved)


def _latest(near: Neighbours, found: Schedule, order: Sequence[int]) -> list[int]:
    """The last start of each op at which all that waits for it within the iteration can start when
    it does.
    """
    late = list(found.start)
    for op in reversed(order):
        ends = [late[edge.dst] - edge.latency for edge in near.after[op] if not edge.distance]
        late[op] = max(late[op], min(ends, default=late[op]))
    return late


def _is_arithmetic(op: LoopOp, model: MachineModel) -> bool:
    return op.kind == "compute" and not any(use.resource in model.banks for use in op.footprint)


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

"""`serial`: program order, one iteration in flight; what remains when nothing else fits."""

from __future__ import annotations

from typing import ClassVar

from tile_core.sched import (
    Infeasible,
    LoopGraph,
    MachineModel,
    ReservationTable,
    Schedule,
    topological_order,
)
from tile_sched.graph.bounds import longest_interval
from tile_sched.listing import one_iteration
from tile_sched.placement.state import Neighbours
from tile_sched.search import why_impossible


class SerialScheduler:
    """Each operation starts after the one before it, when what it waits for is there.

    Program order, but for operations that depend on later ones. All constraints hold in one
    stage, so none is looked at.
    """

    name: ClassVar[str] = "serial"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        impossible = why_impossible(loop, model)
        if impossible is not None:
            return impossible
        order = topological_order(loop)
        assert order is not None, "no cycle within an iteration"
        near = Neighbours.of(loop)
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

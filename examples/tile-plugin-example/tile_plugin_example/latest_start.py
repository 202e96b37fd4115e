"""`latest-start`: every operation as late as its users allow."""

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


class LatestStart:
    """As late as possible, one iteration at a time: values wait as briefly as they can.

    An operation that nothing waits for keeps its place at the end.
    """

    name: ClassVar[str] = "latest-start"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        order = topological_order(loop)
        if order is None:
            return Infeasible("it depends on itself within one iteration")
        longest = max((edge.latency for edge in loop.edges), default=0)
        end = sum(max(1, longest, op.latency) + op.duration for op in loop.ops)
        table = ReservationTable(end + longest + 1, model)  # so long that nothing wraps
        latest = [end] * len(loop.ops)
        start = [0] * len(loop.ops)
        for op in reversed(order):
            uses = loop.ops[op].footprint
            start[op] = next(at for at in range(latest[op], -1, -1) if table.probe(uses, at))
            table.commit(uses, start[op])
            for edge in loop.edges:
                if edge.dst == op and edge.distance == 0:
                    gap = max(1, edge.latency)
                    latest[edge.src] = min(latest[edge.src], start[op] - gap)
        # The next iteration begins after `end`, when everything has finished.
        first = min(start, default=0)
        return Schedule(tuple(at - first for at in start), ii=end + longest - first + 1)

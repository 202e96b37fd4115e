"""`latest-start`: every operation as late as its users allow."""

from __future__ import annotations

from typing import ClassVar

from tile_core.sched import Infeasible, LoopGraph, MachineModel, Schedule


class LatestStart:
    """As late as possible, one iteration at a time: values wait as briefly as they can.

    An operation that nothing waits for keeps its place at the end.
    """

    name: ClassVar[str] = "latest-start"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        end = sum(max(1, op.latency) for op in loop.ops)
        latest = [end] * len(loop.ops)
        for edge in sorted(loop.edges, key=lambda e: -e.dst):
            if edge.distance:
                continue  # the next iteration begins after `end`, when everything has finished
            if edge.src >= edge.dst:
                return Infeasible(f"'{loop.ops[edge.dst].name}' uses a later operation")
            # Edges come by falling destination, so latest[edge.dst] is final here.
            gap = max(1, edge.latency)
            latest[edge.src] = min(latest[edge.src], latest[edge.dst] - gap)
        first = min(latest, default=0)
        return Schedule(tuple(start - first for start in latest), ii=end - first + 1)

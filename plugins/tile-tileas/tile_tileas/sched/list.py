"""`list`: operations in order of their distance to the end, so that long latencies start first."""

from __future__ import annotations

from typing import ClassVar

from tile_core.sched import Infeasible, LoopGraph, MachineModel, Schedule


class ListScheduler:
    """List scheduling of one iteration by critical path, one operation per cycle and unit.

    Priority is the longest latency path to any leaf; ties go by program order.
    """

    name: ClassVar[str] = "list"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        count = len(loop.ops)
        after: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        waiting = [0] * count
        for edge in loop.edges:
            if edge.distance == 0:
                if edge.src >= edge.dst:
                    return Infeasible(f"'{loop.ops[edge.dst].name}' uses a later operation")
                after[edge.src].append((edge.dst, edge.latency))
                waiting[edge.dst] += 1
        height = self._heights(loop, after)
        width = dict(model.units)
        for op in loop.ops:
            if width.get(op.unit, 1) < 1:
                return Infeasible(f"'{op.name}' needs '{op.unit}', of which the SM has none")
        return self._place(loop, after, waiting, height, width)

    @staticmethod
    def _heights(loop: LoopGraph, after: list[list[tuple[int, int]]]) -> list[int]:
        height = [op.latency for op in loop.ops]
        for src in reversed(range(len(loop.ops))):
            for dst, latency in after[src]:
                height[src] = max(height[src], latency + height[dst])
        return height

    @staticmethod
    def _place(
        loop: LoopGraph,
        after: list[list[tuple[int, int]]],
        waiting: list[int],
        height: list[int],
        width: dict[str, int],
    ) -> Schedule:
        start, earliest = [0] * len(loop.ops), [0] * len(loop.ops)
        ready = [op for op, blocked in enumerate(waiting) if not blocked]
        cycle = 0
        while ready:
            room = dict(width)
            open_now = sorted(
                (op for op in ready if earliest[op] <= cycle), key=lambda op: (-height[op], op)
            )
            for op in open_now:
                unit = loop.ops[op].unit
                if room.get(unit, 1) <= 0:
                    continue
                room[unit] = room.get(unit, 1) - 1
                start[op] = cycle
                ready.remove(op)
                for dst, latency in after[op]:
                    earliest[dst] = max(earliest[dst], cycle + max(1, latency))
                    waiting[dst] -= 1
                    if not waiting[dst]:
                        ready.append(dst)
            cycle = max(cycle + 1, min((earliest[op] for op in ready), default=0))
        return Schedule(tuple(start), ii=max(start, default=0) + 1)

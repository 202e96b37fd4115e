"""Rings and mutexes of a schedule: what has to be kept apart once iterations overlap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tile_core.sched import Edge, LoopGraph, Mutex, Ring, Schedule, body_order, stage_orders
from tile_core.sched.dsu import DisjointSets
from tile_sched.buffers.pipes import Member, solve
from tile_sched.buffers.rings import ring_depth


def rings(loop: LoopGraph, schedule: Schedule) -> tuple[Ring, ...]:
    """The values and buffers that are made in one stage and taken in a later one, numbered.

    Producers of one value that reach one consumer share a ring (`solve`); rings of the same
    producers are one, as deep as its furthest consumer asks. A back edge of distance d between a
    consumer and a producer says that there are d slots, whatever the schedule would like.
    """
    found: dict[tuple[int, ...], tuple[list[int], int]] = {}
    depths = _Depths.of(loop, schedule)
    for producers, edge in _pairs(loop, schedule):
        depth = depths.along(producers[0], edge)
        if depth > 1:
            consumers, most = found.get(producers, ([], 0))
            found[producers] = ([*consumers, edge.dst], max(most, depth))
    return tuple(
        Ring(f"Pipe_{at}", producers, tuple(dict.fromkeys(consumers)), depth,
             loop.ops[producers[0]].registers)
        for at, (producers, (consumers, depth)) in enumerate(sorted(found.items()))
    )  # fmt: skip


def _pairs(loop: LoopGraph, schedule: Schedule) -> list[tuple[tuple[int, ...], Edge]]:
    """Producers, and the edge from the first of them to one consumer."""
    pairs: list[tuple[tuple[int, ...], Edge]] = [
        ((edge.src,), edge)
        for edge in loop.edges
        if edge.kind == "data" and loop.ops[edge.src].registers
    ]
    places = stage_orders(schedule)
    for name in dict.fromkeys(handle.name for handle in loop.handles):
        members = [
            Member(h.op, name, *places[h.op], reads=h.reads) for h in loop.handles
            if h.name == name and h.writes
        ]  # fmt: skip
        for handle in loop.handles:
            if handle.name != name or handle.writes or not members:
                continue
            for pipe in solve(name, Member(handle.op, name, *places[handle.op]), members).pipes:
                first = pipe.producers[0]
                pairs.append((pipe.producers, Edge(first, handle.op, loop.ops[first].latency)))
    return pairs


@dataclass(frozen=True)
class _Depths:
    """What the depth of a ring follows from, looked up once for all rings of a schedule."""

    loop: LoopGraph
    schedule: Schedule
    stages: tuple[int, ...]
    place: Mapping[int, int]  # of each op in the body
    back: Mapping[tuple[int, int], int]  # least distance of edges from a consumer to its producer

    @classmethod
    def of(cls, loop: LoopGraph, schedule: Schedule) -> _Depths:
        back: dict[tuple[int, int], int] = {}
        for edge in loop.edges:
            if edge.distance and edge.kind in ("memory", "ring"):
                key = edge.src, edge.dst
                back[key] = min(edge.distance, back.get(key, edge.distance))
        place = {op: at for at, op in enumerate(body_order(loop, schedule))}
        return cls(loop, schedule, schedule.stages, place, back)

    def along(self, producer: int, edge: Edge) -> int:
        """Slots of a ring of `producer` for the consumer of `edge`."""
        slots = self.back.get((edge.dst, producer))
        if slots is not None:
            return slots + edge.distance
        if not self.loop.ops[producer].registers:
            return ring_depth(self.loop, self.schedule, edge)
        # A register is free once its last reader has issued.
        span = self.stages[edge.dst] + edge.distance - self.stages[producer]
        if span and not edge.distance:
            return span + 1
        return max(1, span + (self.place[edge.dst] > self.place[producer]))


def mutexes(loop: LoopGraph) -> tuple[Mutex, ...]:
    """Groups of operations that "mutex" edges order, within iterations and from one to the next."""
    sets, members = DisjointSets(), dict[int, None]()
    for edge in loop.edges:
        if edge.kind == "mutex":
            sets.union(edge.src, edge.dst)
            members |= dict.fromkeys((edge.src, edge.dst))
    groups: dict[int, list[int]] = {}
    for op in sorted(members):
        groups.setdefault(sets.find(op), []).append(op)
    return tuple(Mutex(f"Mutex_{at}", tuple(ops)) for at, ops in enumerate(sorted(groups.values())))

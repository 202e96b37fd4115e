"""How many slots the ring between a producer and a consumer needs."""

from __future__ import annotations

from tile_core.sched import Edge, LoopGraph, Schedule


def ring_depth(loop: LoopGraph, schedule: Schedule, edge: Edge) -> int:
    """Slots of the ring along `edge`: by the stages it spans, and by how long a value lives.

    A value lives from the issue of its producer to the end of its consumer, both its latency and
    its hold on resources. A back edge consumer -> producer at distance d stands for d slots.
    """
    src, dst = schedule.start[edge.src], schedule.start[edge.dst]
    ii = schedule.ii
    span = dst // ii + edge.distance - src // ii + 1
    consumer = loop.ops[edge.dst]
    finish = dst + max(consumer.latency, consumer.duration)
    return max(1, span, -(-(finish + ii * edge.distance - src) // ii))


def in_flight(loop: LoopGraph, schedule: Schedule) -> int:
    """Iterations that have begun and whose last result is not there yet, at most."""
    return -(-_end(loop, schedule) // schedule.ii)


def stage_count_parity(loop: LoopGraph, schedule: Schedule) -> int:
    """The stage count of the specification's formula, which counts one too many where the last
    result comes at the end of an interval.
    """
    return -(-(_end(loop, schedule) + 1) // schedule.ii)


def _end(loop: LoopGraph, schedule: Schedule) -> int:
    return max(
        (at + op.latency for at, op in zip(schedule.start, loop.ops, strict=True)), default=0
    )


def back_edge(edge: Edge, depth: int, hold: int) -> Edge:
    """What a ring of `depth` slots asks: the producer reuses a slot when it has been read.

    Args:
        hold: cycles from the issue of the consumer until it has read the slot.
    """
    return Edge(edge.dst, edge.src, hold, depth - edge.distance, "ring")

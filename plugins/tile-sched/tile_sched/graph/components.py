"""Strongly connected components, and depths within an iteration."""

from __future__ import annotations

from tile_core.components import strongly_connected
from tile_core.sched import Edge, LoopGraph, topological_order


def components(count: int, edges: tuple[Edge, ...]) -> list[list[int]]:
    """Components of the dependence graph, members sorted; a component comes after its users."""
    after: list[list[int]] = [[] for _ in range(count)]
    for edge in edges:
        after[edge.src].append(edge.dst)
    return strongly_connected(range(count), after)


def recurrences(loop: LoopGraph) -> list[tuple[list[int], list[Edge]]]:
    """The components that hold a cycle, with their inner edges."""
    found = []
    for members in components(len(loop.ops), loop.edges):
        inside = set(members)
        edges = [e for e in loop.edges if e.src in inside and e.dst in inside]
        if edges:
            found.append((members, edges))
    return found


def depths(loop: LoopGraph) -> list[int]:
    """The longest latency from a source to each operation within one iteration, in cycles.

    The graph must have no cycle at distance 0.
    """
    order = topological_order(loop)
    assert order is not None, "a cycle within one iteration"
    after: list[list[Edge]] = [[] for _ in loop.ops]
    for edge in loop.edges:
        if edge.distance == 0:
            after[edge.src].append(edge)
    found = [0] * len(loop.ops)
    for op in order:
        for edge in after[op]:
            found[edge.dst] = max(found[edge.dst], found[op] + edge.latency)
    return found

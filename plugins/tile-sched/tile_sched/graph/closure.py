"""Longest paths at one initiation interval: the max-plus closure, and its recurrences.

An edge weighs latency - ii * distance. A cycle of positive weight means that the interval is too
short (Rau, "Iterative modulo scheduling", 1994, section 2.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tile_core.sched import Edge

NO_PATH = None


def closure(count: int, edges: Iterable[Edge], ii: int) -> list[list[int | None]]:
    """Longest weights between all pairs of `count` nodes (Floyd-Warshall); None: no path.

    Only for `ii` at which no cycle is positive are these path lengths; a positive diagonal says
    that one is.
    """
    found: list[list[int | None]] = [[None] * count for _ in range(count)]
    for edge in edges:
        weight = edge.latency - ii * edge.distance
        old = found[edge.src][edge.dst]
        found[edge.src][edge.dst] = weight if old is None else max(old, weight)
    for middle in range(count):
        behind = found[middle]
        for row in found:
            ahead = row[middle]
            if ahead is None:
                continue
            for dst, rest in enumerate(behind):
                if rest is not None:
                    old = row[dst]
                    row[dst] = ahead + rest if old is None else max(old, ahead + rest)
    return found


def longest_from(src: int, after: Sequence[Sequence[Edge]], ii: int) -> dict[int, int]:
    """Longest weights of paths of one edge or more from `src`, at an `ii` without a positive
    cycle; nodes that cannot be reached are absent.
    """
    found: dict[int, int] = {}
    work = [(edge.dst, edge.latency - ii * edge.distance) for edge in after[src]]
    for _ in range(len(after) + 1):
        better: dict[int, int] = {}
        for dst, weight in work:
            if weight > found.get(dst, better.get(dst, weight - 1)):
                better[dst] = weight
        if not better:
            break
        found.update(better)
        work = [
            (edge.dst, weight + edge.latency - ii * edge.distance)
            for node, weight in better.items()
            for edge in after[node]
        ]
    return found


def has_positive_cycle(nodes: Sequence[int], edges: Sequence[Edge], ii: int) -> bool:
    """Whether some cycle among `nodes` weighs more than 0 (Bellman-Ford)."""
    reached = dict.fromkeys(nodes, 0)
    weighted = [(edge.src, edge.dst, edge.latency - ii * edge.distance) for edge in edges]
    for _ in nodes:
        changed = False
        for src, dst, weight in weighted:
            if reached[src] + weight > reached[dst]:
                reached[dst] = reached[src] + weight
                changed = True
        if not changed:
            return False
    return True


def heights(count: int, edges: Iterable[Edge], ii: int) -> list[int]:
    """The longest weight of a path from each node to any other, at least 0 (Rau's priority)."""
    found = [0] * count
    weighted = [(edge.src, edge.dst, edge.latency - ii * edge.distance) for edge in edges]
    weighted.sort(key=lambda edge: -edge[1])  # most edges lead forward: few rounds
    for _ in range(count + 1):
        changed = False
        for src, dst, weight in weighted:
            if found[dst] + weight > found[src]:
                found[src] = found[dst] + weight
                changed = True
        if not changed:
            break
    return found

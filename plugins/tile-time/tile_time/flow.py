"""Loop nests of graphs: of PTX blocks and of SASS blocks alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.components import strongly_connected


@dataclass(frozen=True)
class Loops:
    """`inner[n]` is the innermost loop of node n (-1: none), `parent[l]` the loop around loop l,
    `depth[l]` counts from 1."""

    inner: tuple[int, ...]
    parent: tuple[int, ...]
    depth: tuple[int, ...]

    def contains(self, loop: int, node_loop: int) -> bool:
        """Whether `node_loop` is `loop` or inside of it."""
        while node_loop >= 0:
            if node_loop == loop:
                return True
            node_loop = self.parent[node_loop]
        return loop < 0


def find_loops(successors: Sequence[Sequence[int]]) -> Loops:
    """Strongly connected parts, and those that remain without their first node, recursively."""
    inner = [-1] * len(successors)
    parent: list[int] = []
    depth: list[int] = []
    work: list[tuple[list[int], int]] = [(list(range(len(successors))), -1)]
    while work:
        nodes, outer = work.pop()
        for part in strongly_connected(nodes, successors):
            head = part[0]
            if len(part) == 1 and head not in successors[head]:
                continue
            number = len(parent)
            parent.append(outer)
            depth.append(1 if outer < 0 else depth[outer] + 1)
            for node in part:
                inner[node] = number
            rest = [node for node in part if node != head]
            if rest:
                work.append((rest, number))
    return Loops(tuple(inner), tuple(parent), tuple(depth))


def topological(successors: Sequence[Sequence[int]]) -> list[int]:
    """All nodes, each behind those that lead to it but by a way back: reverse postorder from the
    first one on, then from what it does not reach. Of two ways the one that falls through, the
    next node, comes first."""
    seen: set[int] = set()
    order: list[int] = []
    for root in reversed(range(len(successors))):
        if root == 0 or not any(root in after for after in successors):
            order += _postorder(root, successors, seen)
    left = [n for n in range(len(successors)) if n not in seen]
    for root in reversed(left):
        order += _postorder(root, successors, seen)
    return order[::-1]


def _postorder(root: int, successors: Sequence[Sequence[int]], seen: set[int]) -> list[int]:
    if root in seen:
        return []
    seen.add(root)
    found: list[int] = []
    path = [(root, iter(sorted(successors[root], reverse=True)))]
    while path:
        node, rest = path[-1]
        for after in rest:
            if after not in seen:
                seen.add(after)
                path.append((after, iter(sorted(successors[after], reverse=True))))
                break
        else:
            found.append(node)
            path.pop()
    return found

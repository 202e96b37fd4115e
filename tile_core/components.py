"""Strongly connected components of a directed graph (Tarjan, 1972), without recursion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def strongly_connected(
    nodes: Iterable[int], successors: Sequence[Iterable[int]]
) -> list[list[int]]:
    """The components of the subgraph of `nodes`, members in ascending order.

    A component comes after all others that it leads to. `successors[n]` are the nodes behind n,
    of which those outside of `nodes` do not count.
    """
    nodes = list(nodes)
    inside = set(nodes)
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    found: list[list[int]] = []
    for root in nodes:
        if root in index:
            continue
        path = [(root, iter(successors[root]))]
        _enter(root, index, low, stack)
        while path:
            node, rest = path[-1]
            for after in rest:
                if after not in inside:
                    continue
                if after not in index:
                    _enter(after, index, low, stack)
                    path.append((after, iter(successors[after])))
                    break
                low[node] = min(low[node], index[after])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_leave(node, inside, stack))
    return found


def _enter(node: int, index: dict[int, int], low: dict[int, int], stack: list[int]) -> None:
    index[node] = low[node] = len(index)
    stack.append(node)


def _leave(root: int, inside: set[int], stack: list[int]) -> list[int]:
    """A whole component, from the top of the stack down to its root; it is out of the graph."""
    cut = len(stack) - 1
    while stack[cut] != root:
        cut -= 1
    found = sorted(stack[cut:])
    del stack[cut:]
    inside.difference_update(found)
    return found

"""The order in which blocks are preferred, so that divergent threads meet again.

Ranks follow a weak topological order (Bourdoncle, "Efficient chaotic iteration strategies with
widenings", 1993): a block comes after all that lead to it, and a loop is contiguous. Running the
lowest rank first makes threads wait at the immediate post-dominator of a branch, and at the exit
of a loop, until the others arrive.
"""

from __future__ import annotations

import heapq

from tile_core.components import strongly_connected


def weak_topological_order(successors: list[list[int]]) -> list[int]:
    """Block numbers, lowest rank first; blocks that nothing reaches come last."""
    order: list[int] = []
    stack: list[tuple[list[int], bool]] = [(_all(successors), False)]
    while stack:
        nodes, is_single = stack.pop()
        if is_single:
            order.extend(nodes)
            continue
        pieces = _sorted_components(nodes, successors)
        for component in reversed(pieces):
            if len(component) == 1:
                stack.append((component, True))
            else:
                head, rest = component[0], component[1:]
                stack.append((rest, False))
                stack.append(([head], True))
    return order


def _all(successors: list[list[int]]) -> list[int]:
    """All nodes: first those reachable from block 0, in depth-first preorder."""
    seen, order, stack = set(), [], [0]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            order.append(node)
            stack.extend(reversed(successors[node]))
    return order + [n for n in range(len(successors)) if n not in seen]


def _sorted_components(nodes: list[int], successors: list[list[int]]) -> list[list[int]]:
    """Strongly connected components in topological order, ties by program order.

    In a component the node that is entered first comes first.
    """
    components = strongly_connected(nodes, successors)
    entered = {node: i for i, node in enumerate(nodes)}
    owner = {n: k for k, component in enumerate(components) for n in component}
    for component in components:
        component.sort(key=entered.__getitem__)
    incoming = [0] * len(components)
    edges: list[set[int]] = [set() for _ in components]
    for node in nodes:
        for target in successors[node]:
            a, b = owner[node], owner.get(target)
            if b is not None and a != b and b not in edges[a]:
                edges[a].add(b)
                incoming[b] += 1
    ready = [(min(c), k) for k, c in enumerate(components) if not incoming[k]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, k = heapq.heappop(ready)
        order.append(components[k])
        for b in sorted(edges[k]):
            incoming[b] -= 1
            if not incoming[b]:
                heapq.heappush(ready, (min(components[b]), b))
    return order

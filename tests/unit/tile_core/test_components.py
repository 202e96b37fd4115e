"""Strongly connected components, against reachability from scratch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tile_core.components import strongly_connected

Graph = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 12))
    return [draw(st.lists(st.integers(0, count - 1), max_size=3)) for _ in range(count)]


def reached(graph: Graph, nodes: set[int], root: int) -> set[int]:
    """What `root` leads to within `nodes`, itself among it."""
    seen, left = {root}, [root]
    while left:
        new = {n for n in graph[left.pop()] if n in nodes and n not in seen}
        seen |= new
        left += new
    return seen


@given(graphs(), st.data())
def test_they_are_what_reaches_each_other(graph: Graph, data: st.DataObject) -> None:
    nodes = data.draw(st.permutations(range(len(graph))))[: data.draw(st.integers(0, 12))]
    found = strongly_connected(nodes, graph)
    behind = {n: reached(graph, set(nodes), n) for n in nodes}
    assert sorted(n for part in found for n in part) == sorted(nodes)
    for at, part in enumerate(found):
        assert part == sorted(n for n in behind[part[0]] if part[0] in behind[n])
        later = {n for after in found[at + 1 :] for n in after}
        assert not behind[part[0]] & later, "a component comes after all that it leads to"


def test_long_chains_need_no_stack() -> None:
    count = 5000
    chain = [[n + 1] for n in range(count - 1)] + [[0]]
    assert strongly_connected(range(count), chain) == [list(range(count))]
    assert len(strongly_connected(range(count - 1), chain)) == count - 1

"""Spreading layouts over a graph from a few seeds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from tile_cute.linear import (
    LinearLayout,
    join,
    permute_dims,
    project_dims,
    reshape,
    slice_dim,
    subtile,
)

from tile_tileas.layouts import Assignment, TileGraph, TileNode, inverse_permutation

Accepts = Callable[[int, LinearLayout], bool]


class Propagation:
    """Layouts found so far; the first one to reach a value stays.

    `accepts` may keep a layout from spreading to a value; a later seed decides there. What is made
    for free is made in each layout that somebody asks for, so that none spreads across it: zeros
    that pad two tiles say nothing of either.
    """

    def __init__(self, graph: TileGraph, accepts: Accepts = lambda value, layout: True) -> None:
        self.graph = graph
        self._accepts = accepts
        self.layouts: dict[int, LinearLayout] = {}
        self._free = {r for node in graph.nodes if node.kind == "source" for r in node.results}
        self._users: dict[int, list[TileNode]] = {}
        for node in graph.nodes:
            for value in (*node.operands, *node.results):
                self._users.setdefault(value, []).append(node)

    def seed(self, value: int, layout: LinearLayout) -> None:
        """Give `value` a layout, unless it has one, and spread it as far as it goes for free."""
        if value in self.layouts:
            return
        self.layouts[value] = layout
        pending = deque([value])
        while pending:
            known = pending.popleft()
            if known in self._free and known != value:
                continue
            for node in self._users.get(known, ()):
                for other, found in self._implied(node, known):
                    if other not in self.layouts and self._accepts(other, found):
                        self.layouts[other] = found
                        pending.append(other)

    def _implied(self, node: TileNode, known: int) -> Iterable[tuple[int, LinearLayout]]:
        """Layouts of a node's other values under which it moves no data."""
        layout, values = self.layouts[known], self.graph.values
        if node.kind in ("same", "load"):
            for other in (*node.operands, *node.results):
                yield other, layout
        elif node.kind == "view":
            for other in (*node.operands, *node.results):
                yield other, reshape(layout, values[other].shape)
        elif node.kind in ("permute", "cat", "slice", "insert"):
            yield from self._rearranged(node, known)
        elif node.kind == "broadcast" and known in node.results:
            yield node.operands[0], project_dims(layout, values[node.operands[0]].shape)
        elif node.kind == "dot" and known in (node.operands[2], *node.results):
            for other in (node.operands[2], *node.results):
                yield other, layout
        elif node.kind == "reduce" and known in node.operands:
            for other in node.operands:
                yield other, layout
            assert node.axis is not None
            for other in node.results:
                yield other, slice_dim(layout, node.axis)

    def _rearranged(self, node: TileNode, known: int) -> Iterable[tuple[int, LinearLayout]]:
        layout, source, result = self.layouts[known], node.operands[0], node.results[0]
        if node.kind == "cat":
            yield from self._joined(node, known)
        elif node.kind == "insert":
            yield from self._inserted(node, known)
        elif node.kind == "slice":
            part = subtile(layout, self.graph.values[result].shape) if known == source else None
            if part is not None:
                yield result, part
        elif known == source:
            yield result, permute_dims(layout, node.permutation)
        else:
            yield source, permute_dims(layout, inverse_permutation(node.permutation))

    def _inserted(self, node: TileNode, known: int) -> Iterable[tuple[int, LinearLayout]]:
        """The tile and the result share a layout; the slice follows where threads hold it."""
        source, whole = node.operands[:2]
        if known == source:
            return
        yield whole, self.layouts[known]
        yield node.results[0], self.layouts[known]
        part = subtile(self.layouts[known], self.graph.values[source].shape)
        if part is not None:
            yield source, part

    def _joined(self, node: TileNode, known: int) -> Iterable[tuple[int, LinearLayout]]:
        assert node.axis is not None
        layout = self.layouts[known]
        if known in node.operands:
            for other in node.operands:
                yield other, layout
            yield node.results[0], join(layout, node.axis, 2)
            return
        part = subtile(layout, self.graph.values[node.operands[0]].shape)
        if part is not None:
            for other in node.operands:
                yield other, part

    def finish(
        self,
        default: Callable[[tuple[int, ...]], LinearLayout],
        store: Callable[[TileNode, LinearLayout], LinearLayout] = lambda node, layout: layout,
    ) -> Assignment:
        """Seed what is left with `default(shape)` in program order; stores write what they get,
        in the layout that `store` makes of it.

        A broadcast does not hand its operand's layout on: that would put all the copies into
        registers of every thread. The operand is small and moves instead.
        """
        for node in self.graph.nodes:
            for value in node.results:
                self.seed(value, default(self.graph.values[value].shape))
        for value, tile in enumerate(self.graph.values):
            self.seed(value, default(tile.shape))
        stores = {
            index: store(node, self.layouts[node.operands[0]])
            for index, node in enumerate(self.graph.nodes)
            if node.kind == "store" and node.operands
        }
        return Assignment(self.layouts, stores)

"""What threads have next to each other of each tile that is loaded or stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tile_cute.linear import LinearLayout

from tile_tileas.layouts import TileGraph, TileNode
from tile_tileas.reuse import Shifted, loaded
from tile_tileas.strategies.coalescing import instructions, lines
from tile_tileas.strategies.spread import LANES, spread

#: How often a loop turns, where only their depth is known.
_TURNS = 8
#: Something else than the widest vectors is taken if accesses cost so much of what they would.
_WORTH = 0.75
#: The widest access of a thread.
_WIDEST_BITS = 128
#: Vectors next to each other that a thread has along another axis.
_TALLEST = 8


@dataclass(frozen=True)
class Held:
    """`vector` elements along the first axis of the accesses' order, and, with `tall`, (axis,
    number), so many of them along that axis.
    """

    vector: int = 1
    tall: tuple[int, int] | None = None


#: (shape, order) of a tile's accesses.
Key = tuple[tuple[int, ...], tuple[int, ...]]


def is_access(node: TileNode) -> bool:
    """Whether it has a plan: loads and stores, and atomic sums that may be made of vectors."""
    return node.kind in ("load", "store") or (node.kind == "atomic" and bool(node.order))


def held(graph: TileGraph) -> dict[Key, Held]:
    """What threads hold of the tiles that are accessed."""
    found: dict[Key, list[TileNode]] = defaultdict(list)
    for node in graph.nodes:
        if is_access(node):
            for value in (*node.results, *node.operands)[:1]:
                found[graph.values[value].shape, node.order].append(node)
    return {key: _Accesses(graph, key, nodes).chosen() for key, nodes in found.items()}


@dataclass(frozen=True)
class _Accesses:
    """All accesses to tiles of one shape, in one order."""

    graph: TileGraph
    key: Key
    nodes: Sequence[TileNode]

    def chosen(self) -> Held:
        """The widest vector that one of the accesses may have, or something else where a warp's
        accesses take less then: an instruction and a turn for each line of memory.

        (Of vectors of 8 and 16 elements, each as far as it may, 16 is the better choice: quantising
        16384 x 4096 numbers takes 29.9 us on a B200 in the model, and 34.4 with 8.)
        """
        widest = Held(max(node.vector for node in self.nodes))
        others = [Held()] if any(node.vector == 1 for node in self.nodes) else []
        others += self._for_families()
        if not others:
            return widest
        best = min(others, key=self._cost)
        return best if self._cost(best) <= _WORTH * self._cost(widest) else widest

    def _for_families(self) -> Iterator[Held]:
        """What lets loads that are shifted share more elements."""
        (shape, order), families = self.key, self._families()
        room = max(1, prod(shape) // (LANES * self.graph.num_warps))
        bits = min((self._bits(node) for family in families for node in family), default=0)
        vector = 1
        while bits and vector <= min(room, shape[order[0]], _WIDEST_BITS // bits):
            yield Held(vector)
            for axis in order[1:]:
                if any(len({node.offset[axis] for node in family}) > 1 for family in families):
                    tall = 2
                    while tall <= min(room // vector, shape[axis], _TALLEST):
                        yield Held(vector, (axis, tall))
                        tall *= 2
            vector *= 2

    def _families(self) -> list[list[TileNode]]:
        found: dict[int, list[TileNode]] = defaultdict(list)
        for node in self.nodes:
            if node.family is not None:
                found[node.family].append(node)
        return [nodes for nodes in found.values() if len(nodes) > 1]

    def _cost(self, held: Held) -> float:
        (shape, order), graph = self.key, self.graph
        room = max(1, prod(shape) // (LANES * graph.num_warps))
        layout = spread(shape, graph.num_warps, order, min(held.vector, room), tall=held.tall)
        families = self._families()
        shared = {id(node) for family in families for node in family}
        counts = [
            (node, instructions(layout, order[0], node.vector))
            for node in self.nodes
            if id(node) not in shared
        ]
        for family in families:
            loads = [Shifted(node.offset, order[0], node.vector) for node in family]
            counts += zip(family, loaded(layout, loads), strict=True)
        return sum(
            _TURNS**node.depth * count * (1 + self._lines(node, layout)) for node, count in counts
        )

    def _lines(self, node: TileNode, layout: LinearLayout) -> int:
        """Lines of memory that a warp's access touches."""
        return lines(layout, self.key[1][0], self._bits(node)) if node.in_rows else LANES

    def _bits(self, node: TileNode) -> int:
        return self.graph.values[(*node.results, *node.operands)[0]].bits

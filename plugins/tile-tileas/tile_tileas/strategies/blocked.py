"""`blocked`: wide, coalesced loads and stores decide; everything else follows them.

Tensor-core products come before all: their accumulators have fragments of the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from tile_cute.linear import LinearLayout, blocked, replicated

from tile_tileas.layouts import Assignment, TileGraph, TileNode
from tile_tileas.strategies.coalescing import (
    WASTEFUL,
    instructions,
    lines,
    touched_sectors,
    turned_by_matrices,
)
from tile_tileas.strategies.mma import seed_accumulators
from tile_tileas.strategies.propagation import Propagation

LANES = 32


def spread(
    shape: Sequence[int],
    num_warps: int,
    order: Sequence[int],
    vector: int,
    warp_order: Sequence[int] | None = None,
    rows: tuple[int, int] | None = None,
) -> LinearLayout:
    """Vectors along order[0], then lanes along `order`, then warps along `warp_order`.

    Lanes and warps that a small tile has no room for hold copies. With `rows`, (axis, number), so
    many groups of lanes stand along that axis, and the lanes of each along `order`.
    """
    if not shape:
        return replicated((), LANES, num_warps)
    left = list(shape)
    boxes: list[list[int]] = []
    axis_of_rows, groups = rows or (order[0], 1)
    for count, axes, replicate in (
        (vector, order[:1], False),
        (LANES // groups, order, True),
        (num_warps, warp_order or order, True),
    ):
        box = [1] * len(shape)
        if len(boxes) == 1:
            box[axis_of_rows] = groups
            left[axis_of_rows] //= groups
        for axis in axes:
            take = min(count, left[axis])
            box[axis] *= take
            left[axis] //= take
            count //= take
        if replicate:
            box[axes[-1]] *= count  # no room left: these hold copies
        boxes.append(box)
    return blocked(shape, boxes[0], boxes[1], boxes[2], order)


class BlockedStrategy:
    """Every shape gets the widest vector that one of its accesses allows; single elements where
    others have no vectors and would touch more lines for it.

    Loads in inner loops spread first, then other loads and stores, in program order. Warps go
    along axes that are not reduced where there is room, so that reductions stay inside a warp.
    Where rows are reduced, a warp has as many at once as it can read whole lines of memory of: a
    row's fold passes through fewer lanes, and each lane has fewer rows to fold.
    An access of a view for which another one's layout would waste memory traffic keeps its own. So
    does a store through pointers, if these have that layout anyway: the value moves in their place.
    """

    name: ClassVar[str] = "blocked"

    def assign(self, graph: TileGraph) -> Assignment:
        vectors = self._vectors(graph)
        reduced, runs, bits = _reduced_axes(graph), _least_runs(graph), _loaded_bits(graph)

        @cache
        def layout(shape: tuple[int, ...], order: tuple[int, ...]) -> LinearLayout:
            threads = LANES * graph.num_warps
            room = max(1, _count(shape) // threads)
            vector = min(vectors.get((shape, order), 1), max(room, runs.get(shape, 1)))
            along = sorted(order, key=lambda axis: (shape, axis) in reduced)
            rows = None
            if (shape, order[0]) in reduced and along[0] != order[0]:
                several = _groups(shape[along[0]] // graph.num_warps, vector * bits.get(shape, 1))
                rows = (along[0], min(several, _groups_with_room(shape[order[0]])))
            return spread(shape, graph.num_warps, order, vector, along, rows)

        def wasteful(node: TileNode, layout_: LinearLayout) -> bool:
            """Whether a load or store touches far more sectors than it could."""
            tile = graph.values[(*node.results, *node.operands)[0]]
            if node.vector == 1:
                return False
            best = layout(tile.shape, node.order)
            counts = [
                touched_sectors(each, node.order[0], node.vector, tile.bits)
                for each in (layout_, best)
            ]
            return counts[0] >= WASTEFUL * counts[1]

        loads = {n.results[0]: n for n in graph.nodes if n.kind == "load" and n.results}

        def accepts(value: int, found: LinearLayout) -> bool:
            if value not in loads or loads[value].operands:
                return True
            return not wasteful(loads[value], found)

        def stored(node: TileNode, found: LinearLayout) -> LinearLayout:
            best = layout(found.shape, node.order)
            pointers = [spreading.layouts[each] for each in node.operands[1:]]
            if not (node.by_threads and wasteful(node, found) and all(p == best for p in pointers)):
                return found
            bits = graph.values[node.operands[0]].bits
            turned = None if pointers else turned_by_matrices(found, best, node.order, bits)
            return turned or best

        spreading = Propagation(graph, accepts)
        seed_accumulators(spreading)
        anchors = [n for n in graph.nodes if _is_access(n)]
        for node in sorted(anchors, key=lambda n: (-n.depth, n.kind != "load")):
            for value in (*node.results, *node.operands)[:1]:
                shape = graph.values[value].shape
                spreading.seed(value, layout(shape, node.order))
        return spreading.finish(
            lambda shape: layout(shape, tuple(reversed(range(len(shape))))), stored
        )

    def _vectors(self, graph: TileGraph) -> dict[tuple[tuple[int, ...], tuple[int, ...]], int]:
        """(shape, order) -> elements of a vector of the accesses to tiles of that shape."""
        found: dict[tuple[tuple[int, ...], tuple[int, ...]], list[TileNode]] = {}
        for node in graph.nodes:
            if _is_access(node):
                for value in (*node.results, *node.operands)[:1]:
                    found.setdefault((graph.values[value].shape, node.order), []).append(node)
        return {key: _vector(graph, *key, nodes) for key, nodes in found.items()}


def _is_access(node: TileNode) -> bool:
    """Whether it has a plan: loads and stores, and atomic sums that may be made of vectors."""
    return node.kind in ("load", "store") or (node.kind == "atomic" and bool(node.order))


#: How often a loop turns, where only their depth is known.
_TURNS = 8
#: Single elements are taken if accesses cost so much of what they would.
_WORTH = 0.75


def _vector(
    graph: TileGraph, shape: tuple[int, ...], order: tuple[int, ...], nodes: Sequence[TileNode]
) -> int:
    """The widest vector that one of the accesses may have, or 1 where another one may not, and a
    warp's accesses take less then: an instruction and a turn for each line of memory.

    (Of vectors of 8 and 16 elements, each as far as it may, 16 is the better choice: quantising
    16384 x 4096 numbers takes 29.9 us on a B200 in the model, and 34.4 with 8.)
    """
    widest = max(node.vector for node in nodes)
    if all(node.vector > 1 for node in nodes):
        return widest

    def cost(vector: int) -> float:
        room = max(1, _count(shape) // (LANES * graph.num_warps))
        layout = spread(shape, graph.num_warps, order, min(vector, room))
        return sum(
            _TURNS**node.depth * instructions(layout, order[0], node.vector)
            * (1 + (lines(layout, order[0], graph.values[value].bits) if node.in_rows else LANES))
            for node in nodes
            for value in (*node.results, *node.operands)[:1]
        )  # fmt: skip

    return 1 if cost(1) <= _WORTH * cost(widest) else widest


#: The fewest bits that cp.async copies (PTX ISA, "cp.async").
_ASYNCHRONOUS = 32


def _least_runs(graph: TileGraph) -> dict[tuple[int, ...], int]:
    """Shapes of small tiles of bytes that are loaded in loops -> how many elements a thread has at
    least, though others have copies then: with fewer, no loads could run ahead.
    """
    loaded = (
        graph.values[node.results[0]]
        for node in graph.nodes
        if node.kind == "load" and node.depth and node.results
    )
    return {tile.shape: _ASYNCHRONOUS // tile.bits for tile in loaded if tile.bits in (8, 16)}


#: What a warp reads of a row at least, if it reads several at once: a line of L2 (CUDA C++ Best
#: Practices Guide, "Coalesced Access to Global Memory"), of 1,024 bits.
_LINE_BITS = 1024


def _groups(rows: int, bits: int) -> int:
    """Groups of lanes, each with a row of its own, of which a warp has `rows`; a lane reads `bits`
    at once. A power of two.
    """
    return max(1, min(rows, LANES * bits // _LINE_BITS))


#: Elements of one row that a thread has at most, if its warp reads several rows: it has as many of
#: each vector that is the same for all rows, such as weights, as well. Four rows of 1,024 f32 a
#: warp, 128 elements each, spill with weights; with 64 they do not.
_MOST_OF_A_ROW = 64


def _groups_with_room(columns: int) -> int:
    """Groups of lanes, each with a row of so many columns, in whose registers a row has room."""
    return max(1, _MOST_OF_A_ROW * LANES // columns)


def _loaded_bits(graph: TileGraph) -> dict[tuple[int, ...], int]:
    """Shape -> bits of the narrowest elements that are loaded as tiles of that shape."""
    found: dict[tuple[int, ...], int] = {}
    for node in graph.nodes:
        if node.kind == "load" and node.results:
            tile = graph.values[node.results[0]]
            found[tile.shape] = min(found.get(tile.shape, tile.bits), tile.bits)
    return found


def _reduced_axes(graph: TileGraph) -> frozenset[tuple[tuple[int, ...], int]]:
    """(shape, axis) pairs that some reduction folds."""
    return frozenset(
        (graph.values[node.operands[0]].shape, node.axis)
        for node in graph.nodes
        if node.kind == "reduce" and node.axis is not None
    )


def _count(shape: Sequence[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total

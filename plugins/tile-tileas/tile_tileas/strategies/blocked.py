"""`blocked`: wide, coalesced loads and stores decide; everything else follows them.

Tensor-core products come before all: their accumulators have fragments of the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from tile_cute.linear import LinearLayout

from tile_tileas.layouts import Assignment, TileGraph, TileNode
from tile_tileas.strategies.coalescing import (
    WASTEFUL,
    touched_sectors,
    turned_by_matrices,
)
from tile_tileas.strategies.held import Held, held, is_access
from tile_tileas.strategies.mma import seed_accumulators
from tile_tileas.strategies.propagation import Propagation
from tile_tileas.strategies.spread import LANES, spread


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
        holding = held(graph)
        reduced, runs, bits = _reduced_axes(graph), _least_runs(graph), _loaded_bits(graph)

        @cache
        def layout(shape: tuple[int, ...], order: tuple[int, ...]) -> LinearLayout:
            threads = LANES * graph.num_warps
            room = max(1, _count(shape) // threads)
            wanted = holding.get((shape, order), Held())
            vector = min(wanted.vector, max(room, runs.get(shape, 1)))
            along = sorted(order, key=lambda axis: (shape, axis) in reduced)
            if wanted.tall is not None and (shape, order[0]) not in reduced:
                return spread(shape, graph.num_warps, order, vector, along, tall=wanted.tall)
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
            if value not in loads or loads[value].operands or not loads[value].by_threads:
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
        anchors = [n for n in graph.nodes if is_access(n)]
        for node in sorted(anchors, key=lambda n: (-n.depth, n.kind != "load")):
            for value in (*node.results, *node.operands)[:1]:
                shape = graph.values[value].shape
                spreading.seed(value, layout(shape, node.order))
        return spreading.finish(
            lambda shape: layout(shape, tuple(reversed(range(len(shape))))), stored
        )


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

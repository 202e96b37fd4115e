"""Accumulators of products, from which layouts spread before any other."""

from __future__ import annotations

from tile_tileas.dots import FMA, SCALED_FAMILY, product_shape
from tile_tileas.layouts import TileGraph, TileNode
from tile_tileas.mma.families import TENSOR, WARP
from tile_tileas.mma.tensor import TensorTier
from tile_tileas.mma.tier import Planned
from tile_tileas.mma.tiers import tier_of
from tile_tileas.strategies.propagation import Propagation

#: Elements that `tma.benefit` has brought for that.
_HALF_BITS = 16
#: Tiers whose operands threads have as fragments.
_OF_WARPS = (WARP, SCALED_FAMILY)
#: What gives a tile whose elements are where those of its operands are.
_KEEPING_ELEMENTS = ("same", "convert")


def seed_accumulators(spreading: Propagation) -> None:
    """Give results of products their layouts, innermost loops first.

    Tensor cores want fragments of their instruction. They reach the accumulators that loops carry,
    so that no conversion remains inside. Warps of a product whose rows are reduced stand along
    rows, so that a reduction stays in a warp; and so do those of a product on warps whose left
    operand is made of such rows, which has them in the registers that they are in. Causal attention
    of 32 heads of 8192 x 64 in tiles of 128 x 128 (model, us, by way of shared memory and so):
    RTX 5090 1904 and 1701, A100 2092 and 1537.
    """
    graph = spreading.graph
    products = [node for node in graph.nodes if node.kind == "dot"]
    reduced = _row_reduced(graph)
    for node in sorted(products, key=lambda node: (node.atom == FMA, -node.depth)):
        result = graph.values[node.results[0]]
        shape = _product(graph, node)
        planned = Planned(node.atom, shape, len(result.shape), graph.num_warps)
        tier = tier_of(node.atom)
        whole_rows = result.shape in reduced
        if tier.family in _OF_WARPS:
            whole_rows |= _is_made_of(graph, node.operands[0], reduced)
        layout = tier.accumulator(planned, whole_rows=whole_rows)
        spreading.seed(node.results[0], layout)
    for node in products:
        _seed_made(spreading, node)


def _seed_made(spreading: Propagation, node: TileNode) -> None:
    """Give what threads make for a product by tcgen05 of a tile that engines bring, in a loop, the
    layout in which they store it to tensor memory: any other is as good to read.
    """
    graph, left = spreading.graph, node.operands[0]
    if tier_of(node.atom).family != TENSOR or not node.depth or not _is_brought(graph, left):
        return
    shape = _product(graph, node)
    planned = Planned(node.atom, shape, len(graph.values[left].shape), graph.num_warps)
    layout = TensorTier().plan(planned).left_fragments
    if layout is not None:
        spreading.seed(left, layout)


def _is_brought(graph: TileGraph, tile: int) -> bool:
    """Whether a tile is made, element by element, of one of halves that no thread loads."""
    makers = {result: node for node in graph.nodes for result in node.results}
    maker = makers.get(tile)
    if maker is None or maker.kind != "same":
        return False
    shape, pending, seen = graph.values[tile].shape, [*maker.operands], set[int]()
    while pending:
        value = pending.pop()
        maker = makers.get(value)
        if value in seen or maker is None or graph.values[value].shape != shape:
            continue
        seen.add(value)
        if maker.kind == "load":
            return not maker.by_threads and graph.values[value].bits == _HALF_BITS
        if maker.kind == "same":
            pending += maker.operands
    return False


def _is_made_of(graph: TileGraph, tile: int, reduced: frozenset[tuple[int, ...]]) -> bool:
    """Whether a tile is a product whose rows some reduction folds, but for what is done to each
    element.
    """
    if graph.values[tile].shape not in reduced:
        return False
    makers = {result: node for node in graph.nodes for result in node.results}
    pending, seen = [tile], set[int]()
    while pending:
        value = pending.pop()
        maker = makers.get(value)
        if value in seen or maker is None:
            continue
        seen.add(value)
        if maker.kind == "dot":
            return True
        if maker.kind in _KEEPING_ELEMENTS:
            pending += maker.operands
    return False


def _product(graph: TileGraph, node: TileNode) -> tuple[int, int, int, int]:
    a, c = (graph.values[value].shape for value in (node.operands[0], node.results[0]))
    return product_shape(a, c)


def _row_reduced(graph: TileGraph) -> frozenset[tuple[int, ...]]:
    """Shapes that some reduction folds along the last axis."""
    shapes = (
        (graph.values[node.operands[0]].shape, node.axis)
        for node in graph.nodes
        if node.kind == "reduce"
    )
    return frozenset(shape for shape, axis in shapes if axis == len(shape) - 1)

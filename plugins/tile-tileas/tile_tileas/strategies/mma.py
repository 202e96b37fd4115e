"""Accumulators of products, from which layouts spread before any other."""

from __future__ import annotations

from tile_tileas.dots import FMA, product_shape
from tile_tileas.layouts import TileGraph, TileNode
from tile_tileas.mma.tier import Planned
from tile_tileas.mma.tiers import tier_of
from tile_tileas.strategies.propagation import Propagation


def seed_accumulators(spreading: Propagation) -> None:
    """Give results of products their layouts, innermost loops first.

    Tensor cores want fragments of their instruction. They reach the accumulators that loops carry,
    so that no conversion remains inside. Warps of a product whose rows are reduced stand along
    rows, so that a reduction stays in a warp.
    """
    graph = spreading.graph
    products = [node for node in graph.nodes if node.kind == "dot"]
    reduced = _row_reduced(graph)
    for node in sorted(products, key=lambda node: (node.atom == FMA, -node.depth)):
        result = graph.values[node.results[0]]
        shape = _product(graph, node)
        planned = Planned(node.atom, shape, len(result.shape), graph.num_warps)
        whole_rows = result.shape in reduced
        layout = tier_of(node.atom).accumulator(planned, whole_rows=whole_rows)
        spreading.seed(node.results[0], layout)


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

"""Accumulators of tensor cores, from which layouts spread before any other."""

from __future__ import annotations

from tile_tileas.dots import FMA, atom_named, fragment, preferred_grid, product_shape
from tile_tileas.layouts import TileGraph, TileNode
from tile_tileas.strategies.propagation import Propagation


def seed_accumulators(spreading: Propagation) -> None:
    """Give results of tensor-core products their fragments, innermost loops first.

    They reach the accumulators that loops carry, so that no conversion remains inside. Warps of a
    product whose rows are reduced stand along rows, so that a reduction stays in a warp.
    """
    graph = spreading.graph
    products = [node for node in graph.nodes if node.kind == "dot" and node.atom != FMA]
    reduced = _row_reduced(graph)
    for node in sorted(products, key=lambda node: -node.depth):
        result = graph.values[node.results[0]]
        atom, shape = atom_named(node.atom), _product(graph, node)
        grid = preferred_grid(atom, shape, graph.num_warps, result.shape in reduced)
        spreading.seed(node.results[0], fragment(atom, "c", shape, len(result.shape), grid))


def _product(graph: TileGraph, node: TileNode) -> tuple[int, int, int, int]:
    a, b = (graph.values[operand].shape for operand in node.operands[:2])
    return product_shape(a, b)


def _row_reduced(graph: TileGraph) -> frozenset[tuple[int, ...]]:
    """Shapes that some reduction folds along the last axis."""
    shapes = (
        (graph.values[node.operands[0]].shape, node.axis)
        for node in graph.nodes
        if node.kind == "reduce"
    )
    return frozenset(shape for shape, axis in shapes if axis == len(shape) - 1)

"""Accumulators of products, from which layouts spread before any other."""

from __future__ import annotations

from tile_cute.linear import LinearLayout, blocked

from tile_tileas.dots import FMA, atom_named, fragment, preferred_grid, product_shape
from tile_tileas.layouts import TileGraph, TileNode, TileValue
from tile_tileas.strategies.propagation import Propagation

LANES = 32
#: Rows and columns of an accumulator that one thread multiplies without tensor cores, where
#: there are enough: each row and column that it reads serves four elements.
_ROWS, _COLUMNS = 4, 4
_LANES_ALONG_ROW = 8  # with _COLUMNS of f32 a store of 128 bytes


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
        if node.atom == FMA:
            spreading.seed(node.results[0], register_block(result, graph.num_warps))
            continue
        atom, shape = atom_named(node.atom), _product(graph, node)
        grid = preferred_grid(atom, shape, graph.num_warps, result.shape in reduced)
        spreading.seed(node.results[0], fragment(atom, "c", shape, len(result.shape), grid))


def register_block(tile: TileValue, num_warps: int) -> LinearLayout:
    """Blocks of rows and columns for each thread, as large as keeps all threads at work."""
    *batch, m, n = tile.shape
    count = batch[0] if batch else 1
    room = max(1, count * m * n // (LANES * num_warps))
    columns = min(_COLUMNS, n, room)
    rows = min(_ROWS, m, room // columns)
    along = min(_LANES_ALONG_ROW, n // columns)
    down = min(LANES // along, m // rows)
    along = LANES // down
    deep = min(count, num_warps)
    left = num_warps // deep
    below = min(left, max(1, m // (rows * down)))
    boxes = [[rows, columns], [down, along], [below, left // below]]
    if batch:
        boxes = [[first, *box] for first, box in zip((1, 1, deep), boxes, strict=True)]
    order = tuple(reversed(range(len(tile.shape))))
    return blocked(tile.shape, boxes[0], boxes[1], boxes[2], order)


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

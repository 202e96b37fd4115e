"""Layout strategies on random graphs, what makes an assignment illegal, plans of reductions."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import RandomStrategy, random_layout
from tile_cute.linear import (
    LinearLayout,
    SharedRoundTrip,
    permute_dims,
    plan_conversion,
    slice_dim,
)
from tile_tileas.dots import FMA, choose_atom
from tile_tileas.layouts import Assignment, NodeKind, TileGraph, TileNode, TileValue, problem_with
from tile_tileas.reductions import plan_reduction
from tile_tileas.strategies.blocked import BlockedStrategy
from tile_tileas.strategies.coalescing import touched_sectors
from tile_tileas.strategies.first_legal import FirstLegalStrategy
from tile_tileas.strategies.spread import spread

STRATEGIES = (BlockedStrategy, FirstLegalStrategy, RandomStrategy)
SHAPES = ((), (1,), (2,), (128,), (1024,), (16, 32), (1, 64), (64, 1), (4, 8, 16), (2, 1, 256))


class GraphMaker:
    """A graph under construction, from the choices of Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.values: list[TileValue] = []
        self.nodes: list[TileNode] = []

    def value(self, shape: tuple[int, ...]) -> int:
        self.values.append(TileValue(shape, self.draw(st.sampled_from([1, 8, 16, 32, 64]))))
        return len(self.values) - 1

    def some(self) -> int:
        return self.draw(st.integers(0, len(self.values) - 1))

    def like(self, value: int) -> int:
        same = [i for i, v in enumerate(self.values) if v.shape == self.values[value].shape]
        return self.draw(st.sampled_from(same))

    def node(self, kind, operands=(), results=(), **more) -> None:
        depth = self.draw(st.integers(0, 2))
        self.nodes.append(TileNode(kind, f"test.{kind}", operands, results, depth=depth, **more))

    def access(self, shape: tuple[int, ...]) -> dict:
        order = tuple(self.draw(st.permutations(range(len(shape)))))
        return {"order": order, "vector": 1 << self.draw(st.integers(0, 4))}

    def source(self) -> None:
        shape = self.draw(st.sampled_from(SHAPES[1:]))
        self.node("source", (), (self.value(shape),))

    def load(self) -> None:
        shape = self.draw(st.sampled_from(SHAPES[1:]))
        self.node("load", (), (self.value(shape),), **self.access(shape))

    def store(self) -> None:
        value = self.some()
        self.node("store", (value, self.like(value)), **self.access(self.values[value].shape))

    def same(self) -> None:
        left = self.some()
        result = self.value(self.values[left].shape)
        self.node("same", (left, self.like(left)), (result,))

    def convert(self) -> None:
        source = self.some()
        self.node("convert", (source,), (self.value(self.values[source].shape),))

    def view(self) -> None:
        source = self.some()
        size = prod(self.values[source].shape)
        shapes = [(size,), (1, size), (size, 1)] + ([(2, size // 2)] if size > 1 else [])
        self.node("view", (source,), (self.value(self.draw(st.sampled_from(shapes))),))

    def broadcast(self) -> None:
        source = self.some()
        grown = tuple(4 if extent == 1 else extent for extent in self.values[source].shape)
        self.node("broadcast", (source,), (self.value(grown),))

    def reduce(self) -> None:
        source = self.some()
        shape = self.values[source].shape
        axis = self.draw(st.integers(0, len(shape) - 1))
        left = shape[:axis] + shape[axis + 1 :]
        if left:  # a fold to a scalar has no tile as its result
            self.node("reduce", (source,), (self.value(left),), axis=axis)

    def permute(self) -> None:
        source = self.some()
        shape = self.values[source].shape
        axes = tuple(self.draw(st.permutations(range(len(shape)))))
        result = self.value(tuple(shape[axis] for axis in axes))
        self.node("permute", (source,), (result,), permutation=axes)

    def scan(self) -> None:
        source = self.some()
        shape = self.values[source].shape
        axis = self.draw(st.integers(0, len(shape) - 1))
        self.node("scan", (source,), (self.value(shape),), axis=axis)

    def cat(self) -> None:
        source = self.some()
        shape = list(self.values[source].shape)
        axis = self.draw(st.integers(0, len(shape) - 1))
        shape[axis] *= 2
        self.node("cat", (source, self.like(source)), (self.value(tuple(shape)),), axis=axis)

    def slice(self) -> None:
        source = self.some()
        shape = list(self.values[source].shape)
        axis = self.draw(st.integers(0, len(shape) - 1))
        shape[axis] = max(1, shape[axis] // 2)
        self.node("slice", (source,), (self.value(tuple(shape)),))

    def dot(self) -> None:
        m, n, k = (self.draw(st.sampled_from([8, 16, 64])) for _ in range(3))
        batch = self.draw(st.sampled_from([(), (1,), (4,)]))
        tensor_cores = choose_atom("sm_80", ("f16", "f16", "f32"), (m, n, k))
        names = [FMA] if tensor_cores is None else [FMA, tensor_cores.row.name]
        shapes = ((*batch, m, k), (*batch, k, n), (*batch, m, n))
        operands = tuple(self.value(shape) for shape in shapes)
        for operand in operands:
            self.node("source", (), (operand,))
        result = self.value(shapes[2])
        self.node("dot", operands, (result,), atom=self.draw(st.sampled_from(names)))


STEPS = (
    "broadcast", "cat", "convert", "dot", "load", "permute", "reduce", "same", "scan", "slice",
    "source", "store", "view",
)  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> TileGraph:
    maker = GraphMaker(draw)
    maker.source()
    for name in draw(st.lists(st.sampled_from(STEPS), max_size=10)):
        getattr(maker, name)()
    warps = draw(st.sampled_from([1, 2, 4, 8, 16]))
    return TileGraph(tuple(maker.values), tuple(maker.nodes), warps)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_assignments_are_legal(strategy, graph: TileGraph) -> None:
    assignment = strategy().assign(graph)
    assert problem_with(graph, assignment) is None
    again = strategy().assign(graph)
    assert dict(again.values) == dict(assignment.values)
    assert dict(again.stores) == dict(assignment.stores)


def graph_of(*nodes: TileNode, shape=(1024,), warps: int = 4) -> TileGraph:
    count = 1 + max(value for node in nodes for value in (*node.operands, *node.results))
    return TileGraph(tuple(TileValue(shape, 32) for _ in range(count)), nodes, warps)


def test_blocked_reads_whole_vectors() -> None:
    graph = graph_of(TileNode("load", "load", (), (0,), order=(0,), vector=4))
    layout = BlockedStrategy().assign(graph).values[0]
    assert layout.registers_contiguous_along(0) == 4
    assert layout.apply({"register": 0, "lane": 1, "warp": 0}) == (4,)


def test_a_wide_vector_leaves_no_thread_idle() -> None:
    """128 elements on 128 threads: one each, however wide the access could be."""
    graph = graph_of(TileNode("load", "load", (), (0,), order=(0,), vector=4), shape=(128,))
    assert BlockedStrategy().assign(graph).values[0].elements_per_thread == 1


def test_padding_that_two_tiles_share_says_nothing_of_either() -> None:
    zeros = TileNode("source", "zeros", (), (0,))
    rows = TileNode("load", "load", (0,), (1,), order=(1, 0), vector=8, depth=1)
    columns = TileNode("load", "load", (0,), (2,), order=(0, 1), vector=8, depth=1)
    found = BlockedStrategy().assign(graph_of(zeros, rows, columns, shape=(128, 128)))
    first = [found.values[value].bases["register"][0] for value in (1, 2)]
    assert first == [(0, 1), (1, 0)]


def test_blocked_keeps_a_reduction_in_its_warp() -> None:
    load = TileNode("load", "load", (), (0,), order=(1, 0), vector=1)
    fold = TileNode("reduce", "reduce", (0,), (1,), axis=1)
    values = (TileValue((64, 32), 32), TileValue((64,), 32))
    assignment = BlockedStrategy().assign(TileGraph(values, (load, fold), 4))
    plan = plan_reduction(assignment.values[0], 1)
    assert plan is not None
    assert plan.warp_bits == ()
    assert plan.result == assignment.values[1]


@pytest.mark.parametrize(
    ("shape", "vector", "lanes"),
    [
        ((16, 256), 8, (4, 8)),  # eight lanes of 16 bytes are a line; others have other rows
        ((8, 256), 8, (2, 16)),  # a warp has two rows
        ((4, 256), 8, (1, 32)),
        ((16, 256), 4, (2, 16)),
        ((16, 256), 1, (1, 32)),  # lanes of two bytes fill no line
        ((32, 32), 8, (8, 4)),  # rows are shorter than a line
        ((16, 1024), 8, (2, 16)),  # of four rows a lane had 128 elements, of one row
        ((16, 4096), 8, (1, 32)),
    ],
)
def test_a_warp_reads_lines_of_several_rows_that_are_reduced(
    shape: tuple[int, int], vector: int, lanes: tuple[int, int]
) -> None:
    load = TileNode("load", "load", (), (0,), order=(1, 0), vector=vector)
    fold = TileNode("reduce", "reduce", (0,), (1,), axis=1)
    values = (TileValue(shape, 16), TileValue(shape[:1], 16))
    layout = BlockedStrategy().assign(TileGraph(values, (load, fold), 4)).values[0]
    rows = sum(basis[0] != 0 for basis in layout.bases["lane"])
    columns = sum(basis[1] != 0 for basis in layout.bases["lane"])
    assert (1 << rows, 1 << columns) == lanes
    assert layout.is_injective
    plan = plan_reduction(layout, 1)
    assert plan is not None
    assert plan.warp_bits == ()
    assert len(plan.lane_bits) == columns


def test_inner_loops_come_first() -> None:
    """Two loads meet; the one in the loop keeps its vector, whichever comes first."""
    outer = TileNode("load", "load", (), (0,), order=(0,), vector=1)
    inner = TileNode("load", "load", (), (1,), order=(0,), vector=8, depth=1)
    join = TileNode("same", "add", (0, 1), (2,))
    graph = graph_of(outer, inner, join)
    assignment = BlockedStrategy().assign(graph)
    assert assignment.values[2] == assignment.values[1]


def transposed(bits: int) -> LinearLayout:
    """What a store of a tile writes from that was loaded along the other axis."""
    load = TileNode("load", "load", (), (0,), order=(1, 0), vector=128 // bits)
    turn = TileNode("permute", "permute", (0,), (1,), permutation=(1, 0))
    store = TileNode("store", "store", (1,), (), order=(1, 0), vector=128 // bits)
    values = (TileValue((64, 64), bits), TileValue((64, 64), bits))
    return BlockedStrategy().assign(TileGraph(values, (load, turn, store), 4)).stores[2]


def test_transposes_of_two_bytes_are_read_as_matrices() -> None:
    found = transposed(16)
    assert found.registers_contiguous_along(1) == 8
    held = permute_dims(spread((64, 64), 4, (1, 0), 8), (1, 0))
    plan = plan_conversion(held, found, 16)
    assert isinstance(plan, SharedRoundTrip)
    assert plan.matrices == (16, 4)  # of 32 elements: four instructions of four matrices
    assert plan.store.vector == 8
    assert plan.store.wavefronts == plan.store.ideal
    best = spread((64, 64), 4, (1, 0), 8)
    assert touched_sectors(found, 1, 8, 16) == touched_sectors(best, 1, 8, 16)


def test_transposes_of_four_bytes_stay_as_they_are() -> None:
    assert transposed(32) == spread((64, 64), 4, (1, 0), 4)


def scattered(vector: int, *, pointers_from_product: bool) -> tuple[LinearLayout, LinearLayout]:
    """The layout of a product, and that of a store of it through pointers, `vector` at once."""
    atom = choose_atom("sm_80", ("f16", "f16", "f32"), (64, 64, 64))
    assert atom is not None
    sources = tuple(TileNode("source", "constant", (), (at,)) for at in range(3))
    dot = TileNode("dot", "dot", (0, 1, 2), (3,), atom=atom.row.name)
    narrow = TileNode("same", "fp_to_fp", (3,), (4,))
    place = TileNode("same", "addptr", (3, 5) if pointers_from_product else (5, 6), (7,))
    store = TileNode("store", "store", (4, 7), (), order=(1, 0), vector=vector)
    places = tuple(TileNode("source", "constant", (), (at,)) for at in (5, 6))
    bits = (16, 16, 32, 32, 16, 64, 64, 64)
    values = tuple(TileValue((64, 64), each) for each in bits)
    graph = TileGraph(values, (*sources, *places, dot, narrow, place, store), 4)
    found = BlockedStrategy().assign(graph)
    return found.values[3], found.stores[len(graph.nodes) - 1]


def test_sums_move_to_where_their_pointers_are() -> None:
    """Whole vectors leave; pointers of all elements of a fragment need not be computed."""
    fragment, stored = scattered(8, pointers_from_product=False)
    assert stored == spread((64, 64), 4, (1, 0), 8) != fragment


def test_pointers_that_lie_like_the_sums_keep_them_there() -> None:
    fragment, stored = scattered(8, pointers_from_product=True)
    assert stored == fragment
    fragment, stored = scattered(1, pointers_from_product=False)
    assert stored == fragment


def chained(between: NodeKind, *, folded: bool) -> tuple[LinearLayout, LinearLayout]:
    """The layouts of a product of 128 x 128 and of one of 128 x 64 whose left operand is made of it
    by a node of the kind `between`; rows of the first one are `folded`.
    """
    atom = choose_atom("sm_80", ("f16", "f16", "f32"), (128, 128, 64))
    assert atom is not None
    sources = tuple(TileNode("source", "constant", (), (at,)) for at in (0, 1, 2, 5, 6))
    first = TileNode("dot", "dot", (0, 1, 2), (3,), atom=atom.row.name)
    weights = TileNode(between, "weights", (3,), (4,), permutation=(1, 0))
    second = TileNode("dot", "dot", (4, 5, 6), (7,), atom=atom.row.name)
    fold = TileNode("reduce", "reduce", (3,), (8,), axis=1)
    square, wide = (128, 128), (128, 64)
    shapes = (wide, (64, 128), square, square, square, wide, wide, wide, (128,))
    bits = (16, 16, 32, 32, 16, 16, 32, 32, 32)
    values = tuple(TileValue(shape, each) for shape, each in zip(shapes, bits, strict=True))
    nodes = (*sources, first, *([fold] if folded else []), weights, second)
    found = BlockedStrategy().assign(TileGraph(values[: 8 + folded], nodes, 8))
    return found.values[3], found.values[7]


def test_a_product_of_folded_rows_has_them_in_its_warps() -> None:
    """Whatever its own columns are: else its left operand would go through shared memory."""
    for layout in chained("same", folded=True):
        assert layout.bases["warp"] == ((16, 0), (32, 0), (64, 0))


def test_other_products_of_products_stand_as_square_as_they_can() -> None:
    _, alone = chained("same", folded=False)
    _, turned = chained("permute", folded=True)
    for second in (alone, turned):
        assert any(column for _, column in second.bases["warp"])


LEGAL = spread((128,), 4, (0,), 1)
ONE = graph_of(TileNode("source", "constant", (), (0,)), shape=(128,))
STORED = graph_of(
    TileNode("source", "constant", (), (0,)), TileNode("store", "store", (0,), ()), shape=(128,)
)


@pytest.mark.parametrize(
    ("graph", "assignment", "problem"),
    [
        (ONE, Assignment({0: LEGAL}), None),
        (ONE, Assignment({}), "tile 0 of shape [128]: no layout"),
        (
            ONE,
            Assignment({0: spread((64,), 4, (0,), 1)}),
            "tile 0 of shape [128]: the layout has shape [64]",
        ),
        (
            ONE,
            Assignment({0: LinearLayout({"lane": [(1,), (2,), (4,), (8,), (16,)]}, (128,))}),
            "tile 0 of shape [128]: the layout does not reach every element: ",
        ),
        (
            ONE,
            Assignment({0: spread((128,), 8, (0,), 1)}),
            "tile 0 of shape [128]: the layout has 8 warps, not 4: ",
        ),
        (
            ONE,
            Assignment({0: LinearLayout({"register": [(1 << i,) for i in range(7)]}, (128,))}),
            "tile 0 of shape [128]: the layout has 1 lanes, not 32: ",
        ),
        (
            ONE,
            Assignment({0: LinearLayout({**LEGAL.bases, "block": ((0,),)}, (128,))}),
            "tile 0 of shape [128]: the layout spans several blocks: ",
        ),
        (STORED, Assignment({0: LEGAL}), "'store' of a tile of shape [128]: no layout"),
        (STORED, Assignment({0: LEGAL}, {1: LEGAL}), None),
    ],
)
def test_problems(graph: TileGraph, assignment: Assignment, problem: str | None) -> None:
    found = problem_with(graph, assignment)
    if problem is None or not problem.endswith(": "):
        assert found == problem
    else:
        assert found == problem + str(assignment.values[0])


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    shape=st.sampled_from([(64,), (8, 16), (32, 2), (4, 4, 8), (1, 256)]),
    warps=st.sampled_from([1, 2, 4, 8]),
    axis=st.integers(0, 2),
)
def test_reductions_fold_each_element_once(seed, shape, warps, axis) -> None:
    axis %= len(shape)
    layout = random_layout(random.Random(seed), shape, warps)
    check_fold(layout, axis)


def check_fold(layout: LinearLayout, axis: int) -> None:
    """Follow a plan with sets: registers, then lanes, then warps."""
    plan = plan_reduction(layout, axis)
    assert plan is not None  # single-bit bases are never mixed
    assert plan.result == slice_dim(layout, axis)
    held: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for lane, warp in product(range(32), range(layout.in_size("warp"))):
        index = {"lane": lane, "warp": warp}
        held[lane, warp] = [
            layout.apply({**index, "register": r}) for r in range(layout.in_size("register"))
        ]
    for lane, warp in held:
        kept = {coords[:axis] + coords[axis + 1 :] for coords in held[lane, warp]}
        met: dict[tuple[int, ...], list[int]] = {rest: [] for rest in kept}
        for other_lane in masked(lane, plan.lane_bits):
            for other_warp in masked(warp, plan.warp_bits):
                for coords in held[other_lane, other_warp]:
                    met[coords[:axis] + coords[axis + 1 :]].append(coords[axis])
        for elements in met.values():
            assert sorted(elements) == list(range(layout.shape[axis]))
    assert plan.partials == 1 << len(plan.warp_bits)


def masked(index: int, bits: tuple[int, ...]) -> list[int]:
    """All indices that differ from `index` in `bits` only."""
    found = [index]
    for bit in bits:
        found += [other ^ (1 << bit) for other in found]
    return found


@pytest.mark.parametrize(
    "bases",
    [
        {"lane": [(1, 1), (2, 0), (4, 0), (8, 0), (16, 0)], "register": [(0, 1)]},  # a diagonal
        {"register": [(1, 1), (1, 0)], "lane": [(2, 0), (4, 0), (8, 0), (16, 0), (0, 0)]},
        {"register": [(16, 0), (0, 1)], "lane": [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)]},
    ],
)
def test_diagonal_layouts_have_no_plan(bases) -> None:
    assert plan_reduction(LinearLayout(bases, (32, 2)), 0) is None

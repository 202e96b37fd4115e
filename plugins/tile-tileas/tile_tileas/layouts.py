"""What layout strategies exchange with `tileas-assign-layouts`: a plain graph of tile values.

No MLIR here. A strategy is a class with a `name` and an `assign` method, registered through
`tile_layout_strategies`; it must be deterministic. Whatever it answers is made true: where an
operation's operands do not have the layout it needs, a conversion is inserted, so a strategy can
cost speed, never correctness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from tile_cute.linear import LinearLayout

NodeKind = Literal[
    "load",  # results (and pointer, mask operands) in the node's layout
    "store",  # operands in the node's layout
    "atomic",  # everything in one layout, in which no element is held twice if there is room
    "same",  # elementwise, loop-carried: everything in one layout
    "source",  # constants, ranges, splats: made in any layout for free
    "reduce",  # result: the operand's layout without `axis`
    "scan",  # operands and results in one layout, made for prefixes along `axis`
    "view",  # row-major reshape
    "broadcast",  # axes of extent 1 repeat
    "permute",  # axes change places
    "cat",  # threads join what they hold of two tiles along `axis`
    "slice",  # threads pick what they hold, or the tile goes through shared memory
    "insert",  # operands: the slice, and the tile, in whose layout the result is
    "count",  # the operand in any layout: its numbers are counted in shared memory
    "convert",  # explicit change of layout
    "dot",  # operands A, B, C; the result in C's layout
]


@dataclass(frozen=True)
class TileValue:
    """A tile that threads hold together."""

    shape: tuple[int, ...]
    bits: int  # of one element


@dataclass(frozen=True)
class TileNode:
    """An operation on tiles; operands and results are indices of `TileGraph.values`."""

    kind: NodeKind
    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    axis: int | None = None  # of a reduction, a scan, a concatenation
    order: tuple[int, ...] = ()  # of an access: tile axes, contiguous first
    vector: int = 1  # of an access: elements a thread may touch at once
    depth: int = 0  # loops around it
    atom: str = field(default="", kw_only=True)  # of a product: the name of an MMA, or "fma"
    permutation: tuple[int, ...] = ()  # of a permutation: the source's axis per result axis
    by_threads: bool = True  # of an access: False if all layouts of the tile do as well
    in_rows: bool = True  # of an access: False if elements lie where they want along order[0], too
    family: int | None = None  # of a load: of those whose elements are the same, but for `offset`
    offset: tuple[int, ...] = ()  # of a load of a family: elements along each axis


@dataclass(frozen=True)
class TileGraph:
    """All tiles of one function, nodes in program order."""

    values: tuple[TileValue, ...]
    nodes: tuple[TileNode, ...]
    num_warps: int


@dataclass(frozen=True)
class Assignment:
    """A layout for every value, and for every store (by node index) the one it writes from."""

    values: Mapping[int, LinearLayout]
    stores: Mapping[int, LinearLayout] = field(default_factory=dict)


class LayoutStrategy(Protocol):
    """Chooses where each element of each tile lives."""

    name: ClassVar[str]

    def assign(self, graph: TileGraph) -> Assignment:
        """Layouts over 32 lanes and `graph.num_warps` warps that reach every element."""
        ...


def inverse_permutation(permutation: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes `permutation`."""
    return tuple(permutation.index(axis) for axis in range(len(permutation)))


def problem_with(graph: TileGraph, assignment: Assignment) -> str | None:
    """What is illegal about an assignment, or None. Checked before anything is made of it."""
    for index, value in enumerate(graph.values):
        problem = _problem(assignment.values.get(index), value, graph.num_warps)
        if problem:
            return f"tile {index} of shape {list(value.shape)}: {problem}"
    for index, node in enumerate(graph.nodes):
        if node.kind == "store" and node.operands:
            value = graph.values[node.operands[0]]
            problem = _problem(assignment.stores.get(index), value, graph.num_warps)
            if problem:
                return f"'{node.name}' of a tile of shape {list(value.shape)}: {problem}"
    return None


def _problem(layout: LinearLayout | None, value: TileValue, num_warps: int) -> str | None:
    if layout is None:
        return "no layout"
    if layout.shape != value.shape:
        return f"the layout has shape {list(layout.shape)}"
    if not layout.is_surjective:
        return f"the layout does not reach every element: {layout}"
    for space, size in (("lane", 32), ("warp", num_warps)):
        if layout.in_size(space) != size:
            return f"the layout has {layout.in_size(space)} {space}s, not {size}: {layout}"
    if layout.in_size("block") != 1:
        return f"the layout spans several blocks: {layout}"
    return None

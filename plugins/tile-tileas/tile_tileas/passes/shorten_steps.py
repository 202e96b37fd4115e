"""tileas-shorten-steps: loops of products whose tiles are long along K take shorter steps.

    for k in 0 .. ceil(K / 128):                 for k in 0 .. 2 * ceil(K / 128):
        a = A[m, k]     128 x 128                    a = A[m, k]     128 x 64
        b = B[k, n]     128 x 128        =>          b = B[k, n]      64 x 128
        sum = dot(a, b, sum)                         sum = dot(a, b, sum)

A step's tiles are one stage in shared memory. Where few stages fit, copies of one wait for products
of another: as many bytes in more stages are read in part while the rest is on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tile_core.insertion import Before
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_core.target import Target
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.users import operations
from tile_tileas.analysis.views import tiled_view
from tile_tileas.cluster.cutting import cut_type, cut_view
from tile_tileas.few_warps import MANY_WARPS
from tile_tileas.kernel_products import (
    DOT,
    family_for,
    tile_bytes,
)
from tile_tileas.mma.families import FAMILIES, TENSOR
from tile_tileas.sched.facts import is_pure
from tile_tileas.sched.nodes import constant_of
from tile_tileas.storage import storage_bits
from tile_tileas.tile_graph import is_tile, kind_of

_FOR, _LOAD, _WEAK = "scf.for", "nv_tileaa.tiled_load", "weak"
_PERMUTE, _VIEW = "nv_tileaa.permute", "nv_tileaa.view"
_DIVISIONS = ("arith.ceildivsi", "arith.ceildivui")
#: Stages with which a loop's copies hide behind products; where threads meet to turn bytes of each
#: step round, fewer steps are worth one of them. H100 (model), e4m3 by 128 x 128 x 256: 80.2 us
#: with three stages, 86.3 with six of half of it.
_ENOUGH, _ENOUGH_OF_BYTES = 4, 3
#: Elements of a product's sum, at least: with fewer, bytes on the way count, and stages of half as
#: many bytes let two blocks share a multiprocessor, each with half of them. RTX 5090 (model), f16,
#: us: 64 x 64 x 128 of 64 rows 35.7, and 41.4 with shorter steps (but 447.7 and 402.3 of 4096),
#: 16 x 128 x 256 of 16 rows 36.4 and 45.2; 128 x 64 x 128 of 4096 483.9 and 385.9.
_LEAST_ELEMENTS = 128 * 64
#: Bytes of K of a step, at least: the widest row of a tile that tensor maps swizzle.
_LEAST_BYTES = 128
#: Parts of a step, at most.
_MOST_PARTS = 8
#: Bits of an element that instructions take in rows and in columns.
_HALF = 16


@dataclass(frozen=True)
class ShortenSteps(Pass):
    """Cut the steps of loops of one product along K into parts, where shared memory has room for
    few stages: tiles of A and B that are loaded for the product alone, each at the
    place that the loop counts.
    """

    name = "tileas-shorten-steps"
    anchor = "func.func"
    statistics = {"shortened": "loops whose steps became shorter"}

    mma: str = option(
        FAMILIES[0], "the highest kind of instruction that products may run on", choices=FAMILIES
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        loops = [one for one in operations(op.regions[0]) if one.operation.name == _FOR]
        for loop in loops:
            self._shorten(loop, cx)

    def _shorten(self, loop: ir.OpView, cx: PassContext) -> None:
        steps = _Steps.of(loop)
        if steps is None:
            return
        parts = _parts(steps, cx.target.max_shared // self._enough(steps.product, cx.target))
        if parts == 1:
            return
        length = steps.length
        steps.cut(parts)
        cx.count("shortened")
        cx.passed(
            loop.operation,
            "its steps along K are shorter than the program's",
            category="pipeline",
            name="StepsShortened",
            facts={"Elements of K": steps.length, "In the program": length},
        )

    def _enough(self, product: ir.OpView, target: Target) -> int:
        """Stages with which a loop's copies hide behind its products."""
        small = storage_bits(product.operands[1].type.element_type) < _HALF
        by_threads = small and family_for(product, target, self.mma, MANY_WARPS) != TENSOR
        return _ENOUGH_OF_BYTES if by_threads else _ENOUGH


@dataclass(frozen=True)
class _Operand:
    """A tile of a product, as it is loaded, and views of it, each with the axis that K is."""

    load: ir.OpView
    tiles: tuple[tuple[ir.Value, int], ...]


@dataclass(frozen=True)
class _Steps:
    """A loop of one product that may take shorter steps."""

    loop: ir.OpView
    product: ir.OpView
    operands: tuple[_Operand, _Operand]

    @classmethod
    def of(cls, loop: ir.OpView) -> _Steps | None:
        """Those of a loop; None where they must stay."""
        block = loop.regions[0].blocks[0]
        *body, end = block.operations
        products = [op for op in body if op.operation.name == DOT]
        if len(products) != 1 or not _counts_tiles(loop) or len(products[0].operands) != 3:
            return None
        (product,) = products
        if list(end.operands) != [product.results[0]]:
            return None
        found = [_operand(product, at, block.arguments[0]) for at in range(2)]
        a, b = found
        if a is None or b is None or not _does_nothing_else(loop, (a, b)):
            return None
        return cls(loop, product, (a, b))

    @property
    def length(self) -> int:
        """Elements of K of a step."""
        return shape_of(self.product.operands[0])[-1]

    @property
    def stage_bytes(self) -> int:
        """Of the tiles of one step."""
        return sum(tile_bytes(operand.load.results[0]) for operand in self.operands)

    def cut(self, parts: int) -> None:
        """So many times as many turns, each of a part of the length."""
        end = self.loop.operands[1]
        at = Before(self.loop)
        attribute = {"value": ir.IntegerAttr.get(end.type, parts)}
        times = at.create("arith.constant", [], [end.type], attribute).result
        self.loop.operation.operands[1] = at.create("arith.muli", [end, times], [end.type]).result
        for operand in self.operands:
            _, axis = operand.tiles[0]
            operand.load.operation.operands[0] = cut_view(operand.load.operands[0], axis, parts)
            for tile, along in operand.tiles:
                tile.set_type(cut_type(tile.type, along, parts))


def _parts(steps: _Steps, most_bytes: int) -> int:
    """How many parts of a step are each a step of its own, of so many bytes: 1, 2, 4, .."""
    parts, length = 1, steps.length
    bits = min(storage_bits(one.load.results[0].type.element_type) for one in steps.operands)
    if prod(shape_of(steps.product.results[0])) < _LEAST_ELEMENTS:
        return 1
    while (
        steps.stage_bytes // parts > most_bytes
        and parts < _MOST_PARTS
        and length // parts % 2 == 0
        and length // parts * bits // 8 >= 2 * _LEAST_BYTES
    ):
        parts *= 2
    return parts


def _counts_tiles(loop: ir.OpView) -> bool:
    """Whether a loop counts from zero, by one, to a number of tiles that is small enough for each
    to be cut into `_MOST_PARTS`.
    """
    first, last, step = list(loop.operands)[:3]
    if constant_of(first) != 0 or constant_of(step) != 1 or isinstance(last.owner, ir.Block):
        return False
    if not isinstance(last.type, ir.IntegerType):
        return False
    if last.owner.name in _DIVISIONS:
        return (constant_of(last.owner.operands[1]) or 0) >= 4 * _MOST_PARTS
    known = constant_of(last)
    return known is not None and known * 2 * _MOST_PARTS < 1 << last.type.width


def _operand(product: ir.OpView, number: int, counter: ir.Value) -> _Operand | None:
    """Operand A or B of a product, if it is loaded where the `counter` says, for it alone."""
    rank = len(shape_of(product.operands[number]))
    tiles = [(product.operands[number], rank - 1 if number == 0 else rank - 2)]
    while True:
        tile, axis = tiles[-1]
        made = tile.owner
        if isinstance(made, ir.Block) or len(list(tile.uses)) != 1:
            return None
        if made.name == _LOAD:
            found = _Operand(made.opview, tuple(reversed(tiles)))
            return found if _is_at(found.load, axis, counter) else None
        before = _before(made.opview, axis)
        if before is None:
            return None
        tiles.append((made.operands[0], before))


def _before(op: ir.OpView, axis: int) -> int | None:
    """Which axis of its only operand, a tile, becomes `axis` of what an operation gives."""
    if len(op.operands) != 1 or len(op.results) != 1 or not is_tile(op.operands[0]):
        return None
    if op.operation.name == _PERMUTE:
        return list(ir.DenseI32ArrayAttr(op.attributes["permutation"]))[axis]
    if op.operation.name == _VIEW:
        return _before_view(shape_of(op.operands[0]), shape_of(op.results[0]), axis)
    return axis if kind_of(op) == "same" else None


def _before_view(source: Sequence[int], result: Sequence[int], axis: int) -> int | None:
    """Axes are the same but for those of one element."""
    longer = [at for at, extent in enumerate(source) if extent > 1]
    there = [at for at, extent in enumerate(result) if extent > 1]
    if [source[at] for at in longer] != [result[at] for at in there] or axis not in there:
        return None
    return longer[there.index(axis)]


def _is_at(load: ir.OpView, axis: int, counter: ir.Value) -> bool:
    """Whether a load has tile number `counter` along `axis`, of a grid of tiles, and only there."""
    if ir.StringAttr(load.attributes["mem_semantic"]).value != _WEAK:
        return False
    view = tiled_view(load.operands[0])
    if not view.is_grid or view.tile != tuple(shape_of(load.results[0])):
        return False
    places = list(load.operands)[1 : 1 + len(view.tile)]
    return places[axis] == counter and places.count(counter) == 1


def _does_nothing_else(loop: ir.OpView, operands: tuple[_Operand, _Operand]) -> bool:
    """Whether a loop's body may run twice as often: it has no effects but its loads, of which
    nobody asks when they were made, and only they ask for the counter.
    """
    block = loop.regions[0].blocks[0]
    loads = [operand.load.operation for operand in operands]
    if any(use.owner.operation not in loads for use in block.arguments[0].uses):
        return False
    if any(len(list(result.uses)) for load in loads for result in list(load.results)[1:]):
        return False
    rest = [op for op in list(block.operations)[:-1] if op.operation not in loads]
    return all(_may_repeat(op) for op in rest)


def _may_repeat(op: ir.OpView) -> bool:
    return op.operation.name == DOT or is_pure(op)

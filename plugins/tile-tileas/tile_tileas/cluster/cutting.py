"""Rewriting a kernel for one block of a cluster: tiles become the block's part of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tile_tileaa.dialect.base import TiledViewType

from tile_core.insertion import Before
from tile_core.mlir import ir
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.views import PARTS_OF, maker, tiled_view
from tile_tileas.cluster.relations import ONCE
from tile_tileas.dialect.cluster import ORDERS_ACCESSES

#: Attribute of loads whose tile every block of the cluster has whole, where one can copy to all.
IN_ALL_CTAS = "in_all_ctas"

_LOADS = ("nv_tileaa.load", "nv_tileaa.tiled_load")
_STORES = ("nv_tileaa.store", "nv_tileaa.tiled_store")
_TILED = ("nv_tileaa.tiled_load", "nv_tileaa.tiled_store")
_RANK, _MEETING, _IF = "nv_tileas.cta_rank", "nv_tileas.cluster_sync", "scf.if"
_EQ, _ULT = 0, 6  # arith.CmpIPredicate


class Cutting:
    """Cuts the tiles of `func` over `parts` blocks: `axes` has those that are cut. Blocks meet
    before the accesses `meet`. With `multicast` loads that are left whole are marked: blocks may
    bring such tiles to one another. A kernel that is cut for some blocks `before` is cut for
    `parts` as many. `rank` says which part is meant, where it is not that of a block of a cluster.
    """

    def __init__(
        self,
        func: ir.Operation,
        axes: Mapping[ir.Value, int],
        parts: int,
        meet: Sequence[ir.OpView] = (),
        *,
        multicast: bool = True,
        before: int = 1,
        rank: ir.Value | None = None,
    ) -> None:
        self._axes, self._parts, self._meet = dict(axes), parts, meet
        self._multicast = multicast
        self._views: dict[tuple[ir.Value, int], ir.Value] = {}
        first = func.regions[0].blocks[0].operations[0]
        i32 = ir.IntegerType.get_signless(32)
        at = Before(first)
        self._rank = rank or at.create(_RANK, [], [i32]).result
        if rank is None and (before > 1 or not multicast):
            shifted = at.with_constant("shrui", self._rank, before.bit_length() - 1)
            self._rank = at.with_constant("andi", shifted, parts - 1)
        self._ops = list(operations(func.regions[0]))

    def run(self) -> int:
        """Rewrite everything; how many loads are left whole."""
        whole = 0
        for op in self._meet:
            _meet_before(_taken_by_all(op))
        for value, axis in list(self._axes.items()):
            value.set_type(cut_type(value.type, axis, self._parts))
        for op in self._ops:
            name = op.operation.name
            if name == "arith.constant":
                self._constant(op)
            elif name == "nv_tileaa.make_range":
                self._range(op)
            elif name in _TILED:
                self._tiled(op)
            elif name == "nv_tileaa.assume" and op.results[0] in self._axes:
                op.results[0].replace_all_uses_with(op.operands[0])  # it was said of the whole
                op.operation.erase()
                continue
            if name in _LOADS and op.results[0] not in self._axes and shape_of(op.results[0]):
                if self._multicast:
                    op.attributes[IN_ALL_CTAS] = ir.UnitAttr.get()
                whole += 1
            if name in ONCE or (name in _STORES and not self._is_cut(op)):
                self._once(op)
        return whole

    def _is_cut(self, op: ir.OpView) -> bool:
        return any(value in self._axes for value in op.operands)

    def _once(self, op: ir.OpView) -> None:
        """Under a branch that the first block takes; memory is ordered as it was before."""
        at = Before(op)
        predicate = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _EQ)}
        leads = at.create("arith.cmpi", [self._rank, at.constant(0)], [at.i1], predicate).result
        branch = at.create(_IF, [leads], [result.type for result in op.results], regions=2)
        for old, new in zip(op.results, branch.results, strict=True):
            old.replace_all_uses_with(new)
        op.operation.detach_from_parent()
        inside, outside = (region.blocks.append() for region in branch.regions)
        with op.location:
            ir.InsertionPoint(inside).insert(op)
            for block, values in ((inside, list(op.results)), (outside, None)):
                end = ir.InsertionPoint(block)
                if values is None:
                    values = [
                        ir.Operation.create(
                            "nv_tileaa.create_mem_token", results=[result.type], ip=end
                        ).result
                        for result in op.results
                    ]
                ir.Operation.create("scf.yield", operands=values, ip=end)

    def _constant(self, op: ir.OpView) -> None:
        result = op.results[0]
        if result in self._axes:
            held = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
            op.attributes["value"] = ir.DenseElementsAttr.get_splat(result.type, held)

    def _range(self, op: ir.OpView) -> None:
        """The numbers of the block's part."""
        result = op.results[0]
        if result not in self._axes:
            return
        block = op.operation.block
        following = list(block.operations)[list(block.operations).index(op) + 1]
        at, element = Before(following), result.type.element_type
        start = at.with_constant("muli", self._rank, result.type.shape[0])
        if element.width != 32:
            name = "arith.extsi" if element.width > 32 else "arith.trunci"
            start = at.create(name, [start], [element]).result
        starts = at.create("nv_tileaa.splat", [start], [result.type]).result
        moved = at.create("arith.addi", [result, starts], [result.type])
        result.replace_all_uses_except(moved.result, moved)
        self._axes[moved.result] = 0

    # -- views --------------------------------------------------------------------------------

    def _tiled(self, op: ir.OpView) -> None:
        """The access of the block's part, of a view with tiles of that size."""
        stored = op.operation.name.endswith("store")
        axis = self._axes.get(op.value if stored else op.results[0])
        if axis is None:
            return
        operands = list(op.operands)
        first = 2 if stored else 1
        view, old = tiled_view(op.view), op.view
        op.operation.operands[0] = self._view(old, axis)
        ratio = view.steps[axis] // (view.tile[axis] // self._parts)
        at = Before(op)
        op.operation.operands[first + axis] = self._index(at, operands[first + axis], ratio)

    def _view(self, old: ir.Value, axis: int) -> ir.Value:
        if (old, axis) not in self._views:
            self._views[old, axis] = cut_view(old, axis, self._parts)
        return self._views[old, axis]

    def _index(self, at: Before, index: ir.Value, ratio: int) -> ir.Value:
        """Which tile of the cut view the block's part of tile `index` is. Tiles that are outside
        of any view are tile -1: those before the first, and those whose number would wrap around.
        """
        type_, width = index.type, index.type.width

        def number(value: int) -> ir.Value:
            attribute = {"value": ir.IntegerAttr.get(type_, value)}
            return at.create("arith.constant", [], [type_], attribute).result

        rank = self._rank
        if width != 32:
            rank = at.create(
                "arith.extsi" if width > 32 else "arith.trunci", [rank], [type_]
            ).result
        scaled = at.create("arith.muli", [index, number(ratio)], [type_]).result
        place = at.create("arith.addi", [scaled, rank], [type_]).result
        predicate = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _ULT)}
        end = number((1 << (width - 1)) // ratio)
        inside = at.create("arith.cmpi", [index, end], [at.i1], predicate).result
        return at.create("arith.select", [inside, place, number(-1)], [type_]).result


def cut_view(view: ir.Value, axis: int, parts: int) -> ir.Value:
    """The same view with its tiles cut along `axis` into so many parts, each a tile."""
    source, tile, dim_map, padding = view.type.params
    extents = list(ir.DenseI32ArrayAttr(tile))
    extents[axis] //= parts
    steps = list(tiled_view(view).steps)
    steps[axis] = extents[axis]
    made = maker(view)
    type_ = TiledViewType.get(source, ir.DenseI32ArrayAttr.get(extents), dim_map, padding)
    parts_of = list(tiled_view(view).parts_of)
    attributes: dict[str, ir.Attribute] = {PARTS_OF: ir.DenseI32ArrayAttr.get(parts_of)}
    if steps != extents:
        attributes["steps"] = ir.DenseI32ArrayAttr.get(steps)
    at = Before(made.opview if isinstance(made, ir.Operation) else made)
    return at.create("nv_tileaa.block_tile", list(made.operands), [type_], attributes).result


def cut_type(type_: ir.Type, axis: int, parts: int) -> ir.Type:
    """The type of a tile's part."""
    shape = list(type_.shape)
    shape[axis] //= parts
    return ir.RankedTensorType.get(shape, type_.element_type, type_.encoding)


def _taken_by_all(op: ir.OpView) -> ir.OpView:
    """`op`, or the outermost of the branches around it that one block alone takes, as of stores of
    tiles that were whole when the kernel was cut before.
    """
    parent = op.operation.parent
    while parent is not None and parent.name == _IF and _is_of_rank(parent.operands[0]):
        op, parent = parent.opview, parent.operation.parent
    return op


def _is_of_rank(value: ir.Value) -> bool:
    """Whether a number is computed from the block's rank, by constants."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    shifts = owner.name.startswith("arith.") and len(owner.operands) > 0
    return owner.name == _RANK or (shifts and _is_of_rank(owner.operands[0]))


def _meet_before(op: ir.OpView) -> None:
    """Let the blocks of the cluster meet there, unless they do anyway."""
    ops = [one.operation for one in op.operation.block.operations]
    before = ops[: ops.index(op.operation)]
    while before and before[-1].name.startswith("arith."):
        before.pop()
    if not before or before[-1].name != _MEETING:
        unit = {ORDERS_ACCESSES: ir.UnitAttr.get()}
        Before(op).create(_MEETING, attributes=unit)


def operations(region: ir.Region) -> Iterator[ir.OpView]:
    """Operations of a function and of its control flow, in program order; not those of folds."""
    for block in region.blocks:
        for op in list(block.operations):
            yield op
            if op.operation.name.startswith("scf."):
                for inner in op.regions:
                    yield from operations(inner)

"""tileas-store-in-slices: sums of tensor memory leave it, and the block, a slice at a time.

    all of it is read; all is rounded; all is staged; threads meet; copies of its boxes begin

becomes, for each box:

    its part is read, rounded, staged; threads meet; its copy begins

so that the copy engine works from the first slice on, and threads hold one slice and not all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tile_cute.atoms.records import SHARED, TENSOR
from tile_cute.linear import LinearLayout, subtile

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.access import MAY_LEAVE_IN_SLICES, AccessPlan
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.buffers import ALLOC, stage_bytes
from tile_tileas.analysis.views import tiled_view
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.dialect.buffers import Buffer, async_token
from tile_tileas.dialect.fields import operands_of
from tile_tileas.dialect.tensor import GIVES_BACK, column_of
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.pipelining.multistage import PIPELINED, is_inside_loop
from tile_tileas.pipelining.opaque import everywhere, given_alone
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import storage_bits
from tile_tileas.tma.copies import TileCopy
from tile_tileas.tma.refusals import innermost
from tile_tileas.tma.slices import (
    IN_SLICES,
    READ_FIRST,
    Leaving,
    chain_of_value,
    fitted,
    is_cut_by,
    is_splat,
    is_undisturbed,
    of_axes,
    source_of,
    staged,
)
from tile_tileas.tma.staging import staged_layout

_IF, _COMMIT = "scf.if", "nv_tileas.async_commit_group"
#: Slices that are staged at once of a tile that threads would store, at most.
_AT_ONCE = 8


@dataclass(frozen=True)
class StoreInSlices(Pass):
    """Cut what stands between tensor memory and a tile's store by tensor maps into the boxes of the
    store, where it works on each element by itself.
    """

    name = "tileas-store-in-slices"
    anchor = "func.func"
    statistics = {"tiles": "tiles that leave in slices", "slices": "slices of those"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        found = [tile for copy in list(staged(op)) if (tile := Leaving.of(copy)) is not None]
        cut = [(tile, 0) for tile in found if _pays(tile)]
        cut += _by_threads(op, cx)
        for tile, several in cut:
            _cut(tile, several)
            cx.count("tiles")
            cx.count("slices", len(tile.boxes))


# -- tiles that threads would store ----------------------------------------------------------------


def _by_threads(func: ir.Operation, cx: PassContext) -> list[tuple[Leaving, int]]:
    """Tiles that are stored by tensor maps in slices alone, staged as a whole for now, and for how
    many slices there is memory: that of stages which nobody needs any more.
    """
    found: list[tuple[Leaving, int]] = []
    block = func.regions[0].blocks[0]
    for op in [op for op in block.operations if MAY_LEAVE_IN_SLICES in op.attributes]:
        plan = AccessPlan.of(op)
        assert plan is not None, "planned so"
        chain, read = chain_of_value(op.value, op)
        copied = _copy_of(op, plan, cx.analysis(BoundsAnalysis, func))
        if copied is None or read is None or (source := source_of(read)) is None:
            continue
        copy, layout = copied
        memory, layouts = Buffer.of(source.type), [read, *chain]
        assert memory is not None
        assert memory.layout is not None, "buffers in tensor memory are made with their layouts"
        held = [layout_of(one.results[0].type) for one in layouts]
        extents = copy.boxes.extents
        size = prod(extents) * storage_bits(op.value.type.element_type) // 8
        several = min(_free_bytes(block, op) // size, len(copy.boxes.origins), _AT_ONCE)
        if several < 2 or not is_undisturbed(read, op):
            continue
        if is_cut_by(of_axes(extents, op.value), held, memory.layout):
            tile = Leaving.of(_stage(op, copy, layout))
            assert tile is not None, "as was found"
            found.append((tile, several))
    return found


def _copy_of(
    op: ir.OpView, plan: AccessPlan, bounds: BoundsAnalysis
) -> tuple[TileCopy, LinearLayout] | None:
    """Copies of the tile that `op` stores, from a buffer in which it lies so."""
    inner = innermost(tiled_view(op.view))
    if inner is None:
        return None
    fast = tiled_view(op.view).dim_map.index(inner)
    order = [fast, *(axis for axis in plan.order if axis != fast)]
    tile = ir.RankedTensorType(op.value.type)
    layout = staged_layout(tuple(tile.shape), order, storage_bits(tile.element_type))
    copy = TileCopy.of(
        op, Buffer(ir.RankedTensorType(distributed(tile, layout)), SHARED, 1), bounds
    )
    return None if isinstance(copy, str) else (copy, layout)


def _free_bytes(block: ir.Block, op: ir.OpView) -> int:
    """Bytes of stages of loops that nothing behind `op`, or in it, works on."""
    ops = [one.operation for one in block.operations]
    behind, free = ops[ops.index(op.operation) :], 0
    for alloc in (one for one in ops if one.name == ALLOC and PIPELINED in one.attributes):
        buffer = Buffer.of(alloc.results[0].type)
        assert buffer is not None, "verified"
        if not any(_works_on(one, alloc.results[0]) for one in behind):
            free += stage_bytes(buffer) * buffer.stages
    return free


def _works_on(op: ir.Operation, value: ir.Value) -> bool:
    return any(_is_or_holds(op, use.owner.operation) for use in value.uses)


def _is_or_holds(op: ir.Operation, inner: ir.Operation | None) -> bool:
    while inner is not None and inner != op:
        parent = inner.parent
        inner = None if parent is None else parent.operation
    return inner is not None


def _stage(op: ir.OpView, copy: TileCopy, layout: LinearLayout) -> ir.OpView:
    """Let tensor maps store a tile; the copy that stages it."""
    at, cx = Writer(op.location), Exchange(op)
    at.move(ir.InsertionPoint(op))
    buffer = cx.buffer(ir.RankedTensorType(op.value.type), layout, alignment=copy.boxes.alignment)
    staged = cx.store(op.value, buffer)
    stores = copy.store(at, op.view, list(op.coords), buffer, operands_of(op, "token"))
    group = {"group": ir.StringAttr.get("bulk")}
    at.create(_COMMIT, [store.results[0] for store in stores], [async_token()], group)
    tokens = [store.results[1] for store in stores]
    joined = at.create("nv_tileaa.join_mem_token", tokens, [tokens[0].type]).result
    op.results[0].replace_all_uses_with(joined)
    op.operation.erase()
    return staged.opview


def _pays(tile: Leaving) -> bool:
    """Whether the copy engine's early start is worth a meeting for each slice: not in loops, where
    all threads begin the next tile together behind the last slice, unless agents go on meanwhile.
    """
    return not is_inside_loop(tile.copy) or bool(_said_behind(tile))


# -- cutting ---------------------------------------------------------------------------------------


def _cut(tile: Leaving, several: int = 0) -> None:
    """`several`: memory for so many slices; 0 for all, or for what is stored meanwhile."""
    alloc, last = tile.copy.operands[1].owner, tile.boxes[-1]
    said = _said_behind(tile)
    early = any(READ_FIRST in op.attributes for op in said)
    # All slices have memory of their own, so that none waits for the copies of another one; unless
    # nobody waits for those either.
    first = Exchange(alloc)
    if not several:
        spare = (op.attributes[IN_SLICES] for op in said if IN_SLICES in op.attributes)
        several = next((ir.IntegerAttr(one).value for one in spare), len(tile.boxes))
    attributes = {"alignment": alloc.attributes["alignment"]}
    types = [box.view.results[0].type for box in tile.boxes[:several]]
    buffers = [first.create(ALLOC, [], [type_], attributes).result for type_ in types]
    for number, box in enumerate(tile.boxes):
        at, buffer = Exchange(box.store), buffers[number % several]
        origin = of_axes(box.origin, tile.copy.operands[0])
        value = _part(at, tile, origin) if early else _read(at, tile, origin)
        if box is last and not early:
            for op in said:
                at.put(op)
        for op in reversed(tile.chain):
            value = _on_slice(at, op, value, tile.shape)
        at.store(value, buffer)
        box.view.results[0].replace_all_uses_with(buffer)
        box.view.operation.erase()
        if box is not last and number % several == several - 1:
            _commit(box.store)
    for op in (tile.copy, *tile.chain, *([] if early else [tile.read])):
        op.operation.erase()
    alloc.operation.erase()


def _commit(store: ir.OpView) -> None:
    """End a group of copies behind this one, as the memory that they leave is used again: who waits
    for them waits for groups that have ended.
    """
    group = {"group": ir.StringAttr.get("bulk")}
    begun = [store.results[0]]
    Exchange(store, behind=True).create(_COMMIT, begun, [async_token()], group)


def _said_behind(tile: Leaving) -> list[ir.Operation]:
    """What says that all has been read, behind that."""
    ops = [op.operation for op in tile.copy.operation.block.operations]
    between = ops[ops.index(tile.read.operation) : ops.index(tile.boxes[-1].store.operation)]
    return [op for op in between if GIVES_BACK in op.attributes]


def _part(at: Exchange, tile: Leaving, origin: Sequence[int]) -> ir.Value:
    """The slice that begins at `origin`, of all that threads hold."""
    whole = tile.read.results[0]
    type_ = _sliced(whole, tile.shape)
    first = fitted(origin, whole.type.shape)
    places = [
        at.index(begin // extent if width > 1 else 0)
        for begin, extent, width in zip(first, type_.shape, whole.type.shape, strict=True)
    ]
    return at.create("nv_tileas.extract_slice", [whole, *places], [type_]).result


def _read(at: Exchange, tile: Leaving, origin: Sequence[int]) -> ir.Value:
    """The slice that begins at `origin`, as threads hold it."""
    buffer, memory, type_ = tile.buffer, tile.memory, _sliced(tile.read.results[0], tile.shape)
    whole = Buffer.of(buffer.type)
    assert whole is not None
    assert whole.layout is not None
    assert memory is not None, "it can be cut"
    plain = ir.RankedTensorType.get(list(memory.shape), whole.tile.element_type)
    held = ir.RankedTensorType(distributed(plain, memory))
    column = at.index(column_of(whole.layout, origin))
    view = at.create("nv_tileas.tmem_view", [buffer, column], [Buffer(held, TENSOR, 1).type]).result
    if tile.read.operation.name != _IF:
        return at.load(view, type_)
    branch = at.create(_IF, [tile.read.operands[0]], [type_], regions=2)
    then, other = (region.blocks.append() for region in branch.regions)
    inside = Exchange(branch).within(then)
    inside.create("scf.yield", [inside.load(view, type_)])
    number = given_alone(tile.read.regions[1].blocks[0])
    assert number is not None, "it can be cut"
    inside = Exchange(branch).within(other)
    inside.create("scf.yield", [everywhere(inside, number, type_)])
    return branch.results[0]


def _on_slice(at: Exchange, op: ir.OpView, value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """What an operation makes of the slice `value`."""
    operands = [_constant(at, one, shape) if is_splat(one) else value for one in op.operands]
    attributes = {name: op.attributes[name] for name in op.attributes}
    return at.create(
        op.operation.name, operands, [_sliced(op.results[0], shape)], attributes
    ).result


def _constant(at: Exchange, value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A slice of a constant that is the same everywhere."""
    owner = value.owner
    assert not isinstance(owner, ir.Block), "a constant"
    whole = ir.DenseElementsAttr(owner.attributes["value"])
    type_ = _sliced(value, shape)
    same = {"value": ir.DenseElementsAttr.get_splat(type_, whole.get_splat_value())}
    return at.create("arith.constant", [], [type_], same).result


def _sliced(value: ir.Value, shape: Sequence[int]) -> ir.Type:
    """The type of a slice of a tile."""
    layout, element = layout_of(value.type), value.type.element_type
    assert layout is not None, "it can be cut"
    part = subtile(layout, fitted(shape, layout.shape))
    assert part is not None, "it can be cut"
    return distributed(ir.RankedTensorType.get(list(part.shape), element), part)

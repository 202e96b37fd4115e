"""tileas-store-in-slices: sums of tensor memory leave it, and the block, a slice at a time.

    all of it is read; all is rounded; all is staged; threads meet; copies of its boxes begin

becomes, for each box:

    its part is read, rounded, staged; threads meet; its copy begins

so that the copy engine works from the first slice on, and threads hold one slice and not all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tile_cute.atoms.records import SHARED, TENSOR
from tile_cute.atoms.tensor_access import tensor_access
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout, subtile

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.access import MAY_LEAVE_IN_SLICES, AccessPlan
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.buffers import ALLOC, stage_bytes
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.analysis.views import tiled_view
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.dialect.buffers import Buffer, async_token
from tile_tileas.dialect.fields import operands_of
from tile_tileas.dialect.tensor import GIVES_BACK, UMMA, column_of, column_slice
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.pipelining.multistage import PIPELINED
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import storage_bits
from tile_tileas.tile_graph import kind_of, only_computes
from tile_tileas.tma.copies import TileCopy
from tile_tileas.tma.refusals import innermost
from tile_tileas.tma.staging import staged_layout

_COPY, _VIEW, _IF = "nv_tileas.copy", "nv_tileas.buffer_view", "scf.if"
#: Slices that are staged at once of a tile that threads would store, at most.
_AT_ONCE = 8
_RESHAPED, _NAMED_ANEW = "nv_tileas.view", "nv_tileas.buffer_reinterpret"
_STORE, _COMMIT = "nv_tileas.async_tiled_tma_store", "nv_tileas.async_commit_group"
#: Slices that are staged at once where others are stored while the next product is made anyway.
IN_TURN = 2
#: Attribute of what says that an accumulator has been read: it is staged in so many slices.
IN_SLICES = "in_slices"


@dataclass(frozen=True)
class StoreInSlices(Pass):
    """Cut what stands between tensor memory and a tile's store by tensor maps into the boxes of the
    store, where it works on each element by itself.
    """

    name = "tileas-store-in-slices"
    anchor = "func.func"
    statistics = {"tiles": "tiles that leave in slices", "slices": "slices of those"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        cut = [(found, 0) for copy in list(_staged(op)) if (found := _Tile.of(copy)) is not None]
        cut += _by_threads(op, cx)
        for tile, several in cut:
            _cut(tile, several)
            cx.count("tiles")
            cx.count("slices", len(tile.boxes))


def _staged(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    """Copies of tiles into buffers of shared memory that are made for them."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _staged(inner)
            yield from _staged_in(block)


def _staged_in(block: ir.Block) -> Iterator[ir.OpView]:
    for op in block.operations:
        if op.operation.name == _COPY and not len(op.results):
            buffer = Buffer.of(op.operands[1].type)
            if buffer is not None and buffer.space == SHARED:
                yield op


@dataclass(frozen=True)
class _Box:
    """A part of the staged tile that one copy stores: the view of it, and where it begins."""

    view: ir.OpView
    store: ir.OpView
    origin: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        buffer = Buffer.of(self.view.results[0].type)
        assert buffer is not None, "verified"
        return tuple(buffer.shape)


@dataclass(frozen=True)
class _Tile:
    """A tile on its way from tensor memory to memory.

    Attributes:
        copy: what stages it.
        chain: what computes it from what is read, the last operation first.
        read: the copy from tensor memory, or the branch in which it stands.
        boxes: what is stored, in program order.
        shape: of each box, along axes of more than one element.
    """

    copy: ir.OpView
    chain: tuple[ir.OpView, ...]
    read: ir.OpView
    boxes: tuple[_Box, ...]
    shape: tuple[int, ...]

    @staticmethod
    def of(copy: ir.OpView) -> _Tile | None:
        """The tile that `copy` stages, if it can be cut."""
        boxes, (chain, op) = _boxes_of(copy), _chain_of(copy)
        if not boxes or op is None or _source(op) is None:
            return None
        shape = _of_axes(boxes[0].shape, copy.operands[0])
        tile = _Tile(copy, tuple(chain), op, tuple(boxes), shape)
        last = boxes[-1].store
        return tile if tile._can_be_cut() and _is_undisturbed(op, last) else None

    @property
    def buffer(self) -> ir.Value:
        """What is read in tensor memory."""
        source = _source(self.read)
        assert source is not None, "found by it"
        return source

    def _can_be_cut(self) -> bool:
        """Whether each thread has its own part of a slice, and reads that by itself."""
        layouts = [layout_of(op.results[0].type) for op in (self.read, *self.chain)]
        buffer = Buffer.of(self.buffer.type)
        assert buffer is not None
        assert buffer.layout is not None, "buffers in tensor memory are made with their layouts"
        return _is_cut_by(self.shape, layouts, buffer.layout)

    @property
    def memory(self) -> LinearLayout | None:
        """How a slice lies in tensor memory."""
        buffer = Buffer.of(self.buffer.type)
        assert buffer is not None
        assert buffer.layout is not None, "buffers in tensor memory are made with their layouts"
        return column_slice(buffer.layout, _fitted(self.shape, buffer.layout.shape))


def _chain_of(copy: ir.OpView) -> tuple[list[ir.OpView], ir.OpView | None]:
    """What computes the tile that `copy` stages, element by element, the last operation first; and
    what gives that what it begins with.
    """
    return _chain_of_value(copy.operands[0], copy)


def _chain_of_value(value: ir.Value, user: ir.OpView) -> tuple[list[ir.OpView], ir.OpView | None]:
    """The same of a tile that `user` alone uses."""
    chain: list[ir.OpView] = []
    op = _maker(value, user)
    while op is not None and (_is_elementwise(op) or _adds_axes(op)):
        chain.append(op)
        wide = [value for value in op.operands if not _is_splat(value)]
        op = _maker(wide[0], op) if len(wide) == 1 else None
    return chain, op


def spared_by_slices(sums: ir.Value, memory: LinearLayout) -> int:
    """Bytes of shared memory that are not needed if a tile is staged in `IN_TURN` slices, one after
    the other: what is stored of `sums`, a loop's result, which will lie in tensor memory as
    `memory` says. 0 if it cannot be cut.
    """
    loop = sums.owner
    assert not isinstance(loop, ir.Block), "a loop's result"
    for copy in _staged_in(loop.operation.block):
        boxes, (chain, op) = _boxes_of(copy), _chain_of(copy)
        if op is None or op.operation != loop.operation or len(boxes) <= IN_TURN:
            continue
        layouts = [layout_of(value.type) for value in (sums, *(one.results[0] for one in chain))]
        if _is_cut_by(_of_axes(boxes[0].shape, copy.operands[0]), layouts, memory):
            buffer = Buffer.of(boxes[0].view.results[0].type)
            assert buffer is not None, "verified"
            return (len(boxes) - IN_TURN) * stage_bytes(buffer)
    return 0


def _is_cut_by(
    shape: Sequence[int], layouts: Sequence[LinearLayout | None], memory: LinearLayout
) -> bool:
    """Whether each thread has its own part of a slice of each tile, and reads that by itself."""
    slice_ = column_slice(memory, _fitted(shape, memory.shape))
    try:
        parts = [one and subtile(one, _fitted(shape, one.shape)) for one in layouts]
        if None in parts or parts[0] is None or slice_ is None:
            return False
        tensor_access(parts[0], slice_)
    except LayoutError:
        return False
    return True


def _is_undisturbed(read: ir.OpView, last: ir.OpView) -> bool:
    """Whether what is read is still there when the last slice is stored."""
    ops = [op.operation for op in read.operation.block.operations]
    between = ops[ops.index(read.operation) + 1 : ops.index(last.operation)]
    return not any(_writes_tensor_memory(op) for op in between)


def _boxes_of(copy: ir.OpView) -> list[_Box]:
    """What is stored of the tile that `copy` stages, if that is all that the buffer is for and
    there are several of them.
    """
    alloc = copy.operands[1].owner
    if isinstance(alloc, ir.Block) or alloc.operation.name != ALLOC:
        return []
    views = [use.owner for use in copy.operands[1].uses if use.owner.operation != copy.operation]
    found = [_box_of(view.opview if isinstance(view, ir.Operation) else view) for view in views]
    boxes = [box for box in found if box is not None]
    block = copy.operation.block
    if len(boxes) != len(found) or len(boxes) < 2:
        return []
    if any(op.operation.block != block for box in boxes for op in (box.view, box.store)):
        return []
    ops = [op.operation for op in block.operations]
    return sorted(boxes, key=lambda box: ops.index(box.store.operation))


def _box_of(view: ir.OpView) -> _Box | None:
    """The box that a view of the buffer is, if it is stored from there and nothing else."""
    if view.operation.name != _VIEW or len(view.operands) < 3:
        return None
    places = [splat_integer(value) for value in list(view.operands)[2:]]
    uses = [use.owner for use in view.results[0].uses]
    if len(uses) == 1 and uses[0].operation.name == _NAMED_ANEW:
        uses = [use.owner for use in uses[0].results[0].uses]
    if len(uses) != 1 or uses[0].operation.name != _STORE:
        return None
    buffer = Buffer.of(view.results[0].type)
    assert buffer is not None, "verified"
    origin: list[int] = []
    for place, extent in zip(places, buffer.shape, strict=True):
        if place is None:
            return None
        origin.append(place * extent)
    store = uses[0].opview if isinstance(uses[0], ir.Operation) else uses[0]
    return _Box(view, store, tuple(origin))


def _maker(value: ir.Value, user: ir.OpView) -> ir.OpView | None:
    """What makes a tile in the block of its only user."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.block != user.operation.block:
        return None
    if len(list(value.uses)) != 1 or len(owner.results) != 1:
        return None
    return owner.opview if isinstance(owner, ir.Operation) else owner


def _is_elementwise(op: ir.OpView) -> bool:
    return kind_of(op) == "same" and is_pure(op) and only_computes(op) and not len(op.regions)


def _adds_axes(op: ir.OpView) -> bool:
    """Whether an operation only adds or drops axes of one element."""
    if op.operation.name != _RESHAPED:
        return False
    before, after = op.operands[0], op.results[0]
    return _of_axes(before.type.shape, before) == _of_axes(after.type.shape, after)


def _is_splat(value: ir.Value) -> bool:
    """Whether a tile is the same constant everywhere."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    attribute = owner.attributes["value"]
    return isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat


def _source(op: ir.OpView) -> ir.Value | None:
    """The buffer in tensor memory that is read: by a copy, or in a branch that does nothing else
    and gives a constant otherwise.
    """
    if op.operation.name == _IF:
        inner = list(op.regions[0].blocks[0].operations)
        other = list(op.regions[1].blocks[0].operations)
        if len(inner) != 2 or len(other) != 1 or not _is_splat(other[0].operands[0]):
            return None
        copy = inner[0]
        return _source(copy) if copy.operation.name == _COPY else None
    if op.operation.name != _COPY or not len(op.results):
        return None
    buffer = Buffer.of(op.operands[0].type)
    return op.operands[0] if buffer is not None and buffer.space == TENSOR else None


def _writes_tensor_memory(op: ir.Operation | ir.OpView) -> bool:
    """Whether an operation, or one inside of it, may change what lies there."""
    if op.operation.name in UMMA:
        return True
    if op.operation.name == _COPY and not len(op.results):
        buffer = Buffer.of(op.operands[1].type)
        return buffer is not None and buffer.space == TENSOR
    return any(
        _writes_tensor_memory(inner)
        for region in op.regions
        for block in region.blocks
        for inner in block.operations
    )


# -- tiles that threads would store ----------------------------------------------------------------


def _by_threads(func: ir.Operation, cx: PassContext) -> list[tuple[_Tile, int]]:
    """Tiles that are stored by tensor maps in slices alone, staged as a whole for now, and for how
    many slices there is memory: that of stages which nobody needs any more.
    """
    found: list[tuple[_Tile, int]] = []
    block = func.regions[0].blocks[0]
    for op in [op for op in block.operations if MAY_LEAVE_IN_SLICES in op.attributes]:
        plan = AccessPlan.of(op)
        assert plan is not None, "planned so"
        chain, read = _chain_of_value(op.value, op)
        copied = _copy_of(op, plan, cx.analysis(BoundsAnalysis, func))
        if copied is None or read is None or (source := _source(read)) is None:
            continue
        copy, layout = copied
        memory, layouts = Buffer.of(source.type), [read, *chain]
        assert memory is not None
        assert memory.layout is not None, "buffers in tensor memory are made with their layouts"
        held = [layout_of(one.results[0].type) for one in layouts]
        extents = copy.boxes.extents
        size = prod(extents) * storage_bits(op.value.type.element_type) // 8
        several = min(_free_bytes(block, op) // size, len(copy.boxes.origins), _AT_ONCE)
        if several < 2 or not _is_undisturbed(read, op):
            continue
        if _is_cut_by(_of_axes(extents, op.value), held, memory.layout):
            tile = _Tile.of(_stage(op, copy, layout))
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


# -- cutting ---------------------------------------------------------------------------------------


def _cut(tile: _Tile, several: int = 0) -> None:
    """`several`: memory for so many slices; 0 for all, or for what is stored meanwhile."""
    alloc, last = tile.copy.operands[1].owner, tile.boxes[-1]
    said = _said_behind(tile)
    # All slices have memory of their own, so that none waits for the copies of another one; unless
    # nobody waits for those either.
    first = Exchange(alloc)
    if not several:
        spare = any(IN_SLICES in op.attributes for op in said)
        several = IN_TURN if spare else len(tile.boxes)
    attributes = {"alignment": alloc.attributes["alignment"]}
    types = [box.view.results[0].type for box in tile.boxes[:several]]
    buffers = [first.create(ALLOC, [], [type_], attributes).result for type_ in types]
    for number, box in enumerate(tile.boxes):
        at, buffer = Exchange(box.store), buffers[number % several]
        value = _read(at, tile, _of_axes(box.origin, tile.copy.operands[0]))
        if box is last:
            for op in said:
                at.put(op)
        for op in reversed(tile.chain):
            value = _on_slice(at, op, value, tile.shape)
        at.store(value, buffer)
        box.view.results[0].replace_all_uses_with(buffer)
        box.view.operation.erase()
        if box is not last and number % several == several - 1:
            _commit(box.store)
    for op in (tile.copy, *tile.chain, tile.read):
        op.operation.erase()
    alloc.operation.erase()


def _commit(store: ir.OpView) -> None:
    """End a group of copies behind this one, as the memory that they leave is used again: who waits
    for them waits for groups that have ended.
    """
    group = {"group": ir.StringAttr.get("bulk")}
    begun = [store.results[0]]
    Exchange(store, behind=True).create(_COMMIT, begun, [async_token()], group)


def _said_behind(tile: _Tile) -> list[ir.Operation]:
    """What says that all has been read, behind that."""
    ops = [op.operation for op in tile.copy.operation.block.operations]
    between = ops[ops.index(tile.read.operation) : ops.index(tile.boxes[-1].store.operation)]
    return [op for op in between if GIVES_BACK in op.attributes]


def _read(at: Exchange, tile: _Tile, origin: Sequence[int]) -> ir.Value:
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
    given = tile.read.regions[1].blocks[0].operations[0].operands[0]
    inside = Exchange(branch).within(other)
    inside.create("scf.yield", [_constant(inside, given, tile.shape)])
    return branch.results[0]


def _on_slice(at: Exchange, op: ir.OpView, value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """What an operation makes of the slice `value`."""
    operands = [_constant(at, one, shape) if _is_splat(one) else value for one in op.operands]
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
    part = subtile(layout, _fitted(shape, layout.shape))
    assert part is not None, "it can be cut"
    return distributed(ir.RankedTensorType.get(list(part.shape), element), part)


def _of_axes(values: Sequence[int], tile: ir.Value) -> tuple[int, ...]:
    """Of values for the axes of a tile those for axes of more than one element."""
    return tuple(v for v, extent in zip(values, tile.type.shape, strict=True) if extent > 1)


def _fitted(shape: Sequence[int], whole: Sequence[int]) -> tuple[int, ...]:
    """The shape of a slice of a tile of shape `whole`, which may have axes of one element more."""
    left = iter(shape)
    return tuple(next(left) if extent > 1 else 1 for extent in whole)

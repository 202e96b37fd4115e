"""tileas-store-in-slices: sums of tensor memory leave it, and the block, a slice at a time.

    all of it is read; all is rounded; all is staged; threads meet; copies of its boxes begin

becomes, for each box:

    its part is read, rounded, staged; threads meet; its copy begins

so that the copy engine works from the first slice on, and threads hold one slice and not all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_cute.atoms.records import SHARED, TENSOR
from tile_cute.atoms.tensor_access import tensor_access
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout, subtile

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.analysis.buffers import ALLOC, stage_bytes
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.dialect.buffers import Buffer, async_token
from tile_tileas.dialect.tensor import GIVES_BACK, UMMA, column_of, column_slice
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.tile_graph import kind_of, only_computes

_COPY, _VIEW, _IF = "nv_tileas.copy", "nv_tileas.buffer_view", "scf.if"
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
        for copy in list(_staged(op)):
            found = _Tile.of(copy)
            if found is not None:
                _cut(found)
                cx.count("tiles")
                cx.count("slices", len(found.boxes))


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
        shape: of each box.
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
        tile = _Tile(copy, tuple(chain), op, tuple(boxes), boxes[0].shape)
        return tile if tile._can_be_cut() and tile._is_undisturbed() else None

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
        return column_slice(buffer.layout, self.shape)

    def _is_undisturbed(self) -> bool:
        """Whether what is read is still there when the last slice is stored."""
        ops = [op.operation for op in self.copy.operation.block.operations]
        last = ops.index(self.boxes[-1].store.operation)
        between = ops[ops.index(self.read.operation) + 1 : last]
        return not any(_writes_tensor_memory(op) for op in between)


def _chain_of(copy: ir.OpView) -> tuple[list[ir.OpView], ir.OpView | None]:
    """What computes the tile that `copy` stages, element by element, the last operation first; and
    what gives that what it begins with.
    """
    chain: list[ir.OpView] = []
    op = _maker(copy.operands[0], copy)
    while op is not None and _is_elementwise(op):
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
        if _is_cut_by(boxes[0].shape, layouts, memory):
            buffer = Buffer.of(boxes[0].view.results[0].type)
            assert buffer is not None, "verified"
            return (len(boxes) - IN_TURN) * stage_bytes(buffer)
    return 0


def _is_cut_by(
    shape: Sequence[int], layouts: Sequence[LinearLayout | None], memory: LinearLayout
) -> bool:
    """Whether each thread has its own part of a slice of each tile, and reads that by itself."""
    slice_ = column_slice(memory, shape)
    try:
        parts = [None if one is None else subtile(one, shape) for one in layouts]
        if None in parts or parts[0] is None or slice_ is None:
            return False
        tensor_access(parts[0], slice_)
    except LayoutError:
        return False
    return True


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


# -- cutting ---------------------------------------------------------------------------------------


def _cut(tile: _Tile) -> None:
    alloc, last = tile.copy.operands[1].owner, tile.boxes[-1]
    said = _said_behind(tile)
    # All slices have memory of their own, so that none waits for the copies of another one; unless
    # nobody waits for those either.
    first, several = Exchange(tile.boxes[0].store), len(tile.boxes)
    several = IN_TURN if any(IN_SLICES in op.attributes for op in said) else several
    attributes = {"alignment": alloc.attributes["alignment"]}
    types = [box.view.results[0].type for box in tile.boxes[:several]]
    buffers = [first.create(ALLOC, [], [type_], attributes).result for type_ in types]
    for number, box in enumerate(tile.boxes):
        at, buffer = Exchange(box.store), buffers[number % several]
        value = _read(at, tile, box.origin)
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
    plain = ir.RankedTensorType.get(tile.shape, whole.tile.element_type)
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
    part = subtile(layout, shape)
    assert part is not None, "it can be cut"
    return distributed(ir.RankedTensorType.get(shape, element), part)

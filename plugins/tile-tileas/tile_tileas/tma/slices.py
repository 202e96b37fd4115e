"""Tiles on their way from tensor memory to boxes of a tensor map, which can be cut into those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_cute.atoms.records import SHARED, TENSOR
from tile_cute.atoms.tensor_access import tensor_access
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout, subtile

from tile_core.mlir import ir
from tile_tileas.analysis.buffers import ALLOC, stage_bytes
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import UMMA, column_slice
from tile_tileas.pipelining.opaque import given_alone
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.tile_graph import kind_of, only_computes

_COPY, _VIEW, _IF = "nv_tileas.copy", "nv_tileas.buffer_view", "scf.if"
_RESHAPED, _NAMED_ANEW = "nv_tileas.view", "nv_tileas.buffer_reinterpret"
_STORE = "nv_tileas.async_tiled_tma_store"
#: Slices that are staged at once where others are stored while the next product is made anyway.
IN_TURN = 2
#: Attributes of what says that an accumulator has been read: how many slices of it (i32) are staged
#: at once; all of it is read before the first one is staged.
IN_SLICES, READ_FIRST = "in_slices", "read_first"


def staged(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    """Copies of tiles into buffers of shared memory that are made for them."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from staged(inner)
            yield from _staged_in(block)


def _staged_in(block: ir.Block) -> Iterator[ir.OpView]:
    for op in block.operations:
        if op.operation.name == _COPY and not len(op.results):
            buffer = Buffer.of(op.operands[1].type)
            if buffer is not None and buffer.space == SHARED:
                yield op


@dataclass(frozen=True)
class Box:
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
class Leaving:
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
    boxes: tuple[Box, ...]
    shape: tuple[int, ...]

    @staticmethod
    def of(copy: ir.OpView) -> Leaving | None:
        """The tile that `copy` stages, if it can be cut."""
        boxes, (chain, op) = _boxes_of(copy), _chain_of(copy)
        if not boxes or op is None or source_of(op) is None:
            return None
        shape = of_axes(boxes[0].shape, copy.operands[0])
        tile = Leaving(copy, tuple(chain), op, tuple(boxes), shape)
        last = boxes[-1].store
        return tile if tile._can_be_cut() and is_undisturbed(op, last) else None

    @property
    def buffer(self) -> ir.Value:
        """What is read in tensor memory."""
        source = source_of(self.read)
        assert source is not None, "found by it"
        return source

    def _can_be_cut(self) -> bool:
        """Whether each thread has its own part of a slice, and reads that by itself."""
        layouts = [layout_of(op.results[0].type) for op in (self.read, *self.chain)]
        buffer = Buffer.of(self.buffer.type)
        assert buffer is not None
        assert buffer.layout is not None, "buffers in tensor memory are made with their layouts"
        return is_cut_by(self.shape, layouts, buffer.layout)

    @property
    def memory(self) -> LinearLayout | None:
        """How a slice lies in tensor memory."""
        buffer = Buffer.of(self.buffer.type)
        assert buffer is not None
        assert buffer.layout is not None, "buffers in tensor memory are made with their layouts"
        return column_slice(buffer.layout, fitted(self.shape, buffer.layout.shape))


def _chain_of(copy: ir.OpView) -> tuple[list[ir.OpView], ir.OpView | None]:
    """What computes the tile that `copy` stages, element by element, the last operation first; and
    what gives that what it begins with.
    """
    return chain_of_value(copy.operands[0], copy)


def chain_of_value(value: ir.Value, user: ir.OpView) -> tuple[list[ir.OpView], ir.OpView | None]:
    """The same of a tile that `user` alone uses."""
    chain: list[ir.OpView] = []
    op = _maker(value, user)
    while op is not None and (_is_elementwise(op) or _adds_axes(op)):
        chain.append(op)
        wide = [value for value in op.operands if not is_splat(value)]
        op = _maker(wide[0], op) if len(wide) == 1 else None
    return chain, op


def spared_by_slices(sums: ir.Value, memory: LinearLayout, several: int) -> int:
    """Bytes of shared memory that are not needed if a tile is staged in `several` slices, one after
    the other: what is stored of `sums`, a loop's result, which will lie in tensor memory as
    `memory` says. 0 if it cannot be cut.
    """
    loop = sums.owner
    assert not isinstance(loop, ir.Block), "a loop's result"
    for copy in _staged_in(loop.operation.block):
        boxes, (chain, op) = _boxes_of(copy), _chain_of(copy)
        if op is None or op.operation != loop.operation or len(boxes) <= several:
            continue
        layouts = [layout_of(value.type) for value in (sums, *(one.results[0] for one in chain))]
        if is_cut_by(of_axes(boxes[0].shape, copy.operands[0]), layouts, memory):
            buffer = Buffer.of(boxes[0].view.results[0].type)
            assert buffer is not None, "verified"
            return (len(boxes) - several) * stage_bytes(buffer)
    return 0


def is_cut_by(
    shape: Sequence[int], layouts: Sequence[LinearLayout | None], memory: LinearLayout
) -> bool:
    """Whether each thread has its own part of a slice of each tile, and reads that by itself."""
    slice_ = column_slice(memory, fitted(shape, memory.shape))
    try:
        parts = [one and subtile(one, fitted(shape, one.shape)) for one in layouts]
        if None in parts or parts[0] is None or slice_ is None:
            return False
        tensor_access(parts[0], slice_)
    except LayoutError:
        return False
    return True


def is_undisturbed(read: ir.OpView, last: ir.OpView) -> bool:
    """Whether what is read is still there when the last slice is stored."""
    ops = [op.operation for op in read.operation.block.operations]
    between = ops[ops.index(read.operation) + 1 : ops.index(last.operation)]
    return not any(_writes_tensor_memory(op) for op in between)


def _boxes_of(copy: ir.OpView) -> list[Box]:
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


def _box_of(view: ir.OpView) -> Box | None:
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
    return Box(view, store, tuple(origin))


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
    return of_axes(before.type.shape, before) == of_axes(after.type.shape, after)


def is_splat(value: ir.Value) -> bool:
    """Whether a tile is the same constant everywhere."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    attribute = owner.attributes["value"]
    return isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat


def source_of(op: ir.OpView) -> ir.Value | None:
    """The buffer in tensor memory that is read: by a copy, or in a branch that does nothing else
    and gives a constant otherwise.
    """
    if op.operation.name == _IF:
        inner = list(op.regions[0].blocks[0].operations)
        if len(inner) != 2 or given_alone(op.regions[1].blocks[0]) is None:
            return None
        copy = inner[0]
        return source_of(copy) if copy.operation.name == _COPY else None
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


def of_axes(values: Sequence[int], tile: ir.Value) -> tuple[int, ...]:
    """Of values for the axes of a tile those for axes of more than one element."""
    return tuple(v for v, extent in zip(values, tile.type.shape, strict=True) if extent > 1)


def fitted(shape: Sequence[int], whole: Sequence[int]) -> tuple[int, ...]:
    """The shape of a slice of a tile of shape `whole`, which may have axes of one element more."""
    left = iter(shape)
    return tuple(next(left) if extent > 1 else 1 for extent in whole)

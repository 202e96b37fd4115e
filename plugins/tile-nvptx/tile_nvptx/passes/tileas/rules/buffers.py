"""Buffers in shared memory: where they lie, and copies between them and registers."""

from __future__ import annotations

from math import prod

from tile_cute import gf2
from tile_cute.atoms.records import TENSOR
from tile_cute.linear import LinearLayout, MatrixSide, SharedSide, matrix_side, memory_access
from tile_cute.linear.layout import log2
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.staging import FEW
from tile_tileas.storage import storage_bits

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device.memory import load_matrices, store_matrices
from tile_nvptx.passes.tileas.rules import tensor_memory
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder, join, token
from tile_nvptx.passes.tileas.thread.shared import GLOBAL_SMEM, SharedBuffer, when
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import (
    count_of,
    element_of,
    shared_pointer,
    stage_bytes,
    storage_type,
    vector_of,
)

#: Compute capability from which stmatrix exists, times 10 (PTX ISA, "stmatrix").
_STORES_SINCE = 90


@rules.on("nv_tileas.alloc_tensor")
def alloc_tensor(op: ir.OpView, cx: Kernel) -> ir.Value:
    """alloc_tensor => the address of its place in the block's shared memory"""
    buffer_of(cx, op.results[0])
    if "shared_offset" not in op.attributes:
        raise error_at(op, "has no place in shared memory; run 'tileas-allocate-shared' before")
    b = Builder(cx)
    symbol = {"global_name": ir.FlatSymbolRefAttr.get(GLOBAL_SMEM)}
    base = cx.create("llvm.mlir.addressof", [], [shared_pointer()], symbol).result
    return b.offset(base, ir.IntegerAttr(op.attributes["shared_offset"]).value, b.i8)


@rules.on("nv_tileas.dealloc")
def dealloc(op: ir.OpView, cx: Kernel) -> None:
    """dealloc => nothing: places are given for the whole kernel"""


@rules.on("nv_tileas.create_none")
def create_none(op: ir.OpView, cx: Kernel) -> ir.Value:
    """create_none => a constant that nobody reads"""
    return token(cx)


@rules.on("nv_tileas.buffer_view")
def buffer_view(op: ir.OpView, cx: Kernel) -> ir.Value:
    """buffer_view => base + stage * bytes + subtile * bytes"""
    b = Builder(cx)
    source, result = buffer_of(cx, op.operands[0]), buffer_of(cx, op.results[0])
    pointer, stage, *indices = op.operands
    if source.stages > 1:
        place = b.with_constant("muli", stage, stage_bytes(source))
        pointer = b.offset(pointer, place, b.i8)
    if not indices or source.shape == result.shape:
        return pointer
    number = _number_of(cx, assigned(cx, source), result.shape, indices)
    return b.offset(pointer, b.with_constant("muli", number, stage_bytes(result)), b.i8)


@rules.on("nv_tileas.buffer_reinterpret")
def buffer_reinterpret(op: ir.OpView, cx: Kernel) -> ir.Value:
    """buffer_reinterpret => the same address"""
    return op.operands[0]


def _number_of(
    cx: Kernel, layout: LinearLayout, shape: list[int], indices: list[ir.Value]
) -> ir.Value:
    """Which of the pieces of a buffer a subtile is: the offset's bits above those of a piece."""
    b, low = Builder(cx), log2(prod(shape))
    number = b.constant(0)
    for axis, index in enumerate(indices):
        bits = [vector[axis] // shape[axis] for vector in layout.bases["offset"][low:]]
        for at, bit in enumerate(bits):
            if bit:  # one bit of one axis: `subtile_layout` of the verifier
                moved = b.with_constant("shrui", index, log2(bit))
                own = b.with_constant("andi", moved, 1)
                number = b.binary("ori", number, b.with_constant("shli", own, at))
    return number


def buffer_of(cx: Kernel, value: ir.Value) -> Buffer:
    """The buffer that a pointer was before the conversion.

    Raises:
        CompileError: it is not in shared memory.
    """
    buffer = Buffer.of(cx.before(value))
    assert buffer is not None, "verified"
    if buffer.space != "shared":
        raise cx.error(f"works on a buffer in {buffer.space} memory, which has no code yet")
    return buffer


def assigned(cx: Kernel, buffer: Buffer) -> LinearLayout:
    """The layout of a buffer.

    Raises:
        CompileError: it has none.
    """
    if buffer.layout is None:
        raise cx.error("works on a buffer without a layout; run 'tileas-assign-layouts' before")
    return buffer.layout


def layout_in_memory(cx: Kernel, value: ir.Value) -> LinearLayout:
    """The layout (offset -> tile) of the buffer whose address `value` is."""
    return assigned(cx, buffer_of(cx, value))


def is_buffer(cx: Kernel, value: ir.Value) -> bool:
    """Whether `value` is the address of a buffer, and not a thread's part of a tile."""
    return Buffer.of(cx.before(value)) is not None


@rules.on("nv_tileas.copy")
def copy(op: ir.OpView, cx: Kernel) -> ir.Value | None:
    """copy => vector accesses to shared memory, ldmatrix or stmatrix where they do the same;
    tcgen05.ld or .st of tensor memory
    """
    source = op.operands[0]
    if any(_in_tensor_memory(cx, value) for value in op.operands):
        return _tensor_copy(op, cx)
    if len(op.results):
        if not is_buffer(cx, source):
            raise error_at(op, "has no rule for this pair of residencies")
        type_ = cx.type(op.results[0].type)
        layout, memory = tile_layout(cx, op.results[0]), layout_in_memory(cx, source)
        return load(cx, source, memory, layout, element_of(type_))
    if is_buffer(cx, source):
        raise error_at(op, "has no rule for this pair of residencies")
    destination = op.operands[1]
    store(cx, source, tile_layout(cx, source), destination, layout_in_memory(cx, destination))
    return None


def _in_tensor_memory(cx: Kernel, value: ir.Value) -> bool:
    buffer = Buffer.of(cx.before(value))
    return buffer is not None and buffer.space == TENSOR


def _tensor_copy(op: ir.OpView, cx: Kernel) -> ir.Value | None:
    """Between tensor memory and registers."""
    source = op.operands[0]
    if len(op.results):
        few = op.attributes.get(FEW, None)
        registers = None if few is None else ir.IntegerAttr(few).value
        return tensor_memory.load(cx, source, op.results[0], registers)
    if is_buffer(cx, source):
        raise error_at(op, "has no rule for this pair of residencies")
    tensor_memory.store(cx, source, op.operands[1])
    return None


def store(
    cx: Kernel, value: ir.Value, layout: LinearLayout, base: ir.Value, memory: LinearLayout
) -> None:
    """Write a thread's part of a tile; of copies, the leader writes."""
    b = Builder(cx)
    stored = b.to_storage(value)
    element = element_of(stored.type)
    side = memory_access(memory, layout, storage_bits(element))
    lanes, warps = layout.free_mask("lane"), layout.free_mask("warp")
    whole = cx.target.sm >= _STORES_SINCE and not lanes  # all lanes take part in stmatrix
    matrices = _matrices(side, storage_bits(element)) if whole else None
    where = SharedBuffer(cx, base, element)
    with when(cx, cx.state.speaks(cx, lanes, warps)):
        if matrices is not None:
            _store_matrices(cx, stored, where, matrices)
            return
        size = side.vector * (element.width // 8)
        for access in side.accesses[0]:
            pointer = where.at((*side.lane_map, *side.warp_map), access.offset)
            b.store(b.shuffle(stored, access.registers), pointer, size)


def load(
    cx: Kernel, base: ir.Value, memory: LinearLayout, layout: LinearLayout, element: ir.Type
) -> ir.Value:
    """This thread's part of a tile; registers that are copies of others are not read."""
    b, stored = Builder(cx), storage_type(element)
    side = memory_access(memory, layout, storage_bits(stored))
    where = SharedBuffer(cx, base, stored)
    matrices = _matrices(side, storage_bits(stored))
    if matrices is not None:
        accesses, parts = matrices.accesses, _load_matrices(cx, where, matrices)
    else:
        accesses, parts = side.accesses[0], []
        for access in accesses:
            pointer = where.at((*side.lane_map, *side.warp_map), access.offset)
            type_ = vector_of(side.vector, stored)
            parts.append(b.load(pointer, type_, side.vector * (stored.width // 8)))
    held = gf2.table(layout.flat("register"))
    order = [register for access in accesses for register in access.registers]
    place = {held[register]: at for at, register in enumerate(order)}
    in_order = b.shuffle(join(b, parts), [place[at] for at in held])
    return b.from_storage(in_order, element)


def _matrices(side: SharedSide, bits: int) -> MatrixSide | None:
    """The matrix instructions that do the same with fewer accesses and no more wavefronts."""
    for transposed in (False, True):
        found = matrix_side(side, bits, transposed=transposed)
        if found is None or found.wavefronts > side.wavefronts:
            continue
        if len(found.accesses) < len(side.accesses[0]):
            return found
    return None


def _store_matrices(cx: Kernel, stored: ir.Value, where: SharedBuffer, side: MatrixSide) -> None:
    b = Builder(cx)
    name, body = store_matrices(side.matrices, transposed=side.transposed)
    for access in side.accesses:
        words = b.bitcast(b.shuffle(stored, access.registers), vector_of(side.matrices, b.i32))
        place = where.at((*side.lane_map, *side.warp_map), access.offset)
        cx.state.helpers.call(cx, name, body, [place, words], None)


def _load_matrices(cx: Kernel, where: SharedBuffer, side: MatrixSide) -> list[ir.Value]:
    b, words = Builder(cx), vector_of(side.matrices, Builder(cx).i32)
    name, body = load_matrices(side.matrices, transposed=side.transposed)
    parts = []
    for access in side.accesses:
        place = where.at((*side.lane_map, *side.warp_map), access.offset)
        found = cx.state.helpers.call(cx, name, body, [place], words).result
        many = count_of(words) * 32 // where.element.width
        parts.append(b.bitcast(found, vector_of(many, where.element)))
    return parts

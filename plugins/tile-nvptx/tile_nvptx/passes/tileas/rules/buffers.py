"""Buffers in shared memory: where they are, views of them, copies between them and registers."""

from __future__ import annotations

from math import prod

from tile_cute.linear import LinearLayout, memory_access
from tile_cute.linear.layout import log2
from tile_tileas.dialect.buffers import Buffer

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder, join, token
from tile_nvptx.passes.tileas.thread.shared import SharedBuffer, scratch_pointer, when
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import (
    element_of,
    stage_bytes,
    storage_type,
    vector_of,
)


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


@rules.on("nv_tileas.alloc_tensor")
def alloc_tensor(op: ir.OpView, cx: Kernel) -> ir.Value:
    """alloc_tensor => a place in the block's shared memory"""
    buffer_of(cx, op.results[0])
    return scratch_pointer(op, cx)


@rules.on("nv_tileas.dealloc")
def dealloc(op: ir.OpView, cx: Kernel) -> None:
    """dealloc => nothing"""


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


@rules.on("nv_tileas.copy")
def copy(op: ir.OpView, cx: Kernel) -> ir.Value | None:
    """copy => vector loads or stores of shared memory"""
    if len(op.results):
        return _load(op, cx)
    return _store(op, cx)


def _load(op: ir.OpView, cx: Kernel) -> ir.Value:
    b, pointer, type_ = Builder(cx), op.operands[0], cx.type(op.results[0].type)
    layout, buffer = tile_layout(cx, op.results[0]), buffer_of(cx, pointer)
    stored = storage_type(element_of(type_))
    side = memory_access(assigned(cx, buffer), layout, stored.width, unique=False)
    memory, parts, slots = SharedBuffer(cx, pointer, stored), [], []
    for access in side.accesses[0]:
        place = memory.at((*side.lane_map, *side.warp_map), access.offset)
        parts.append(b.load(place, vector_of(side.vector, stored), side.vector * stored.width // 8))
        slots += access.registers
    place_of = {slot: at for at, slot in enumerate(slots)}
    joined = b.shuffle(join(b, parts), [place_of[r] for r in range(layout.elements_per_thread)])
    return b.from_storage(joined, element_of(type_))


def _store(op: ir.OpView, cx: Kernel) -> None:
    b, value, pointer = Builder(cx), op.operands[0], op.operands[1]
    if Buffer.of(cx.before(value)) is not None:
        raise cx.error("copies between buffers, which has no code yet")
    layout, buffer = tile_layout(cx, value), buffer_of(cx, pointer)
    held = b.to_storage(value)
    stored = element_of(held.type)
    side = memory_access(assigned(cx, buffer), layout, stored.width)
    memory = SharedBuffer(cx, pointer, stored)
    with when(cx, cx.state.holds_unique(cx, layout)):
        for access in side.accesses[0]:
            place = memory.at((*side.lane_map, *side.warp_map), access.offset)
            part = b.shuffle(held, access.registers)
            b.store(part, place, side.vector * stored.width // 8)

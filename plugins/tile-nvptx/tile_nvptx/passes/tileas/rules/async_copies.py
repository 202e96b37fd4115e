"""Asynchronous copies of global memory to shared memory: cp.async by threads, bulk by one."""

from __future__ import annotations

from collections.abc import Callable

from tile_cute.linear import LinearLayout, memory_access
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.caches import acts, asked
from tile_tileas.dialect import layout_in
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.fields import operand_of

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.rules.buffers import assigned, buffer_of
from tile_nvptx.passes.tileas.rules.synchronization import barrier_at, first_thread, run
from tile_nvptx.passes.tileas.rules.tiled import prepare
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.build import Builder, token
from tile_nvptx.passes.tileas.thread.shared import SharedBuffer, when
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.tile_address import TileAddress
from tile_nvptx.passes.tileas.thread.types import storage_type

#: Bytes that one cp.async can copy (PTX ISA, "cp.async").
_SIZES = (4, 8, 16)

#: (register, elements of a copy) -> global address, and how many bytes from there on are read; None
#: for all.
Source = Callable[[int, int], tuple[ir.Value, ir.Value | None]]


def _copied_by(op: ir.OpView, cx: Kernel) -> LinearLayout:
    if "layout" not in op.attributes:
        raise cx.error("has no layout that says which thread copies what")
    return layout_in(op.attributes["layout"])


def _copy(op: ir.OpView, cx: Kernel, width: int, source: Source) -> None:
    """A cp.async for every run of up to `width` elements that both sides keep together."""
    pointer, layout = operand_of(op, "destination"), _copied_by(op, cx)
    assert pointer is not None, "verified"
    buffer = buffer_of(cx, pointer)
    stored = storage_type(buffer.tile.element_type)
    most = min(width * stored.width, 8 * max(_SIZES))
    side = memory_access(assigned(cx, buffer), layout, stored.width, most)
    size = side.vector * stored.width // 8
    if size not in _SIZES:
        raise cx.error(f"copies {size} bytes at a time, but cp.async copies 4, 8 or 16")
    memory = SharedBuffer(cx, pointer, stored)
    modifier, hint = asked(op)
    cache = modifier if modifier and acts(op, modifier) else ""
    exists = operand_of(op, "exists")
    wide = [Builder(cx).i32]
    flag = [] if exists is None else [cx.create("arith.extui", [exists], wide).result]
    with when(cx, cx.state.holds_unique(cx, layout)):
        for access in side.accesses[0]:
            place = memory.at((*side.lane_map, *side.warp_map), access.offset)
            start = access.registers[0]
            if tuple(access.registers) != tuple(range(start, start + side.vector)):
                raise cx.error("copies runs that lie differently in global and shared memory")
            address, read = source(start, side.vector)
            partial = () if read is None else (read,)
            routine = device.copy_to_shared(
                size, partial=bool(partial), flagged=bool(flag), cache=cache, hint=hint
            )
            run(cx, routine, place, address, *partial, *flag)


@rules.on("nv_tileas.async_tiled_load")
def async_tiled_load(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """async_tiled_load => cp.async; what is outside of the view is not read and becomes zeros"""
    where = prepare(op, cx, _copied_by(op, cx))
    if where.view.padding not in ("", "zero", None):
        raise cx.error("TmaLoad only support zero padding now")
    plan = AccessPlan.of(op)
    fast = plan.order[0] if plan is not None and plan.order else len(where.view.tile) - 1
    size, walk = where.stored.width // 8, where.walk()

    def source(register: int, width: int) -> tuple[ir.Value, ir.Value | None]:
        return walk.address(register), _read_bytes(where, fast, register, width, size)

    _copy(op, cx, where.width, source)
    return [token(cx), token(cx)]


def _read_bytes(
    where: TileAddress, fast: int, register: int, width: int, size: int
) -> ir.Value | None:
    """How many bytes of the `width` elements of `size` bytes at `register` are inside the view;
    None if all are.
    """
    if not where.checked:
        return None
    b = where.builder
    left: ir.Value | None = None
    flags: list[ir.Value] = []
    for axis in where.checked:
        if axis == fast and not where.whole and width > 1:
            place = where.coordinate(axis, register)
            rest = b.binary("maxsi", b.binary("subi", where.left(axis), place), b.constant(0))
            left = b.with_constant("muli", b.binary("minsi", rest, b.constant(width)), size)
        else:
            flags.append(where.is_inside(axis, register))
    whole = left or b.constant(width * size)
    flag = b.all_of(flags)
    if flag is None:
        return whole
    return where.cx.create("arith.select", [flag, whole, b.constant(0)], [b.i32]).result


@rules.on("nv_tileas.async_load")
def async_load(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """async_load => cp.async; where the mask is false nothing is read and zeros are written"""
    b, base, mask = Builder(cx), op.operands[0], operand_of(op, "mask")
    plan, layout = AccessPlan.of(op), _copied_by(op, cx)
    width = 1
    if plan is not None and plan.order:
        width = min(plan.vector, layout.registers_contiguous_along(plan.order[0]))
    buffer = Buffer.of(cx.before(op.destination))
    assert buffer is not None, "verified"
    size = storage_type(buffer.tile.element_type).width // 8

    def source(register: int, count: int) -> tuple[ir.Value, ir.Value | None]:
        address = b.extract(base, register)
        if mask is None:
            return address, None
        choice = [b.extract(mask, register), b.constant(count * size), b.constant(0)]
        return address, cx.create("arith.select", choice, [b.i32]).result

    _copy(op, cx, width, source)
    return [token(cx), token(cx)]


@rules.on("nv_tileas.async_copy")
def async_copy(op: ir.OpView, cx: Kernel) -> ir.Value:
    """async_copy => cp.async.bulk, by one thread"""
    size, barrier, stage = op.bytes.value, operand_of(op, "barrier"), operand_of(op, "stage")
    source, destination = op.operands[0], op.operands[1]
    place = None
    if barrier is not None and stage is not None:
        place = barrier_at(cx, barrier, stage)
    with when(cx, first_thread(cx)):
        if place is not None:
            hint = text(op, "cache_hint")
            run(cx, device.bulk_to_shared(size, hint), destination, source, place)
        else:
            run(cx, device.bulk_to_global(size), destination, source)
    return token(cx)

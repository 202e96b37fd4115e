"""Copies by tensor maps, issued by one thread of the agent; maps that the kernel makes."""

from __future__ import annotations

from tile_tileas.dialect.barriers import PAIR
from tile_tileas.dialect.fields import operand_of, operands_of
from tile_tileas.dialect.tma import descriptor_parts

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.device import tensor_maps
from tile_nvptx.passes.tileas.rules.synchronization import (
    barrier_at,
    begins_copies,
    first_of_pair,
    first_thread,
    run,
)
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.build import Builder, token
from tile_nvptx.passes.tileas.thread.shared import when
from tile_nvptx.passes.tileas.thread.state import LANES, Kernel

_ULT = 6  # arith.CmpIPredicate


def _rank(cx: Kernel, op: ir.OpView) -> int:
    parts = descriptor_parts(cx.before(op.operands[0]))
    assert parts is not None, "verified"
    return len(parts[0].shape)


def _innermost_first(coords: list[ir.Value], mode: str) -> list[ir.Value]:
    """Rows by index come as the instruction has them: the column, then four rows."""
    return coords if mode.endswith("4") else coords[::-1]


def _load(op: ir.OpView, cx: Kernel, mode: str) -> ir.Value:
    barrier, stage, mask = (operand_of(op, name) for name in ("barrier", "stage", "mask"))
    assert barrier is not None, "verified"
    if stage is None:
        raise cx.error("completes on a pipe; run 'tileas-materialize-barriers' before")
    coords = _innermost_first(operands_of(op, "coords"), mode)
    place = barrier_at(cx, barrier, stage)
    hint = f"{text(op, 'cache_hint')}"
    pair = PAIR in op.attributes
    routine = device.tensor_load(
        _rank(cx, op), mode, len(coords), hint, multicast=mask is not None, pair=pair
    )
    more = [first_of_pair(cx)] if pair else [] if mask is None else [mask]
    with when(cx, begins_copies(cx, op)):
        run(cx, routine, op.operands[1], op.operands[0], place, *coords, *more)
    return token(cx)


def _store(op: ir.OpView, cx: Kernel, mode: str, reduction: str = "") -> list[ir.Value]:
    coords = _innermost_first(operands_of(op, "coords"), mode)
    hint = text(op, "cache_hint")
    routine = device.tensor_store(_rank(cx, op), mode, len(coords), hint, reduction)
    with when(cx, first_thread(cx)):
        run(cx, routine, op.operands[1], op.operands[0], *coords)
    return [token(cx) for _ in op.results]


@rules.on("nv_tileas.async_tiled_tma_load")
def tiled_load(op: ir.OpView, cx: Kernel) -> ir.Value:
    """async_tiled_tma_load => cp.async.bulk.tensor"""
    return _load(op, cx, "tile")


@rules.on("nv_tileas.async_gather_tma_load")
def gather_load(op: ir.OpView, cx: Kernel) -> ir.Value:
    """async_gather_tma_load => cp.async.bulk.tensor.tile::gather4"""
    return _load(op, cx, "tile::gather4")


@rules.on("nv_tileas.async_tiled_tma_store")
def tiled_store(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """async_tiled_tma_store => cp.async.bulk.tensor"""
    return _store(op, cx, "tile")


@rules.on("nv_tileas.async_scatter_tma_store")
def scatter_store(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """async_scatter_tma_store => cp.async.bulk.tensor.tile::scatter4"""
    return _store(op, cx, "tile::scatter4")


@rules.on("nv_tileas.async_tiled_tma_reduce")
def tiled_reduce(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """async_tiled_tma_reduce => cp.reduce.async.bulk.tensor"""
    return _store(op, cx, "tile", text(op, "rmw_mode"))


@rules.on("nv_tileas.prefetch_tma_desc")
def prefetch(op: ir.OpView, cx: Kernel) -> None:
    """prefetch_tma_desc => prefetch.tensormap"""
    with when(cx, first_thread(cx)):
        run(cx, device.prefetch_map(), op.operands[0])


@rules.on("nv_tileas.acquire_tma_desc")
def acquire(op: ir.OpView, cx: Kernel) -> None:
    """acquire_tma_desc => fence.proxy.tensormap"""
    run(cx, device.acquire_map(), op.operands[0])


@rules.on("nv_tileas.make_tiled_tma_desc")
def make(op: ir.OpView, cx: Kernel) -> None:
    """No tensor map is made here: it comes as a parameter, or a pass has made it before."""
    raise cx.error("expect lower MakeTiledTMADescOp")


# --- maps of the kernel's own -------------------------------------------------------------------


def _arena(cx: Kernel, count: int) -> ir.Value:
    """The arena of kernels that make `count` maps."""
    size = tensor_maps.arena_bytes(count)
    return cx.state.helpers.zeros(cx, f"__tile_tensor_maps_{count}", size, tensor_maps.ALIGNMENT)


@rules.on("nv_tileas.claim_tma_descs")
def claim(op: ir.OpView, cx: Kernel) -> ir.Value:
    """claim_tma_descs => one thread takes a place of the arena, and tells the others"""
    b, buffer = Builder(cx), op.operands[0]
    with when(cx, first_thread(cx)):
        arena = _arena(cx, op.count.value)
        place = cx.state.helpers.call(cx, *tensor_maps.claim(), [arena], b.i32).result
        b.store(place, buffer, 4)
    b.barrier()
    return b.load(buffer, b.i32, 4)


@rules.on("nv_tileas.release_tma_descs")
def release(op: ir.OpView, cx: Kernel) -> None:
    """release_tma_descs => one thread gives the place back"""
    with when(cx, first_thread(cx)):
        run(cx, tensor_maps.release(), _arena(cx, op.count.value), op.operands[0])


@rules.on("nv_tileas.fill_tma_desc")
def fill(op: ir.OpView, cx: Kernel) -> ir.Value:
    """fill_tma_desc => tensormap.replace of each field, tensormap.cp_fenceproxy"""
    b, (place, scratch, address) = Builder(cx), list(op.operands)[:3]
    parts = descriptor_parts(op.results[0].type)
    assert parts is not None, "verified"
    box, swizzle = parts
    start, size = tensor_maps.place_offset(op.count.value)
    offset = b.with_constant("muli", place, size)
    offset = b.with_constant("addi", offset, start + op.index.value * tensor_maps.SIZE)
    map_ = b.offset(_arena(cx, op.count.value), offset, b.i8)
    routine = tensor_maps.fill(text(op, "element"), swizzle, list(box.shape)[::-1])
    numbers = [*operands_of(op, "extents")[::-1], *operands_of(op, "strides")[::-1]]
    index = cx.state.thread_index(cx)
    with when(cx, b.compare(_ULT, index, b.constant(LANES))):
        run(cx, routine, scratch, map_, address, *numbers)
    return cx.create("llvm.addrspacecast", [map_], [ir.Type.parse("!llvm.ptr")]).result

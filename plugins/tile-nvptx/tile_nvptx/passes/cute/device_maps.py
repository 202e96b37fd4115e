"""Tensor maps that a kernel makes, copies and changes, in global memory.

One warp works on a map, all its lanes together: it is edited in shared memory, where each warp has
128 bytes for that, and copied to global memory, released to the proxy of tensor maps. Who begins
copies by it acquires it before (`nvvm.fence.proxy.acquire`), behind a meeting with that warp where
it is another one; the kernel says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tile_cute import int_tuple as it
from tile_cute.atoms.tma import STRIDE_BYTES, check_box
from tile_cute.dialect.base import attributes_of
from tile_cute.dialect.nvgpu_signatures import map_of
from tile_cute.errors import LayoutError
from tile_cute.tensor_map import SIZE
from tile_cute.values import View
from tile_tileas.analysis.host_values import NotOnHost
from tile_tileas.tma.element_types import map_type

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_core.walk import inside
from tile_nvptx.passes.cute.numbers import Number, constant, wide
from tile_nvptx.passes.cute.offsets import Offsets
from tile_nvptx.passes.cute.parameters import is_parameter
from tile_nvptx.passes.cute.tensors import (
    Cute,
    OwnMaps,
    base_of,
    element_bits,
    moved,
    outer_of,
    rules,
    swizzle_of,
    tensor_of,
)
from tile_nvptx.passes.meeting import block_meets
from tile_nvptx.passes.tileas.device import asynchronous, tensor_maps

MAKES = "cute_nvgpu.make_tma_desc_tiled"
#: Compute capability, times 10, from which `tensormap.replace` is there.
_SINCE = 90
_LANES = 32
_ULT = 6  # arith.CmpIPredicate
#: Operations that all threads run together, if those around them do.
_TOGETHER = ("func.func", "scf.for")
_BULK = ("cute_nvgpu.arch_copy_sm100_tma_store", "cute_nvgpu.arch_copy_sm100_tma_reduce")


# --- where warps edit ----------------------------------------------------------------------------


def _kernel(op: ir.Operation, cx: Cute) -> ir.Operation:
    """The kernel that an operation is in."""
    while op.name != "func.func":
        assert op.parent is not None, "inside of a function"
        op = op.parent.operation
    if "nv_tileaa.kernel_spec" not in op.attributes:
        raise cx.error("is for kernels, whose number of warps is known")
    return op


def _thread(cx: Cute) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    return cx.create("nvvm.read.ptx.sreg.tid.x", [], [i32]).result


def _scratch(op: ir.OpView, cx: Cute) -> ir.Value:
    """The 128 bytes of shared memory that this warp edits maps in."""
    if cx.target.sm < _SINCE:
        raise cx.error(f"is tensormap.replace, which {cx.target.chip} does not have")
    spec = ir.DictAttr(_kernel(op.operation, cx).attributes["nv_tileaa.kernel_spec"])
    size = ir.IntegerAttr(spec["num_warps"]).value * SIZE
    place = cx.state.shared(cx, f"__cute_map_scratch_{size}", size, SIZE)
    numbers = Offsets(cx)
    warp = cx.create("arith.divui", [_thread(cx), numbers.constant(_LANES)], [numbers.i32]).result
    return moved(cx, place, ir.IntegerType.get_signless(8), numbers.times(warp, SIZE))


def _in_global_memory(map_: ir.Value, cx: Cute) -> ir.Value:
    if is_parameter(map_):
        raise cx.error(
            "writes to a tensor map that is, or may be, a parameter, which nobody can write to"
        )
    return cx.create("llvm.addrspacecast", [map_], [ir.Type.parse("!llvm.ptr<1>")]).result


# --- filling maps in -----------------------------------------------------------------------------


def _fill(op: ir.OpView, cx: Cute, map_: ir.Value, kind: ir.Type) -> None:
    """Write the map of the first operand, a tensor, whose last mode lies in a row."""
    view = tensor_of(cx, op.operands[0])
    element, box, swizzle = map_of(kind)
    bits = element_bits(view, cx)
    if swizzle_of(view)[0] is not None or bits % 8:
        raise cx.error(f"makes maps of whole bytes without a swizzle in memory, but got {view}")
    layout = outer_of(view)
    pairs = [(it.flatten(mode.shape), it.flatten(mode.stride)) for mode in layout]
    if len(pairs) != len(box) or any(len(shape) != 1 for shape, _ in pairs):
        raise cx.error(f"expects {len(box)} modes of one stride each, as the box has, in {view}")
    leaves = [(extent, step) for (extent,), (step,) in pairs]
    try:
        known = [step if isinstance(step, int) else STRIDE_BYTES for _, step in leaves]
        check_box(box[::-1], tuple(known[::-1]), bits, swizzle)
        name = map_type(ir.Type.parse(element))
    except (LayoutError, NotOnHost) as error:
        raise cx.error(str(error)) from error
    extents = [_extent(cx, extent) for extent, _ in leaves]
    strides = [_stride(cx, step, bits, view) for _, step in leaves[:-1]]
    routine = tensor_maps.fill(name, swizzle, box[::-1])
    operands = [_scratch(op, cx), map_, base_of(cx, op.operands[0]), *extents[::-1]]
    cx.state.helpers.call(cx, *routine, [*operands, *strides[::-1]], None)


def _extent(cx: Cute, extent: it.IntTuple) -> ir.Value:
    """An i32. Maps have no extent of 0; who copies takes care that nothing is inside then."""
    i32 = ir.IntegerType.get_signless(32)
    if not isinstance(extent, Number):
        return constant(cx, max(1, int(extent)), i32)  # type: ignore[call-overload]
    number = Offsets(cx).number(extent.value)
    return cx.create("arith.maxui", [number, constant(cx, 1, i32)], [i32]).result


def _stride(cx: Cute, step: it.IntTuple, bits: int, view: View) -> ir.Value:
    """An i64, in bytes."""
    i64 = ir.IntegerType.get_signless(64)
    if not isinstance(step, Number):
        return constant(cx, int(step) * bits // 8, i64)  # type: ignore[call-overload]
    if step.divby * bits % (8 * STRIDE_BYTES):
        raise cx.error(
            f"needs strides that are multiples of {STRIDE_BYTES} bytes: say so with {{div=..}} in "
            f"{view}"
        )
    size = constant(cx, bits // 8, i64)
    return cx.create("arith.muli", [wide(cx, step.value), size], [i64]).result


@rules.on("cute_nvgpu.make_tma_desc_tiled_at")
def make_at(op: ir.OpView, cx: Cute) -> Replacement:
    """make_tma_desc_tiled_at(t, a) => tensormap.replace of each field, tensormap.cp_fenceproxy

    The tensor's modes are those of the map's box, in the same order; the last one has stride 1.
    """
    place = op.operands[1]
    if isinstance(place.type, ir.IntegerType):
        place = cx.create("llvm.inttoptr", [place], [ir.Type.parse("!llvm.ptr<1>")]).result
    else:
        place = base_of(cx, place)
    kind = op.operation.attributes.get("map")
    if not isinstance(kind, ir.TypeAttr):
        raise cx.error("needs attribute 'map', the type of the tensor map")
    _fill(op, cx, place, kind.value)
    return None


# --- places of the block's own -------------------------------------------------------------------


@rules.on(MAKES)
def make(op: ir.OpView, cx: Cute) -> Replacement:
    """make_tma_desc_tiled(t) => a map in a place that the block claims when it begins, and gives
    back at its end; all threads of the block run it together, and the first warp makes the map
    """
    kernel = _kernel(op.operation, cx)
    _check_together(op.operation, cx)
    own = cx.state.own_maps
    if own.place is None:
        own.place = _claimed(kernel, cx)
    start, size = tensor_maps.place_offset(own.count)
    numbers, i8 = Offsets(cx), ir.IntegerType.get_signless(8)
    offset = numbers.sum(
        [numbers.times(own.place, size), numbers.constant(start + own.made * SIZE)]
    )
    own.made += 1
    map_ = moved(cx, _arena(cx), i8, offset)
    with _first(cx, _LANES):
        _fill(op, cx, map_, op.results[0].type)
    return cx.create("llvm.addrspacecast", [map_], [ir.Type.parse("!llvm.ptr")]).result


def _check_together(op: ir.Operation, cx: Cute) -> None:
    """All threads of a block meet for a map of the block's own."""
    while op.name != "func.func":
        assert op.parent is not None, "inside of a function"
        op = op.parent.operation
        if op.name not in _TOGETHER:
            raise cx.error(
                f"is for all threads of a block, and stands in '{op.name}': make the map outside, "
                f"or by '{MAKES}_at'"
            )


def _arena(cx: Cute) -> ir.Value:
    """The arena of kernels that make so many maps, as those of the compiler's own."""
    count = cx.state.own_maps.count
    size = tensor_maps.arena_bytes(count)
    return cx.state.helpers.zeros(cx, f"__tile_tensor_maps_{count}", size, tensor_maps.ALIGNMENT)


def _claimed(kernel: ir.Operation, cx: Cute) -> ir.Value:
    """The number of the block's place in the arena, from the kernel's beginning to its end."""
    entry, i32 = kernel.regions[0].blocks[0], ir.IntegerType.get_signless(32)
    with cx.at(ir.InsertionPoint.at_block_begin(entry)):
        slot = cx.state.shared(cx, "__cute_map_place", 4, 4)
        with _first(cx, 1):
            taken = cx.state.helpers.call(cx, *tensor_maps.claim(), [_arena(cx)], i32).result
            cx.create("llvm.store", [taken, slot])
        block_meets(cx)
        place = cx.create("llvm.load", [slot], [i32]).result
    end = entry.operations[len(entry.operations) - 1]
    with cx.at(ir.InsertionPoint(end)):
        if cx.state.own_maps.stores:  # no store reads its map any more
            cx.state.helpers.call(cx, *asynchronous.wait_group("bulk", 0), [], None)
        block_meets(cx)
        with _first(cx, 1):
            cx.state.helpers.call(cx, *tensor_maps.release(), [_arena(cx), place], None)
    return place


@contextmanager
def _first(cx: Cute, threads: int) -> Iterator[None]:
    """What is made inside is done by the first threads of a block."""
    i1, i64 = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)
    less = {"predicate": ir.IntegerAttr.get(i64, _ULT)}
    sides = [_thread(cx), Offsets(cx).constant(threads)]
    condition = cx.create("arith.cmpi", sides, [i1], less).result
    branch = cx.create("scf.if", [condition], regions=2)
    with cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
        yield
        cx.create("scf.yield")


def own_maps_of(func: ir.Operation) -> OwnMaps:
    """How many maps a function makes in a place of its blocks' own."""
    names = [op.name for op in inside(func)]
    return OwnMaps(names.count(MAKES), any(name in _BULK for name in names))


# --- maps that are there -------------------------------------------------------------------------


@rules.on("cute_nvgpu.copy_tma_desc")
def copy(op: ir.OpView, cx: Cute) -> Replacement:
    """copy_tma_desc(s, d) => loads of all lanes, tensormap.cp_fenceproxy"""
    target = _in_global_memory(op.operands[1], cx)
    operands = [_scratch(op, cx), target, op.operands[0]]
    cx.state.helpers.call(cx, *tensor_maps.copy(), operands, None)
    return None


@rules.on("cute_nvgpu.update_tma_desc")
def update(op: ir.OpView, cx: Cute) -> Replacement:
    """update_tma_desc(m, v) {field, axis} => loads of all lanes, tensormap.replace,
    tensormap.cp_fenceproxy

    `base` is an address, `dim` an extent in elements, `stride` in bytes, as the instruction has it;
    axis 0 is the innermost one.
    """
    target = _in_global_memory(op.operands[0], cx)
    attributes, value = attributes_of(op), op.operands[1]
    field = attributes["field"]
    value = Offsets(cx).number(value) if field == "dim" else wide(cx, value)
    routine = tensor_maps.update(field, int(attributes.get("axis", 0)))
    cx.state.helpers.call(cx, *routine, [_scratch(op, cx), target, value], None)
    return None


@rules.on("cute_nvgpu.make_tma_desc_im2col", "cute_nvgpu.make_tma_desc_im2col_at")
def im2col(op: ir.OpView, cx: Cute) -> Replacement:
    """No kernel makes such a map: hosts do, and it comes as a parameter or is copied"""
    raise cx.error("cannot be made by a kernel: tensormap.replace has no fields of im2col")

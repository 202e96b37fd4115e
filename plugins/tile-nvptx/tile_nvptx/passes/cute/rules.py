"""Operations of cute and cute_nvgpu => arithmetic, accesses and instructions of llvm."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tile_cute import tiling
from tile_cute.dialect.base import attributes_of, operand_of
from tile_cute.dialect.nvgpu_ops import mma_atom
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout, concat, from_leaves
from tile_cute.layout_algebra import coalesce
from tile_cute.swizzle import ComposedLayout, Swizzle
from tile_cute.values import Value, View

from tile_core.convert import KEEP, Conversion, Replacement, RuleSet
from tile_core.diagnostics import CompileError
from tile_core.mlir import ir
from tile_nvptx.passes.cute.offsets import Offsets, weights
from tile_nvptx.passes.tileas.device.asynchronous import copy_to_shared
from tile_nvptx.passes.tileas.device.helpers import Helpers
from tile_nvptx.passes.tileas.device.mma import mma_fragments

#: Address spaces of NVPTX by the names that cute has for them.
SPACES = {"gmem": 1, "smem": 3, "rmem": 5, "generic": 0}

_POINTER = re.compile(r'!cute\.(?:ptr|memref)<(.+?), "(\w+)", .*>')
_TILED = re.compile(r'!cute\.tiled_mma<"([^"]*)", "([^"]*)"')
_DYNAMIC = -(2**31)  # an index of getelementptr that is an operand
_MOST = 2**31

rules = RuleSet("convert-cute-and-cute-nvgpu-to-llvm")


@dataclass
class State:
    """What the rules of one function share."""

    helpers: Helpers
    module: ir.Operation
    buffers: list[str] = field(default_factory=list)


Cute = Conversion[State]


def convert_type(type_: ir.Type) -> ir.Type:
    """Pointers and tensors are addresses; what a type says by itself is no value: i32.

    Raises:
        CompileError: a tensor in a space without addresses.
    """
    text = str(type_)
    if not text.startswith(("!cute.", "!cute_nvgpu.")):
        return type_
    match = _POINTER.fullmatch(text)
    if match is not None:
        if match[2] not in SPACES:
            raise CompileError(f"cannot be lowered: {text} has no address that code can use")
        space = SPACES[match[2]]
        return ir.Type.parse(f"!llvm.ptr<{space}>" if space else "!llvm.ptr")
    if text.startswith("!cute_nvgpu.tma_descriptor_"):
        return ir.Type.parse("!llvm.ptr")
    if text.startswith("!cute_nvgpu.smem_desc"):
        return ir.IntegerType.get_signless(64)
    if text.startswith(("!cute.fast_divmod_divisor<", "!cute.tiled_", "!cute_nvgpu.atom<")):
        return ir.IntegerType.get_signless(32)
    if isinstance(operand_of(type_), Value):
        return ir.IntegerType.get_signless(32)
    return type_


def view_of(type_: ir.Type, cx: Cute) -> View:
    """The tensor that a type describes; an error where it is none, or known at run time only."""
    found = operand_of(type_)
    if not isinstance(found, View):
        raise cx.error(f"expects a cute.memref, but got {type_}")
    if not _outer(found).is_static:
        raise cx.error(f"expects a static layout, but got {found.layout}")
    if _outer(found).cosize >= _MOST:
        raise cx.error(f"expects less than 2^31 elements, as indices are i32, but got {found}")
    return found


def _outer(view: View) -> Layout:
    return view.layout.outer if isinstance(view.layout, ComposedLayout) else view.layout


def _swizzle(view: View) -> tuple[Swizzle | None, int]:
    """(swizzle, offset before it) of a tensor that has one."""
    if isinstance(view.layout, ComposedLayout) and not view.layout.inner.is_identity:
        return view.layout.inner, view.layout.offset
    return None, 0


def _element(type_: ir.Type) -> ir.Type:
    match = _POINTER.fullmatch(str(type_))
    assert match is not None
    return ir.Type.parse(match[1])


def _plain(view: View, cx: Cute) -> Layout:
    if _swizzle(view)[0] is not None:
        raise cx.error("cannot cut a swizzled tensor: an address inside of it has no layout")
    return _outer(view)


def _moved(cx: Cute, base: ir.Value, element: ir.Type, offset: ir.Value) -> ir.Value:
    """The address of an element."""
    return cx.create(
        "llvm.getelementptr",
        [base, offset],
        [base.type],
        {
            "elem_type": ir.TypeAttr.get(element),
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([_DYNAMIC]),
        },
    ).result


# --- values that types say -----------------------------------------------------------------------


@rules.on("cute.static", "cute.make_layout", "cute.make_tiled_mma", "cute.make_atom",
          "cute.make_shape", "cute.make_tile", "cute.make_coord")  # fmt: skip
def static(op: ir.OpView, cx: Cute) -> Replacement:
    """A value that its type says => any value, which nobody reads"""
    return Offsets(cx).constant(0)


@rules.on("cute.size", "cute.cosize")
def size(op: ir.OpView, cx: Cute) -> Replacement:
    """size(static layout) => constant"""
    raise cx.error("is folded before: run 'cute-fold-layouts'")


@rules.on("cute.fast_divmod_create_divisor", "cute.fast_divmod_get_divisor")
def divisor(op: ir.OpView, cx: Cute) -> Replacement:
    """A divisor is its number: LLVM and ptxas find the magic ones"""
    if str(op.operands[0].type) != "i32":
        raise cx.error(f"divides i32, but got {op.operands[0].type}")
    return op.operands[0]


@rules.on("cute.fast_divmod_divide")
def divide(op: ir.OpView, cx: Cute) -> Replacement:
    """fast_divmod_divide(x, d) => x / d, unsigned"""
    if [str(value.type) for value in op.operands] != ["i32", "i32"]:
        raise cx.error(f"divides i32, but got {op.operands[0].type}")
    return cx.create("arith.divui", list(op.operands), [op.operands[0].type]).result


# --- pointers and tensors ------------------------------------------------------------------------


@rules.on("cute.make_view", "cute.get_iter", "cute.recast_iter")
def same_address(op: ir.OpView, cx: Cute) -> Replacement:
    """A tensor is the address where it begins"""
    return op.operands[0]


@rules.on("builtin.unrealized_conversion_cast")
def same_pointer(op: ir.OpView, cx: Cute) -> Replacement:
    """A cast that another conversion left between a pointer of cute and its address => nothing"""
    if len(op.operands) == 1 and [op.operands[0].type] == [cx.type(r.type) for r in op.results]:
        return op.operands[0]
    return KEEP


@rules.on("cute.add_offset")
def add_offset(op: ir.OpView, cx: Cute) -> Replacement:
    """add_offset(p, n) => p + n elements"""
    pointer = cx.before(op.operands[0])
    offset = operand_of(cx.before(op.operands[1]))
    number = Offsets(cx)
    if isinstance(offset, Value):
        if not isinstance(offset.value, int):
            raise cx.error(f"expects an integer offset, but got {offset}")
        moved = number.constant(offset.value)
    elif isinstance(op.operands[1].type, ir.IndexType):
        wide = ir.IntegerType.get_signless(64)
        moved = cx.create("arith.index_cast", [op.operands[1]], [wide]).result
    else:
        moved = op.operands[1]
    return _moved(cx, op.operands[0], _element(pointer), moved)


@rules.on("cute.inttoptr", "cute.ptrtoint")
def cast(op: ir.OpView, cx: Cute) -> Replacement:
    """The same cast of llvm"""
    name = op.operation.name.replace("cute.", "llvm.")
    return cx.create(name, list(op.operands), [cx.type(op.results[0].type)]).result


@rules.on("cute.memref_alloc_smem", "cute_nvgpu.arch_alloc_smem")
def alloc_smem(op: ir.OpView, cx: Cute) -> Replacement:
    """memref_alloc_smem => a global of shared memory"""
    view = view_of(op.results[0].type, cx)
    name = f"__cute_smem_{len(cx.state.buffers)}"
    cx.state.buffers.append(name)
    swizzle, offset = _swizzle(view)
    cosize = _outer(view).cosize + offset
    if swizzle is not None:
        cosize = -(-cosize // swizzle.span) * swizzle.span
    text = (
        f"llvm.mlir.global internal @{name}() {{addr_space = 3 : i32, alignment = 1024 : i64}} : "
        f"!llvm.array<{cosize} x {view.element}>"
    )
    block = cx.state.module.regions[0].blocks[0]
    ir.InsertionPoint.at_block_begin(block).insert(ir.Operation.parse(text))
    symbol = {"global_name": ir.FlatSymbolRefAttr.get(name)}
    return cx.create("llvm.mlir.addressof", [], [ir.Type.parse("!llvm.ptr<3>")], symbol).result


@rules.on("cute_nvgpu.arch_alloc_rmem", "cute.memref_alloca")
def alloc_rmem(op: ir.OpView, cx: Cute) -> Replacement:
    """arch_alloc_rmem => an alloca at the function's beginning, which LLVM keeps in registers"""
    view = view_of(op.results[0].type, cx)
    func = op.operation
    while func.name != "func.func":
        assert func.parent is not None
        func = func.parent.operation
    element = {"elem_type": ir.TypeAttr.get(ir.Type.parse(view.element))}
    entry = func.regions[0].blocks[0]
    with cx.at(ir.InsertionPoint.at_block_begin(entry)):
        count = Offsets(cx).constant(_outer(view).cosize)
        place = cx.create("llvm.alloca", [count], [ir.Type.parse("!llvm.ptr")], element).result
        return cx.create("llvm.addrspacecast", [place], [ir.Type.parse("!llvm.ptr<5>")]).result


def _address(cx: Cute, base: ir.Value, view: View, coordinates: list[ir.Value]) -> ir.Value:
    """The address of one element, by a coordinate for each mode."""
    number = Offsets(cx)
    parts = [
        number.index(mode, number.number(at))
        for mode, at in zip(_outer(view), coordinates, strict=True)
    ]
    swizzle, offset = _swizzle(view)
    if offset:
        parts.append(number.constant(offset))
    index = number.sum(parts)
    if swizzle is not None:
        index = number.swizzled(swizzle, index)
    return _moved(cx, base, ir.Type.parse(view.element), index)


@rules.on("cute.memref_load")
def load(op: ir.OpView, cx: Cute) -> Replacement:
    """memref_load(t, i, j) => load"""
    base, *coordinates = op.operands
    view = view_of(cx.before(base), cx)
    address = _address(cx, base, view, coordinates)
    return cx.create("llvm.load", [address], [op.results[0].type]).result


@rules.on("cute.memref_store")
def store(op: ir.OpView, cx: Cute) -> Replacement:
    """memref_store(v, t, i, j) => store"""
    value, base, *coordinates = op.operands
    view = view_of(cx.before(base), cx)
    cx.create("llvm.store", [value, _address(cx, base, view, coordinates)])
    return None


@rules.on("cute.ptr_store")
def ptr_store(op: ir.OpView, cx: Cute) -> Replacement:
    """ptr_store(v, p) => store"""
    cx.create("llvm.store", list(op.operands))
    return None


def _addresses(cx: Cute, base: ir.Value, view: View) -> list[ir.Value]:
    """The addresses of all elements of a tensor, in order."""
    number, element = Offsets(cx), ir.Type.parse(view.element)
    layout = view.layout
    indices = [layout(at) for at in range(layout.size)]
    return [_moved(cx, base, element, number.constant(int(index))) for index in indices]


@rules.on("cute.memref_load_vec")
def load_vector(op: ir.OpView, cx: Cute) -> Replacement:
    """memref_load_vec(t) => a load for each element, and the vector of them"""
    base = op.operands[0]
    addresses = _addresses(cx, base, view_of(cx.before(base), cx))
    kind = ir.VectorType(op.results[0].type)
    items = [cx.create("llvm.load", [address], [kind.element_type]).result for address in addresses]
    return cx.create("vector.from_elements", items, [kind]).result


@rules.on("cute.memref_store_vec")
def store_vector(op: ir.OpView, cx: Cute) -> Replacement:
    """memref_store_vec(v, t) => a store for each element"""
    value, base = op.operands
    kind = ir.VectorType(value.type)
    addresses = _addresses(cx, base, view_of(cx.before(base), cx))
    for at, address in enumerate(addresses):
        place = {"static_position": ir.DenseI64ArrayAttr.get([at])}
        item = cx.create("vector.extract", [value], [kind.element_type], place).result
        cx.create("llvm.store", [item, address])
    return None


# --- parts of threads ----------------------------------------------------------------------------


def _is_result(op: ir.OpView, view: View, layout: Layout, cx: Cute) -> None:
    """The result's type says what the operation makes."""
    found = view_of(op.results[0].type, cx)
    if (found.element, found.space, str(found.layout)) != (view.element, view.space, str(layout)):
        raise cx.error(f"makes a tensor of {layout} in {view.space}, but its type is {found}")


@rules.on("cute.local_partition")
def local_partition(op: ir.OpView, cx: Cute) -> Replacement:
    """local_partition(t, threads, i) => the address where the part of thread i begins"""
    base, _, thread = op.operands
    view = view_of(cx.before(base), cx)
    threads = operand_of(cx.before(op.operands[1]))
    if not isinstance(threads, Value) or not isinstance(threads.value, Layout):
        raise cx.error("expects a static layout of threads")
    if sorted(threads.value.indices()) != list(range(threads.value.size)):  # type: ignore[type-var]
        raise cx.error(f"expects each thread once, but {threads.value} leaves some out")
    tiles, _ = tiling.zipped_divide(_plain(view, cx), tuple(mode.size for mode in threads.value))
    number = Offsets(cx)
    offset = number.partition(threads.value, tiles, number.number(thread))
    return _moved(cx, base, ir.Type.parse(view.element), offset)


@rules.on("cute.tiled_mma_partition")
def mma_partition(op: ir.OpView, cx: Cute) -> Replacement:
    """tiled_mma_partition(mma, t, i) {operand} => the address where thread i's fragments begin

    The tensor is (M, K), (N, K) or (M, N); the result ((values), rest, rest).
    """
    base, thread = op.operands[1], op.operands[2]
    view = view_of(cx.before(base), cx)
    mma = _TILED.match(str(cx.before(op.operands[0])))
    if mma is None:
        raise cx.error("expects a tiled_mma of an instruction and a layout of warps")
    operand = attributes_of(op).get("operand", "")
    try:
        part = partition_of(mma[1], mma[2], operand, _plain(view, cx))
    except LayoutError as error:
        raise cx.error(str(error)) from error
    _is_result(op, view, part.layout, cx)
    number = Offsets(cx)
    index = number.number(thread)
    threads = 1 << len(part.lane)
    parts = [number.of_bits(number.digit(index, 1, threads), part.lane)]
    for step, extent, stride in part.warps:
        if extent > 1:
            parts.append(number.times(number.digit(index, threads * step, extent), stride))
    return _moved(cx, base, ir.Type.parse(view.element), number.sum(parts))


@dataclass(frozen=True)
class Part:
    """A thread's part of an operand of a tiled MMA.

    Attributes:
        layout: ((values), rest, rest).
        lane: what each bit of the thread's number among those of the instruction adds to the
            index: of a warp, or of a warpgroup.
        warps: (warps or warpgroups before it, along it, index from one to the next) of each mode.
    """

    layout: Layout
    lane: tuple[int, ...]
    warps: tuple[tuple[int, int, int], ...]


def partition_of(instruction: str, warps: str, operand: str, tensor: Layout) -> Part:
    """How the threads of a tiled MMA share an operand: "A" (M, K), "B" (N, K) or "C" (M, N).

    Args:
        warps: layout of warps along M, N and K: compact, the first along M.

    Raises:
        LayoutError: warps in another order, or a tensor that is no multiple of the tile.
    """
    from tile_cute.text import parse_layout

    atom, placed = mma_atom(instruction), parse_layout(warps)
    if not isinstance(placed, Layout) or placed.int_leaves() != Layout(placed.shape).int_leaves():
        raise LayoutError(f"expects warps in order, M first, but got {warps}")
    m, n, k = (*(mode.size for mode in placed), 1, 1)[:3]
    if k != 1:
        raise LayoutError("cannot share K among warps: their sums would have to be added")
    chosen = {
        "A": (atom.a_layout, (atom.m * m, atom.k), ((1, m, atom.m), (m, 1, 0)), False),
        "B": (atom.b_layout, (atom.n * n, atom.k), ((m, n, atom.n), (1, 1, 0)), True),
        "C": (atom.c_layout, (atom.m * m, atom.n * n), ((1, m, atom.m), (m, n, atom.n)), False),
    }
    if operand not in chosen:
        raise LayoutError(f"expects 'operand' to be A, B or C, but got '{operand}'")
    fragment, tile, steps, swapped = chosen[operand]
    if fragment is None or len(tensor) != 2:
        raise LayoutError(f"expects a tensor of two modes, but got {tensor}")
    rests = []
    for mode, extent in zip(tensor, tile, strict=True):
        if mode.size % extent:
            raise LayoutError(f"cannot cut {mode} into tiles of {extent}")
        rests.append(tiling.logical_divide(mode, extent)[1])
    values = from_leaves([(2, at) for at in weights(fragment, "register", tensor, swapped)])
    layout = concat([concat(list(values)), *rests]) if len(values) > 1 else concat([values, *rests])
    warp = tuple(
        (step, extent, int(mode(by) if extent > 1 else 0))  # type: ignore[arg-type]
        for (step, extent, by), mode in zip(steps, tensor, strict=True)
    )
    lane = weights(fragment, "lane", tensor, swapped) + weights(fragment, "warp", tensor, swapped)
    return Part(layout, tuple(lane), warp)


# --- instructions --------------------------------------------------------------------------------


@rules.on("cute_nvgpu.arch_mma_sm80", "cute_nvgpu.arch_mma_sm89")
def mma(op: ir.OpView, cx: Cute) -> Replacement:
    """mma.sync of the fragments of a warp"""
    atom = mma_atom(attributes_of(op)["atom"])
    kinds = [ir.VectorType(value.type) for value in op.operands]
    elements = tuple(str(kind.element_type) for kind in kinds)
    name, text = mma_fragments(atom, elements, (1, 1, 1, 1))  # type: ignore[arg-type]
    return cx.state.helpers.call(cx, name, text, list(op.operands), op.results[0].type).result


@rules.on("cute_nvgpu.arch_copy_sm80_cp_async")
def copy_async(op: ir.OpView, cx: Cute) -> Replacement:
    """cp.async of a tensor of 4, 8 or 16 contiguous bytes; with `size`, so many are read"""
    target, source, *size = op.operands
    views = [view_of(cx.before(value), cx) for value in (target, source)]
    if [view.space for view in views] != ["smem", "gmem"]:
        raise cx.error(f"copies from gmem to smem, but got {views[1]} and {views[0]}")
    counts = {_bytes_in_a_row(view, cx) for view in views}
    if len(counts) != 1 or not counts <= {4, 8, 16}:
        raise cx.error(f"copies 4, 8 or 16 bytes, but got {views[1]} and {views[0]}")
    (count,) = counts
    if ".cg." in attributes_of(op)["atom"] and count != 16:
        raise cx.error(f"copies 16 bytes past L1, but got {count}")
    name, text = copy_to_shared(count, partial=bool(size))
    cx.state.helpers.call(cx, name, text, [target, source, *size], None)
    return None


def _bytes_in_a_row(view: View, cx: Cute) -> int:
    layout = coalesce(_plain(view, cx))
    leaves = [(extent, stride) for extent, stride in layout.int_leaves() if extent > 1]
    if leaves not in ([], [(layout.size, 1)]):
        raise cx.error(f"copies what lies in a row, but got {view}")
    element = ir.Type.parse(view.element)
    assert isinstance(element, ir.IntegerType | ir.FloatType)
    return layout.size * element.width // 8

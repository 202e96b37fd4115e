"""Pointers, memory and elements of cute => accesses of llvm."""

from __future__ import annotations

from tile_cute import int_tuple as it
from tile_cute.dialect.base import operand_of
from tile_cute.values import Value, View

from tile_core.convert import KEEP, Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.numbers import Number, unknown, wide
from tile_nvptx.passes.cute.offsets import Offsets
from tile_nvptx.passes.cute.tensors import (
    ALIGNED,
    POINTER,
    Cute,
    address,
    addresses_of,
    alignment_of,
    base_of,
    element_bits,
    index_of,
    moved,
    outer_of,
    rules,
    swizzle_of,
    tensor_of,
    value_of,
)


def _element(type_: ir.Type) -> ir.Type:
    match = POINTER.fullmatch(str(type_))
    assert match is not None
    return ir.Type.parse(match[1])


# --- divisors ------------------------------------------------------------------------------------


@rules.on("cute.fast_divmod_create_divisor", "cute.fast_divmod_make_divisor",
          "cute.fast_divmod_get_divisor")  # fmt: skip
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


# --- pointers ------------------------------------------------------------------------------------


@rules.on("builtin.unrealized_conversion_cast")
def same_pointer(op: ir.OpView, cx: Cute) -> Replacement:
    """A cast that another conversion left between a pointer of cute and its address => nothing"""
    if len(op.operands) == 1 and [op.operands[0].type] == [cx.type(r.type) for r in op.results]:
        return op.operands[0]
    return KEEP


@rules.on("cute.add_offset")
def add_offset(op: ir.OpView, cx: Cute) -> Replacement:
    """add_offset(p, n) => p + n elements"""
    pointer, number = op.operands
    element = _element(cx.before(pointer))
    offset = operand_of(cx.before(number))
    if isinstance(offset, Value) and not unknown(offset):
        if not isinstance(offset.value, int):
            raise cx.error(f"expects an integer offset, but got {offset}")
        return moved(cx, pointer, element, Offsets(cx).constant(offset.value))
    if isinstance(offset, Value):
        known = value_of(cx, number)
        assert isinstance(known, Value)
        if not isinstance(known.value, Number):
            raise cx.error(f"expects an integer offset, but got {offset}")
        number = known.value.value
    elif isinstance(number.type, ir.IndexType):
        number = wide(cx, number)
    return moved(cx, pointer, element, number)


@rules.on("cute.inttoptr", "cute.ptrtoint")
def cast(op: ir.OpView, cx: Cute) -> Replacement:
    """The same cast of llvm"""
    name = op.operation.name.replace("cute.", "llvm.")
    return cx.create(name, list(op.operands), [cx.type(op.results[0].type)]).result


def _allocated(op: ir.OpView, cx: Cute) -> View:
    """The tensor that memory is taken for."""
    found = operand_of(op.results[0].type)
    if not isinstance(found, View) or unknown(found):
        raise cx.error(f"expects a static layout, but got {op.results[0].type}")
    return found


@rules.on("cute.memref_alloc_smem", "cute_nvgpu.arch_alloc_smem")
def alloc_smem(op: ir.OpView, cx: Cute) -> Replacement:
    """memref_alloc_smem => a global of shared memory"""
    view = _allocated(op, cx)
    name = f"__cute_smem_{len(cx.state.buffers)}"
    cx.state.buffers.append(name)
    swizzle, offset = swizzle_of(view)
    cosize = outer_of(view).cosize + offset
    alignment = ALIGNED
    if swizzle is not None:
        cosize = -(-cosize // swizzle.span) * swizzle.span
        alignment = max(alignment, swizzle.span * element_bits(view, cx) // 8)
    text = (
        f"llvm.mlir.global internal @{name}() "
        f"{{addr_space = 3 : i32, alignment = {alignment} : i64}} : "
        f"!llvm.array<{cosize} x {view.element}>"
    )
    block = cx.state.module.regions[0].blocks[0]
    ir.InsertionPoint.at_block_begin(block).insert(ir.Operation.parse(text))
    symbol = {"global_name": ir.FlatSymbolRefAttr.get(name)}
    return cx.create("llvm.mlir.addressof", [], [ir.Type.parse("!llvm.ptr<3>")], symbol).result


#: The array of shared memory whose size a launch says; all kernels of a module have the one.
_DYNAMIC = "__cute_dynamic_smem"


@rules.on("cute_nvgpu.arch_get_dyn_smem")
def dynamic_smem(op: ir.OpView, cx: Cute) -> Replacement:
    """get_dyn_smem => the address of an external array without size, aligned as the pointer says"""
    alignment = alignment_of(op.results[0].type)
    if alignment & (alignment - 1):
        raise cx.error(f"expects an alignment that is a power of two, but got {alignment}")
    array = cx.state.dynamic
    if array is None:
        text = (
            f"llvm.mlir.global external @{_DYNAMIC}() "
            f"{{addr_space = 3 : i32, alignment = {alignment} : i64}} : !llvm.array<0 x i8>"
        )
        array = cx.state.dynamic = ir.Operation.parse(text).operation
        block = cx.state.module.regions[0].blocks[0]
        ir.InsertionPoint.at_block_begin(block).insert(array)
    least = max(alignment, ir.IntegerAttr(array.attributes["alignment"]).value)
    i64 = ir.IntegerType.get_signless(64)
    array.attributes["alignment"] = ir.IntegerAttr.get(i64, least)
    symbol = {"global_name": ir.FlatSymbolRefAttr.get(_DYNAMIC)}
    return cx.create("llvm.mlir.addressof", [], [ir.Type.parse("!llvm.ptr<3>")], symbol).result


@rules.on("cute_nvgpu.arch_get_dyn_smem_size")
def dynamic_smem_size(op: ir.OpView, cx: Cute) -> Replacement:
    """get_dyn_smem_size => %dynamic_smem_size, in bytes"""
    i32 = ir.IntegerType.get_signless(32)
    return cx.create("nvvm.read.ptx.sreg.dynamic.smem.size", [], [i32]).result


@rules.on("cute_nvgpu.arch_alloc_rmem", "cute.memref_alloca", "cute.make_fragment_like",
          "cute.mma_make_fragment")  # fmt: skip
def alloc_rmem(op: ir.OpView, cx: Cute) -> Replacement:
    """arch_alloc_rmem => an alloca at the function's beginning, which LLVM keeps in registers"""
    view = _allocated(op, cx)
    func = op.operation
    while func.name != "func.func":
        assert func.parent is not None
        func = func.parent.operation
    element = {"elem_type": ir.TypeAttr.get(ir.Type.parse(view.element))}
    entry = func.regions[0].blocks[0]
    with cx.at(ir.InsertionPoint.at_block_begin(entry)):
        count = Offsets(cx).constant(outer_of(view).cosize)
        place = cx.create("llvm.alloca", [count], [ir.Type.parse("!llvm.ptr")], element).result
        return cx.create("llvm.addrspacecast", [place], [ir.Type.parse("!llvm.ptr<5>")]).result


def _accessed(cx: Cute, tensor: ir.Value, coordinates: list[ir.Value]) -> ir.Value:
    """The address of one element, by a coordinate for each mode."""
    view = tensor_of(cx, tensor)
    numbers = tuple(index_of(cx, at, view) for at in coordinates)
    return address(cx, base_of(cx, tensor), view, outer_of(view)(*numbers))


@rules.on("cute.load_scaled_index")
def load_scaled(op: ir.OpView, cx: Cute) -> Replacement:
    """load_scaled_index(p, i, d) => the element i * d behind p"""
    pointer, index, stride = op.operands
    step, at = value_of(cx, stride), operand_of(cx.before(index))
    assert isinstance(step, Value), "verified"
    given = value_of(cx, index).value if isinstance(at, Value) else index_of(cx, index)  # type: ignore[union-attr]
    total: it.IntTuple = 0
    for number, by in zip(it.flatten(given), it.flatten(step.value), strict=True):
        total = it.add(total, number * by)  # type: ignore[operator]
    offset = total.value if isinstance(total, Number) else Offsets(cx).constant(total)  # type: ignore[arg-type]
    place = moved(cx, pointer, _element(cx.before(pointer)), offset)
    return cx.create("llvm.load", [place], [op.results[0].type]).result


@rules.on("cute.memref_load")
def load(op: ir.OpView, cx: Cute) -> Replacement:
    """memref_load(t, i, j) => load"""
    base, *coordinates = op.operands
    place = _accessed(cx, base, coordinates)
    return cx.create("llvm.load", [place], [op.results[0].type]).result


@rules.on("cute.memref_store")
def store(op: ir.OpView, cx: Cute) -> Replacement:
    """memref_store(v, t, i, j) => store"""
    value, base, *coordinates = op.operands
    cx.create("llvm.store", [value, _accessed(cx, base, coordinates)])
    return None


@rules.on("cute.ptr_store")
def ptr_store(op: ir.OpView, cx: Cute) -> Replacement:
    """ptr_store(v, p) => store"""
    cx.create("llvm.store", list(op.operands))
    return None


@rules.on("cute.memref_load_vec")
def load_vector(op: ir.OpView, cx: Cute) -> Replacement:
    """memref_load_vec(t) => a load for each element, and the vector of them"""
    addresses = addresses_of(cx, op.operands[0])
    kind = ir.VectorType(op.results[0].type)
    items = [cx.create("llvm.load", [place], [kind.element_type]).result for place in addresses]
    return cx.create("vector.from_elements", items, [kind]).result


@rules.on("cute.memref_store_vec")
def store_vector(op: ir.OpView, cx: Cute) -> Replacement:
    """memref_store_vec(v, t) => a store for each element"""
    value, base = op.operands
    kind = ir.VectorType(value.type)
    for at, place in enumerate(addresses_of(cx, base)):
        position = {"static_position": ir.DenseI64ArrayAttr.get([at])}
        item = cx.create("vector.extract", [value], [kind.element_type], position).result
        cx.create("llvm.store", [item, place])
    return None

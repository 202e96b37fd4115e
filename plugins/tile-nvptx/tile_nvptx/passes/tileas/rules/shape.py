"""Tiles that are made, reshaped or moved between layouts."""

from __future__ import annotations

from tile_cute.linear import LinearLayout, broadcast_registers
from tile_tileas.analysis.axis import pointee_bytes

from tile_core.convert import KEEP, Replacement
from tile_core.diagnostics import CompileError
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder, wrap
from tile_nvptx.passes.tileas.thread.formats import FORMATS
from tile_nvptx.passes.tileas.thread.small_floats import float_values, nibbles
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import (
    count_of,
    element_of,
    held_type,
    storage_type,
    vector_of,
)


@rules.on("arith.constant")
def constant(op: ir.OpView, cx: Kernel) -> Replacement:
    """A splat stays a splat, of the fragment; other dense constants are read from a table"""
    old = op.results[0].type
    if isinstance(old, ir.VectorType):  # in the region of a reduction
        new = cx.type(old)
        if new == old:
            return KEEP
        attr = ir.DenseElementsAttr.get_splat(new, held(op.attributes["value"].get_splat_value()))
        return cx.create("arith.constant", [], [new], {"value": attr}).result
    if not isinstance(old, ir.RankedTensorType):
        if cx.type(old) == old:
            return KEEP
        constant_held = held(op.attributes["value"])
        return cx.create(
            "arith.constant", [], [constant_held.type], {"value": constant_held}
        ).result
    value, new = op.attributes["value"], cx.type(old)
    if value.is_splat:
        attr = ir.DenseElementsAttr.get_splat(new, held(value.get_splat_value()))
        return cx.create("arith.constant", [], [new], {"value": attr}).result
    return _table(op, cx, value)


def held(number: ir.Attribute) -> ir.Attribute:
    """A number as threads hold it."""
    name = str(number.type)
    if name in FORMATS:
        code = FORMATS[name].encode(number.value)
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(8), wrap(code, 8))
    type_ = held_type(number.type)
    if isinstance(type_, ir.IntegerType) and isinstance(number, ir.FloatAttr):
        raise CompileError(f"constants of {name} are not supported")
    if type_ == number.type:
        return number
    if isinstance(number, ir.IntegerAttr):  # i4, in the low half of a byte
        return ir.IntegerAttr.get(type_, number.value & (1 << number.type.width) - 1)
    return ir.FloatAttr.get(type_, number.value)


def _table(op: ir.OpView, cx: Kernel, value: ir.Attribute) -> ir.Value:
    """A constant array in global memory, read at each element's row-major index."""
    layout = tile_layout(cx, op.results[0])
    builder = Builder(cx)
    element = element_of(cx.type(op.results[0].type))
    stored = storage_type(element)
    base = cx.state.helpers.table(cx, numbers(value, stored), stored)
    loads = []
    for index in element_indices(cx, layout):
        pointer = builder.offset(base, index, stored)
        loads.append(builder.load(pointer, vector_of(1, stored), max(1, stored.width // 8)))
    return builder.from_storage(builder.concat(loads), element)


def numbers(value: ir.Attribute, stored: ir.Type) -> list[ir.Attribute]:
    """The elements of a dense constant, in row-major order, as attributes of the stored type."""
    element = str(value.type.element_type)
    if element == "i4":
        return [ir.IntegerAttr.get(stored, number) for number in nibbles(_literal(value))]
    if isinstance(value, ir.DenseIntElementsAttr):
        return [ir.IntegerAttr.get(stored, int(number)) for number in value]
    if element in ("f32", "f64"):
        return [ir.FloatAttr.get(stored, number) for number in ir.DenseFPElementsAttr(value)]
    numbers = float_values(_literal(value), element)
    if element not in FORMATS:
        return [ir.FloatAttr.get(stored, number) for number in numbers]
    return [ir.IntegerAttr.get(stored, wrap(FORMATS[element].encode(n), 8)) for n in numbers]


def _literal(value: ir.Attribute) -> str:
    """`dense<..>` as printed: the bindings have no access to the numbers of these formats."""
    return str(value).rsplit(" : ", 1)[0]


def element_indices(cx: Kernel, layout: LinearLayout) -> list[ir.Value]:
    """Row-major index in the tile of each register's element, i64."""
    builder = Builder(cx)
    bases = (*layout.flat("lane"), *layout.flat("warp"))
    thread = cx.state.linear(cx, bases)
    if thread is None:
        thread = builder.constant(0)
    found = []
    for register in range(layout.elements_per_thread):
        offset = layout.apply_flat({"register": register})
        index = builder.with_constant("xori", thread, offset)
        found.append(builder.widen(index, builder.i64))
    return found


@rules.on("nv_tileaa.make_range")
def make_range(op: ir.OpView, cx: Kernel) -> ir.Value:
    """make_range => the thread's coordinate XOR a constant per register"""
    layout = tile_layout(cx, op.results[0])
    type_, builder = cx.type(op.results[0].type), Builder(cx)
    element, count = element_of(type_), count_of(type_)
    offsets = [
        ir.IntegerAttr.get(element, wrap(layout.apply({"register": r})[0], element.width))
        for r in range(count)
    ]
    attr = ir.DenseElementsAttr.get(offsets, type_)
    registers = cx.create("arith.constant", [], [type_], {"value": attr}).result
    thread = cx.state.coordinate(cx, layout, 0)
    if thread is None:
        return registers
    if element.width < 32:
        thread = cx.create("arith.trunci", [thread], [element]).result
    thread = builder.widen(thread, element)
    return builder.binary("xori", builder.splat(thread, count), registers)


@rules.on("nv_tileaa.splat")
def splat(op: ir.OpView, cx: Kernel) -> ir.Value:
    """splat => the scalar in every register"""
    return Builder(cx).splat(op.operands[0], count_of(cx.type(op.results[0].type)))


@rules.on("nv_tileaa.broadcast")
def broadcast(op: ir.OpView, cx: Kernel) -> ir.Value:
    """broadcast => registers repeat; layouts see to it that no data leaves its thread"""
    source, result = op.operands[0], op.results[0]
    src, dst = tile_layout(cx, op.operands[0]), tile_layout(cx, result)
    picks = broadcast_registers(src, dst)
    if picks is None:
        raise error_at(op, f"needs a layout change from {src} to {dst} before it")
    return Builder(cx).shuffle(source, picks)


@rules.on("nv_tileas.view")
def view(op: ir.OpView, cx: Kernel) -> ir.Value:
    """view => the same registers"""
    return op.operands[0]


@rules.on("nv_tileaa.extract")
def extract(op: ir.OpView, cx: Kernel) -> ir.Value:
    """extract => register 0, which every thread has"""
    return Builder(cx).extract(op.operands[0], 0)


@rules.on("nv_tileaa.addptr")
def addptr(op: ir.OpView, cx: Kernel) -> ir.Value:
    """addptr => getelementptr in units of the pointee, the offset sign-extended"""
    base, offset = op.operands
    size = pointee_bytes(op.results[0].type)
    unit = ir.IntegerType.get_signless(8 * size)
    return Builder(cx).offset_by(base, offset, unit, cx.type(op.results[0].type))

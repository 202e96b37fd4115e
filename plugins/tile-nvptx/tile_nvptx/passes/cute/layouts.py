"""Layouts, tuples and views: their algebra on numbers that are known at run time only.

What types say all of is no value, and needs no code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_cute import int_tuple as it
from tile_cute import tiling
from tile_cute.dialect.base import attributes_of, operand_of
from tile_cute.dialect.fragment_ops import forgotten
from tile_cute.errors import LayoutError
from tile_cute.infer import RULES, projected, size
from tile_cute.layout import Layout
from tile_cute.layout_algebra import slice_layout
from tile_cute.values import Operand, Value, View

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.numbers import Number, constant, filled, unknown, wide
from tile_nvptx.passes.cute.offsets import Offsets
from tile_nvptx.passes.cute.tensors import (
    Cute,
    atom_fields,
    base_of,
    cut,
    index_of,
    made,
    outer_of,
    packed,
    rules,
    tensor_of,
    unpacked,
    value_of,
    with_layout,
)

#: From a layout, a tiler and a coordinate to what is taken of the layout, and its offset.
_Taking = Callable[[Layout, tiling.Tiler, it.IntTuple], tuple[Layout, it.IntTuple]]
#: Operations whose result begins where their tensor begins: index 0 stays index 0.
_VIEWS = (
    "coalesce", "filter_zeros", "filter", "composition", "group_modes", "select", "dice",
    "logical_divide", "zipped_divide", "tiled_divide", "flat_divide", "tile_to_shape",
)  # fmt: skip
#: Operations that make no tensor.
_VALUES = (
    "make_layout", "make_layout_raw", "make_ordered_layout", "make_identity_layout",
    "make_identity_tensor",
    "make_composed_layout", "make_composed_layout_raw", "complement", "right_inverse",
    "left_inverse", "recast_layout", "logical_product", "zipped_product", "tiled_product",
    "flat_product", "blocked_product", "raked_product", "stencil_divide", "get_layout",
    "get_shape", "get_stride", "crd2idx", "tuple_add", "tuple_sub", "tuple_mul", "tuple_div",
    "tuple_mod", "shape_div", "ceil_div", "to_int_tuple",
)  # fmt: skip


def _computed(op: ir.OpView, cx: Cute) -> Operand:
    """What the algebra makes of the operands, with numbers."""
    attributes = attributes_of(op)
    try:
        return RULES[attributes["op"]]([value_of(cx, v) for v in op.operands], attributes)
    except LayoutError as error:
        raise cx.error(str(error)) from error


@rules.on(*(f"cute.{name}" for name in (*_VIEWS, *_VALUES)))
def algebra(op: ir.OpView, cx: Cute) -> Replacement:
    """The algebra of layouts => arithmetic on what their types leave open"""
    if not unknown(operand_of(op.results[0].type)):
        view = isinstance(operand_of(op.results[0].type), View)
        return base_of(cx, op.operands[0]) if view else Offsets(cx).constant(0)
    found = _computed(op, cx)
    base = base_of(cx, op.operands[0]) if isinstance(found, View) else None
    return made(cx, found, op.results[0].type, base)


@rules.on("cute.static", "cute.make_atom", "cute.make_tiled_mma", "cute.make_tiled_copy",
          "cute.make_swizzle", "cute.make_tile", "cute.get_layouts_from_tile")  # fmt: skip
def static(op: ir.OpView, cx: Cute) -> Replacement:
    """A value that its type says => any value, which nobody reads"""
    held = [name for name, _ in atom_fields(op.results[0].type)]
    if held:
        raise cx.error(
            f"makes an atom that holds {' and '.join(held)}: use an operation that binds"
        )
    if unknown(operand_of(op.results[0].type)):
        raise cx.error("cannot have numbers that are known at run time only")
    return Offsets(cx).constant(0)


@rules.on("cute.make_int_tuple", "cute.make_shape", "cute.make_stride", "cute.make_coord")
def make_tuple(op: ir.OpView, cx: Cute) -> Replacement:
    """make_shape(%m, %n) => the numbers, as i64"""
    declared = operand_of(op.results[0].type)
    numbers = [Number(open_.divby, wide(cx, value), cx)
               for open_, value in zip(unknown(declared), op.operands, strict=True)]  # fmt: skip
    return made(cx, filled(declared, numbers), op.results[0].type)


@rules.on("cute.size", "cute.cosize")
def query(op: ir.OpView, cx: Cute) -> Replacement:
    """size(l) => a constant, or the product of its extents"""
    attributes = attributes_of(op)
    try:
        found = size(value_of(cx, op.operands[0]), attributes.get("mode", []),
                     attributes["op"] == "cosize")  # fmt: skip
    except LayoutError as error:
        raise cx.error(str(error)) from error
    type_ = op.results[0].type
    if isinstance(found, int):
        return constant(cx, found, type_)
    if not isinstance(found, Number):
        raise cx.error("of a layout that is known at run time only is not computed")
    if isinstance(type_, ir.IndexType):
        return cx.create("arith.index_cast", [found.value], [type_]).result
    number = wide(cx, found.value)
    return number if number.type == type_ else cx.create("arith.trunci", [number], [type_]).result


@rules.on("cute.tuple_eq", "cute.equal")
def equal(op: ir.OpView, cx: Cute) -> Replacement:
    """tuple_eq(a, b) => whether all numbers are equal"""
    sides = [_compared(value_of(cx, value)) for value in op.operands]
    i1 = ir.IntegerType.get_signless(1)
    if not all(it.congruent(a, b) for a, b in zip(*sides, strict=True)):
        return constant(cx, 0, i1)
    answer = constant(cx, 1, i1)
    for left, right in zip(*(it.flatten(side) for side in sides), strict=True):
        known = not isinstance(left, it.Dynamic) and not isinstance(right, it.Dynamic)
        if known and left != right:
            return constant(cx, 0, i1)
        if known:
            continue
        both = [_as_i64(cx, number) for number in (left, right)]
        predicate = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}
        same = cx.create("arith.cmpi", both, [i1], predicate).result
        answer = cx.create("arith.andi", [answer, same], [i1]).result
    return answer


def _as_i64(cx: Cute, number: object) -> ir.Value:
    if isinstance(number, Number):
        return wide(cx, number.value)
    if not isinstance(number, int):
        raise cx.error(f"cannot compare {number} at run time")
    return constant(cx, number, ir.IntegerType.get_signless(64))


def _compared(operand: Operand) -> tuple[it.IntTuple, ...]:
    """The tuples that two values are compared by."""
    if isinstance(operand, View):
        operand = Value("layout", outer_of(operand))
    assert isinstance(operand, Value), "verified"
    if isinstance(operand.value, Layout):
        return operand.value.shape, operand.value.stride
    return (operand.value,)


@rules.on("cute.make_tuple")
def pack(op: ir.OpView, cx: Cute) -> Replacement:
    """make_tuple(a, b) => a struct of the values"""
    struct = cx.type(op.results[0].type)
    if struct != _struct_of([value.type for value in op.operands]):
        raise cx.error(f"makes a tuple of other values than {op.results[0].type} says")
    return packed(cx, list(op.operands), struct)


def _struct_of(types: Sequence[ir.Type]) -> ir.Type:
    return ir.Type.parse(f"!llvm.struct<({', '.join(map(str, types))})>")


@rules.on("cute.unpack_tuple")
def unpack(op: ir.OpView, cx: Cute) -> Replacement:
    """unpack_tuple(t) => the values of the struct"""
    types = [cx.type(result.type) for result in op.results]
    if op.operands[0].type != _struct_of(types):
        raise cx.error(f"takes other values than {cx.before(op.operands[0])} has")
    return unpacked(cx, op.operands[0], types)


@rules.on("cute.derefine")
def derefine(op: ir.OpView, cx: Cute) -> Replacement:
    """derefine(v) => the numbers that the type does not say any more"""
    declared = operand_of(op.results[0].type)
    i64 = ir.IntegerType.get_signless(64)
    numbers = []
    for known, open_ in zip(forgotten(value_of(cx, op.operands[0]), declared), unknown(declared),
                            strict=True):  # fmt: skip
        value = known.value if isinstance(known, Number) else constant(cx, known, i64)  # type: ignore[arg-type]
        numbers.append(Number(open_.divby, wide(cx, value), cx))
    return made(cx, filled(declared, numbers), op.results[0].type)


# --- tensors and their parts ---------------------------------------------------------------------


@rules.on("cute.make_view", "cute.make_tensor")
def make_view(op: ir.OpView, cx: Cute) -> Replacement:
    """make_view(p, l) => the address, and the numbers of the layout"""
    declared = operand_of(op.results[0].type)
    layout = value_of(cx, op.operands[1])
    assert isinstance(declared, View), "verified"
    assert isinstance(layout, Value), "verified"
    view = View(declared.element, declared.space, layout.value)
    return made(cx, view, op.results[0].type, op.operands[0])


@rules.on("cute.get_iter", "cute.recast_iter")
def get_iter(op: ir.OpView, cx: Cute) -> Replacement:
    """The address where a tensor begins"""
    return base_of(cx, op.operands[0])


@rules.on("cute.slice")
def part(op: ir.OpView, cx: Cute) -> Replacement:
    """slice(t, c) => the tensor at a coordinate; free modes stay"""
    source, coordinate = (value_of(cx, value) for value in op.operands)
    if not isinstance(source, View):
        return algebra(op, cx)
    view = tensor_of(cx, op.operands[0])
    assert isinstance(coordinate, Value), "verified"
    try:
        kept, offset = slice_layout(outer_of(view), coordinate.value)
    except LayoutError as error:
        raise cx.error(str(error)) from error
    return _part(op, cx, view, kept, offset)


def _part(op: ir.OpView, cx: Cute, view: View, kept: Layout, offset: it.IntTuple) -> ir.Value:
    """The value of a part of the first operand, which is `view`."""
    base = cut(cx, base_of(cx, op.operands[0]), view, offset)
    return made(cx, with_layout(view, kept), op.results[0].type, base)


@rules.on("cute.local_tile")
def local_tile(op: ir.OpView, cx: Cute) -> Replacement:
    """local_tile(t, tile, c) => the tile at a coordinate of tiles"""
    return _tiled(op, cx, tiling.local_tile)


@rules.on("cute.partition")
def partition(op: ir.OpView, cx: Cute) -> Replacement:
    """partition(t, tile, c) => what a tensor has at one coordinate of each tile"""
    return _tiled(op, cx, tiling.partition)


def _tiled(op: ir.OpView, cx: Cute, by: _Taking) -> Replacement:
    """The part of a tensor that `by` takes of its layout at a coordinate of tiles."""
    view = tensor_of(cx, op.operands[0])
    tiler, coordinate = (value_of(cx, value) for value in op.operands[1:])
    assert isinstance(tiler, Value), "verified"
    assert isinstance(coordinate, Value), "verified"
    try:
        kept, offset = by(outer_of(view), tiler.value, coordinate.value)
    except LayoutError as error:
        raise cx.error(str(error)) from error
    return _part(op, cx, view, kept, offset)


@rules.on("cute.local_partition")
def local_partition(op: ir.OpView, cx: Cute) -> Replacement:
    """local_partition(t, threads, i) => what thread i has of a tensor"""
    source, threads = (value_of(cx, value) for value in op.operands[:2])
    assert isinstance(threads, Value), "verified"
    placed = threads.value
    if not isinstance(source, View):
        return algebra(op, cx)
    view = tensor_of(cx, op.operands[0])
    if sorted(placed.indices()) != list(range(placed.size)):
        raise cx.error(f"expects each thread once, but {placed} leaves some out")
    try:
        if len(op.operands) > 3:
            placed = projected(placed, value_of(cx, op.operands[3]))
        tiles, rests = tiling.zipped_divide(outer_of(view), tuple(mode.size for mode in placed))
    except LayoutError as error:
        raise cx.error(str(error)) from error
    thread = index_of(cx, op.operands[2])
    offset = tiles(tuple(_place(mode, thread) for mode in placed))
    return _part(op, cx, view, rests, offset)


def _place(threads: Layout, thread: Number) -> it.IntTuple:
    """The position of a thread along one mode of a layout of all threads, each there once."""
    total: it.IntTuple = 0
    step = 1
    for extent, stride in threads.int_leaves():
        if extent > 1:
            digit = it.divided(thread, stride)[0] if stride > 1 else thread
            total = it.add(total, it.divided(digit, extent)[1] * step)
        step *= extent
    return total

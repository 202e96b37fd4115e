"""Axis analysis: `AxisInfo` of every integer and pointer value of a function."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import ClassVar

from tile_tileaa.dialect import PtrType

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.analysis import axis_info as facts
from tile_tileas.analysis.axis_info import AxisInfo
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.analysis.forward import Forward
from tile_tileas.dialect.buffers import Buffer

# Values of arith.CmpIPredicate for which a run on the left stays on one side of the bound: slt,
# sge, ult, uge; and one on the right: sgt, sle, ugt, ule.
_LEFT_OF_BOUND, _RIGHT_OF_BOUND = frozenset({2, 5, 6, 9}), frozenset({4, 3, 8, 7})


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """Extents of a tile, () for a scalar."""
    type_ = value.type
    return tuple(type_.shape) if isinstance(type_, ir.RankedTensorType) else ()


def pointee_bytes(type_: ir.Type) -> int:
    """Size of what a pointer (or tile of pointers) points to, in bytes."""
    element = type_.element_type if isinstance(type_, ir.RankedTensorType) else type_
    return element_bytes(ir.TypeAttr(PtrType(element).params[0]).value)


def element_bytes(type_: ir.Type) -> int:
    """Size of a scalar in memory, in bytes; i1 takes one, tf32 (19 bits) four."""
    return 1 << max(0, (type_.width - 1).bit_length() - 3)


def _element(type_: ir.Type) -> ir.Type:
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


class AxisAnalysis(Forward[AxisInfo]):
    """Facts about the integer and pointer values of one function."""

    name: ClassVar[str] = "axis"

    def __init__(self, op: ir.Operation, cx: PassContext | None = None) -> None:
        super().__init__(op)

    def tracks(self, type_: ir.Type) -> bool:
        element = _element(type_)
        return isinstance(element, ir.IntegerType | ir.IndexType | PtrType)

    def unknown(self, value: ir.Value) -> AxisInfo:
        return facts.unknown(shape_of(value))

    def join(self, left: AxisInfo, right: AxisInfo) -> AxisInfo:
        return facts.join(left, right)

    def induction(self, loop: ir.OpView) -> AxisInfo:
        lower, step = self[loop.operands[0]], self[loop.operands[2]]
        return facts.scalar(gcd(lower.scalar, step.scalar))


Rule = Callable[[ir.OpView, AxisAnalysis], AxisInfo]


def _constant(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    value, shape = op.attributes["value"], shape_of(op.results[0])
    if isinstance(value, ir.IntegerAttr):
        return facts.scalar(facts.pow2_divisor(value.value))
    if isinstance(value, ir.DenseIntElementsAttr) and value.is_splat:
        splat = ir.IntegerAttr(value.get_splat_value()).value
        return facts.uniform(shape, facts.pow2_divisor(splat))
    return facts.unknown(shape)


def _assume(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    info = known[op.operands[0]]
    predicate = ir.DictAttr(op.attributes["predicate"])
    kind = ir.StringAttr(predicate["kind"]).value
    if kind == "div_by":
        return _divisible(info, predicate)
    if kind == "same_elements" and info.rank:
        sizes = zip(ir.DenseI64ArrayAttr(predicate["values"]), shape_of(op.results[0]), strict=True)
        # Groups that are aligned and fit: the largest power of two that divides each.
        groups = (min(facts.pow2_divisor(size), extent) for size, extent in sizes)
        constancy = tuple(map(max, info.constancy, groups))
        return AxisInfo(info.contiguity, info.divisibility, constancy)
    return info


def _divisible(info: AxisInfo, predicate: ir.DictAttr) -> AxisInfo:
    divisor = facts.pow2_divisor(ir.IntegerAttr(predicate["divisor"]).value)
    if info.rank == 0:
        return facts.scalar(max(info.scalar, divisor))
    if "every" not in predicate:
        divisors = tuple(
            max(d, divisor) if c == 1 else d
            for d, c in zip(info.divisibility, info.contiguity, strict=True)
        )
        return AxisInfo(info.contiguity, divisors, info.constancy)
    every, along = (ir.IntegerAttr(predicate[key]).value for key in ("every", "along"))
    if every <= info.contiguity[along] or every & (every - 1):
        return info
    contiguity, divisibility = list(info.contiguity), list(info.divisibility)
    contiguity[along], divisibility[along] = every, divisor
    return AxisInfo(tuple(contiguity), tuple(divisibility), info.constancy)


def _compare(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    left, right = known[op.operands[0]], known[op.operands[1]]
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    if predicate in _LEFT_OF_BOUND:
        return facts.ordered_compare(left, right)
    if predicate in _RIGHT_OF_BOUND:
        return facts.ordered_compare(right, left)
    return facts.pointwise([left, right])


def _addptr(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    base, offset = op.operands
    return facts.add(known[base], known[offset], pointee_bytes(base.type))


def _splat(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    return facts.uniform(shape_of(op.results[0]), known[op.operands[0]].scalar)


def _broadcast(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    source, result = op.operands[0], op.results[0]
    return facts.broadcast(known[source], shape_of(source), shape_of(result))


def _view(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    source, result = op.operands[0], op.results[0]
    return facts.reshape(known[source], shape_of(source), shape_of(result))


def _range(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    result = op.results[0]
    return facts.within(facts.counting(shape_of(result)[0]), _width(result.type))


def _pointer_cast(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    """Between a pointer and its address, whose runs count different things."""
    info = known[op.operands[0]]
    pointer = op.operands[0] if op.name.endswith("ptr_to_int") else op.results[0]
    size = pointee_bytes(pointer.type)
    if info.rank == 0 or size == 1:
        return info
    if op.name.endswith("int_to_ptr"):
        return facts.every([info], lambda divisors: divisors[0])
    divisors = tuple(
        d if c == 1 else gcd(d, facts.pow2_divisor(size))
        for c, d in zip(info.contiguity, info.divisibility, strict=True)
    )
    return AxisInfo((1,) * info.rank, divisors, info.constancy)


def _extract(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    info = known[op.operands[0]]
    return facts.scalar(max((info.every_element(axis) for axis in range(info.rank)), default=1))


def _dim_size(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    memref = op.operands[0].owner
    if isinstance(memref, ir.Block) or memref.name != "nv_tileaa.make_memref":
        return facts.scalar(1)
    from tile_tileas.analysis.views import view_of_memref

    size = view_of_memref(memref).sizes[ir.IntegerAttr(op.attributes["dim"]).value]
    return facts.scalar(facts.pow2_divisor(size) if isinstance(size, int) else known[size].scalar)


def _cast(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    """To another width: a run must fit into the narrower one, whichever that is."""
    info = known[op.operands[0]]
    widths = [_width(value.type) for value in (op.operands[0], op.results[0])]
    return facts.within(info, min(widths)) if info.rank else info


def _width(type_: ir.Type) -> int:
    element = _element(type_)
    return element.width if isinstance(element, ir.IntegerType) else 64


def _and(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    infos = [known[operand] for operand in op.operands]
    for info, mask in zip(infos, reversed(op.operands), strict=True):
        number = splat_integer(mask)
        if number is not None and number > 0 and not number & (number + 1):
            return facts.low_bits(info, number.bit_length())
    return facts.every(infos, max)


def _power(value: ir.Value) -> int | None:
    """log2 of a splat that is a power of two, read as unsigned; else None."""
    number = splat_integer(value)
    if number is None:
        return None
    number %= 1 << _width(value.type)
    return number.bit_length() - 1 if number and not number & (number - 1) else None


def _shift_amount(op: ir.OpView) -> int | None:
    amount = splat_integer(op.operands[1])
    fits = amount is not None and 0 <= amount < _width(op.results[0].type)
    return amount if fits else None


def _shift_left(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    info, amount = known[op.operands[0]], _shift_amount(op)
    if amount is None:
        return facts.pointwise([info, known[op.operands[1]]])
    factor = facts.uniform(shape_of(op.results[0]), 1 << amount)
    return facts.multiply(info, factor) if info.rank else facts.scalar(info.scalar << amount)


def _shift_right(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    info, amount = known[op.operands[0]], _shift_amount(op)
    if amount is None:
        return facts.pointwise([info, known[op.operands[1]]])
    return facts.shifted(info, amount)


def _floor_divide(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    """Rounded down, or unsigned."""
    info, bits = known[op.operands[0]], _power(op.operands[1])
    signed_minimum = bits == _width(op.results[0].type) - 1 and op.name == "arith.floordivsi"
    if bits is None or signed_minimum:
        return facts.pointwise([info, known[op.operands[1]]])
    return facts.shifted(info, bits)


def _divide(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    """Rounded to zero or up: only what is exact is known."""
    info, bits = known[op.operands[0]], _power(op.operands[1])
    if bits is None:
        return facts.pointwise([info, known[op.operands[1]]])
    exact = facts.every([info], lambda divisors: max(1, divisors[0] >> bits))
    return exact if info.rank else facts.scalar(max(1, info.scalar >> bits))


def _remainder(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    info, bits = known[op.operands[0]], _power(op.operands[1])
    if bits is not None and op.name == "arith.remui":
        return facts.low_bits(info, bits)
    # x - c * q, whatever c is.
    return facts.every([info, known[op.operands[1]]], lambda divisors: gcd(*divisors))


def _either(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    """The smaller or larger of two: any mixture of them."""
    return facts.every([known[o] for o in op.operands], lambda divisors: gcd(*divisors))


def _select(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    condition, left, right = op.operands
    if shape_of(condition):
        return facts.either([known[left], known[right]], known[condition].constancy)
    return facts.join(known[left], known[right])


def _permute(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    return facts.permute(
        known[op.operands[0]], list(ir.DenseI32ArrayAttr(op.attributes["permutation"]))
    )


def _cat(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    left, right = op.operands
    return facts.join(known[left], known[right])


def _extract_slice(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    source, shape = op.operands[0], shape_of(op.results[0])
    return facts.unknown(shape) if _is_buffer(source) else facts.part(known[source], shape)


def _insert_slice(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    source, whole = op.operands[0], op.operands[1]
    if _is_buffer(source):
        return facts.unknown(shape_of(op.results[0]))
    return facts.join(known[source], facts.part(known[whole], shape_of(source)))


def _is_buffer(value: ir.Value) -> bool:
    """Nothing is known of what lies in one, which slices may be of once layouts are converted."""
    return Buffer.of(value.type) is not None


_RULES: dict[str, Rule] = {
    "arith.addi": lambda op, known: facts.add(known[op.operands[0]], known[op.operands[1]]),
    "arith.andi": _and,
    "arith.ceildivsi": _divide,
    "arith.ceildivui": _divide,
    "arith.cmpi": _compare,
    "arith.constant": _constant,
    "arith.divsi": _divide,
    "arith.divui": _floor_divide,
    "arith.extsi": _cast,
    "arith.extui": _cast,
    "arith.floordivsi": _floor_divide,
    "arith.index_cast": _cast,
    "arith.maxsi": _either,
    "arith.maxui": _either,
    "arith.minsi": _either,
    "arith.minui": _either,
    "arith.muli": lambda op, known: facts.multiply(known[op.operands[0]], known[op.operands[1]]),
    "arith.ori": _either,
    "arith.remsi": _remainder,
    "arith.remui": _remainder,
    "arith.select": _select,
    "arith.shli": _shift_left,
    "arith.shrsi": _shift_right,
    "arith.shrui": _shift_right,
    "arith.subi": lambda op, known: facts.subtract(known[op.operands[0]], known[op.operands[1]]),
    "arith.trunci": _cast,
    "arith.xori": _either,
    "nv_tileaa.addptr": _addptr,
    "nv_tileaa.assume": _assume,
    "nv_tileaa.broadcast": _broadcast,
    "nv_tileaa.cat": _cat,
    "nv_tileaa.extract": _extract,
    "nv_tileaa.extract_slice": _extract_slice,
    "nv_tileaa.get_dim_size": _dim_size,
    "nv_tileaa.insert_slice": _insert_slice,
    "nv_tileaa.int_to_ptr": _pointer_cast,
    "nv_tileaa.make_range": _range,
    "nv_tileaa.permute": _permute,
    "nv_tileaa.ptr_to_int": _pointer_cast,
    "nv_tileaa.splat": _splat,
    "nv_tileaa.view": _view,
    "nv_tileas.cat": _cat,
    "nv_tileas.convert_layout": lambda op, known: known[op.operands[0]],
    "nv_tileas.extract_slice": _extract_slice,
    "nv_tileas.insert_slice": _insert_slice,
    "nv_tileas.view": _view,
}
AxisAnalysis.rules = _RULES

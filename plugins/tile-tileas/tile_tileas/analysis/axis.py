"""Axis analysis: `AxisInfo` of every integer and pointer value of a function.

One pass in program order; values that loops carry are not followed, except induction variables.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import ClassVar

from tile_tileaa.dialect import PtrType

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.analysis import axis_info as facts
from tile_tileas.analysis.axis_info import AxisInfo

# Values of arith.CmpIPredicate for which a run on the left stays on one side of the bound:
# slt, sge, ult, uge.
_ALIGNED_PREDICATES = frozenset({2, 5, 6, 9})
_SAME = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast")


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


class AxisAnalysis:
    """Facts about the integer and pointer values of one function."""

    name: ClassVar[str] = "axis"

    def __init__(self, op: ir.Operation, cx: PassContext | None = None) -> None:
        self._infos: dict[ir.Value, AxisInfo] = {}
        for region in op.regions:
            self._region(region)

    def __getitem__(self, value: ir.Value) -> AxisInfo:
        return self._infos.get(value) or facts.unknown(shape_of(value))

    def _region(self, region: ir.Region) -> None:
        for block in region.blocks:
            for op in block.operations:
                if op.name == "scf.for":
                    lower, step = self[op.operands[0]], self[op.operands[2]]
                    body = op.regions[0].blocks[0]
                    self._infos[body.arguments[0]] = facts.scalar(gcd(lower.scalar, step.scalar))
                rule = _RULES.get(op.name)
                if rule is not None:
                    self._infos[op.results[0]] = rule(op, self)
                for inner in op.regions:
                    self._region(inner)


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
    if ir.StringAttr(predicate["kind"]).value != "div_by":
        return info
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
    if predicate in _ALIGNED_PREDICATES:
        return facts.ordered_compare(left, right)
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


def _pointwise(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    return facts.pointwise([known[operand] for operand in op.operands])


def _dim_size(op: ir.OpView, known: AxisAnalysis) -> AxisInfo:
    memref = op.operands[0].owner
    if isinstance(memref, ir.Block) or memref.name != "nv_tileaa.make_memref":
        return facts.scalar(1)
    from tile_tileas.analysis.views import view_of_memref

    size = view_of_memref(memref).sizes[ir.IntegerAttr(op.attributes["dim"]).value]
    return facts.scalar(facts.pow2_divisor(size) if isinstance(size, int) else known[size].scalar)


_RULES: dict[str, Rule] = {
    "arith.constant": _constant,
    "arith.addi": lambda op, known: facts.add(known[op.operands[0]], known[op.operands[1]]),
    "arith.muli": lambda op, known: facts.multiply(known[op.operands[0]], known[op.operands[1]]),
    "arith.cmpi": _compare,
    "arith.andi": _pointwise,
    "arith.ori": _pointwise,
    "arith.xori": _pointwise,
    "nv_tileaa.make_range": lambda op, known: facts.counting(shape_of(op.results[0])[0]),
    "nv_tileaa.assume": _assume,
    "nv_tileaa.addptr": _addptr,
    "nv_tileaa.splat": _splat,
    "nv_tileaa.broadcast": _broadcast,
    "nv_tileaa.get_dim_size": _dim_size,
    "nv_tileaa.view": _view,
    "nv_tileas.view": _view,
} | {name: lambda op, known: known[op.operands[0]] for name in _SAME}

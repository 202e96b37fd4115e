"""What the rule files share: the rule set, operand groups, attribute shorthands."""

from __future__ import annotations

from tile_cudatile.ops import BODY_OPS

from tile_core.convert import Conversion, RuleSet
from tile_core.mlir import ir

rules = RuleSet("convert-cudatile-to-tileaa")


def groups(op: ir.OpView) -> dict[str, list[ir.Value]]:
    """Operands by the group names of the operation's declaration; absent optionals are []."""
    spec = BODY_OPS.by_name[op.name.removeprefix("cuda_tile.")]
    operands = list(op.operands)
    if spec.variable:
        sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    else:
        sizes = [1] * len(operands)
    found: dict[str, list[ir.Value]] = {}
    start = 0
    for group, size in zip(spec.operands, sizes, strict=True):
        found[group.name] = operands[start : start + size]
        start += size
    return found


def text(op: ir.OpView, name: str, default: str = "") -> str:
    """The string attribute `name`, or `default`."""
    attributes = op.attributes
    return ir.StringAttr(attributes[name]).value if name in attributes else default


def i32(value: int) -> ir.IntegerAttr:
    """A 32-bit integer attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def element(type_: ir.Type) -> ir.Type:
    """The element type of a tile, or the scalar type itself."""
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


def constant(cx: Conversion, type_: ir.Type, value: int | float) -> ir.Value:
    """`arith.constant` of `type_`, the same number everywhere."""
    kind = element(type_)
    scalar = (
        ir.IntegerAttr.get(kind, value)
        if isinstance(kind, ir.IntegerType)
        else ir.FloatAttr.get(kind, float(value))
    )
    is_tile = isinstance(type_, ir.RankedTensorType)
    attr = ir.DenseElementsAttr.get_splat(type_, scalar) if is_tile else scalar
    return cx.create("arith.constant", [], [type_], {"value": attr}).result

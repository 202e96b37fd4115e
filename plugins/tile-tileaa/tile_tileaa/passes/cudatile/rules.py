"""What the rule files share: the rule set, operand groups, attribute shorthands."""

from __future__ import annotations

from tile_cudatile.dialect import operand_groups as groups

from tile_core.convert import Conversion, RuleSet
from tile_core.mlir import ir
from tile_core.passes import error_at

__all__ = ["constant", "element", "expect_bytes", "groups", "i32", "rules", "text"]

rules = RuleSet("convert-cudatile-to-tileaa")


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


def expect_bytes(op: ir.OpView, kind: ir.Type) -> None:
    """Raise an error for elements in memory that are smaller than a byte and share it."""
    if str(kind) == "f4E2M1FN":
        raise error_at(
            op,
            f"works on elements of type {kind} in memory, which is not supported",
            hint="access the bytes as i8, and use cuda_tile.unpack and cuda_tile.pack",
        )


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

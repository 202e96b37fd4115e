"""The rules' table, and what they share: constants, splats, the same element everywhere."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.rewrite import Rewriter, Rewrites, made_by
from tile_tileaa.dialect.types import element_of

rules = Rewrites("tileaa-canonicalize")


def constant_of(value: ir.Value) -> ir.Attribute | None:
    """The attribute of an `arith.constant`."""
    op = made_by(value, "arith.constant")
    return None if op is None else op.attributes["value"]


def uniform_constant(value: ir.Value) -> ir.Attribute | None:
    """The number that a constant, or every element of a constant tile, is.

    Looks through `splat`.
    """
    splat = made_by(value, "nv_tileaa.splat")
    attr = constant_of(value if splat is None else splat.operands[0])
    if isinstance(attr, ir.DenseElementsAttr):
        return attr.get_splat_value() if attr.is_splat else None
    return attr


def uniform_integer(value: ir.Value) -> int | None:
    """As `uniform_constant`, as a signed number of the element's width; i1 is 0 or 1."""
    attr = uniform_constant(value)
    if not isinstance(attr, ir.IntegerAttr | ir.BoolAttr):
        return None
    number, type_ = int(attr.value), element_of(value.type)
    if not isinstance(type_, ir.IntegerType):
        return None
    if type_.width == 1:
        return number & 1
    half = 1 << (type_.width - 1)
    return (number + half) % (2 * half) - half


def same_everywhere(value: ir.Value) -> bool:
    """Whether `scalar_of` can tell the one element that a tile consists of."""
    if made_by(value, "nv_tileaa.splat") is not None:
        return True
    attr = constant_of(value)
    return isinstance(attr, ir.DenseElementsAttr) and attr.is_splat


def scalar_of(value: ir.Value, cx: Rewriter) -> ir.Value:
    """The element of a tile that is the `same_everywhere`."""
    splat = made_by(value, "nv_tileaa.splat")
    if splat is not None:
        return splat.operands[0]
    attr = constant_of(value)
    assert isinstance(attr, ir.DenseElementsAttr), "checked by same_everywhere"
    return number(attr.get_splat_value(), element_of(value.type), cx)


def number(attr: ir.Attribute, type_: ir.Type, cx: Rewriter) -> ir.Value:
    """`arith.constant`: `attr` of an element type, or a tile full of it."""
    if isinstance(type_, ir.RankedTensorType):
        attr = ir.DenseElementsAttr.get_splat(type_, attr)
    return cx.create("arith.constant", [], [type_], {"value": attr}).result


def splat(value: ir.Value, type_: ir.Type, cx: Rewriter) -> ir.Value:
    """A tile of `type_` that is `value` everywhere."""
    return cx.create("nv_tileaa.splat", [value], [type_]).result


def attributes_of(op: ir.OpView | ir.Operation) -> dict[str, ir.Attribute]:
    """All attributes, by name."""
    return {name: op.attributes[name] for name in op.attributes}

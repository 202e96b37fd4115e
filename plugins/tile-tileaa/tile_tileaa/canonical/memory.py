"""Accesses whose mask is known."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.rewrite import Rewriter
from tile_tileaa.canonical.registry import attributes_of, number, rules, uniform_integer
from tile_tileaa.dialect.accesses import operands_by_name
from tile_tileaa.dialect.base import mem_token
from tile_tileaa.dialect.types import element_of, is_integer


def token_after(given: dict[str, ir.Value], cx: Rewriter) -> ir.Value:
    """The token of an access that is not made: the one it waits for."""
    if "token" in given:
        return given["token"]
    return cx.create("nv_tileaa.create_mem_token", [], [mem_token()]).result


def rebuilt(
    name: str,
    like: ir.OpView,
    groups: list[ir.Value | None],
    cx: Rewriter,
    attributes: dict[str, ir.Attribute] | None = None,
) -> list[ir.Value]:
    """The results of an access with these operands (None: absent) and `like`'s result types."""
    found = attributes_of(like) if attributes is None else attributes
    sizes = ir.DenseI32ArrayAttr.get([int(value is not None) for value in groups])
    made = cx.create(
        name,
        [value for value in groups if value is not None],
        [result.type for result in like.results],
        {**found, "operandSegmentSizes": sizes},
    )
    return list(made.results)


@rules.on("nv_tileaa.load")
def load_of_all(op: ir.OpView, cx: Rewriter) -> list[ir.Value] | None:
    """load(p, true, other) => load(p)"""
    given = operands_by_name(op)
    if "mask" not in given or uniform_integer(given["mask"]) != 1:
        return None
    return rebuilt(op.name, op, [given["base"], None, None, given.get("token")], cx)


@rules.on("nv_tileaa.load")
def load_of_nothing(op: ir.OpView, cx: Rewriter) -> list[ir.Value] | None:
    """load(p, false, other) => other, or any value; the next access waits for what it waited for"""
    given = operands_by_name(op)
    if "mask" not in given or uniform_integer(given["mask"]) != 0 or "volatile" in op.attributes:
        return None
    if "other" in given:
        return [given["other"], token_after(given, cx)]
    type_ = op.results[0].type
    zero = _zero(element_of(type_))
    return None if zero is None else [number(zero, type_, cx), token_after(given, cx)]


def _zero(element: ir.Type) -> ir.Attribute | None:
    """Any value does; pointers have no constant."""
    if is_integer(element):
        return ir.IntegerAttr.get(element, 0)
    return ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else None


@rules.on("nv_tileaa.store")
def store_of_all(op: ir.OpView, cx: Rewriter) -> list[ir.Value] | None:
    """store(p, x, true) => store(p, x)"""
    given = operands_by_name(op)
    if "mask" not in given or uniform_integer(given["mask"]) != 1:
        return None
    groups = [given["base"], given["value"], None, given.get("token")]
    return rebuilt(op.name, op, groups, cx)


@rules.on("nv_tileaa.store")
def store_of_nothing(op: ir.OpView, cx: Rewriter) -> list[ir.Value] | None:
    """store(p, x, false) => nothing; the next access waits for what it waited for"""
    given = operands_by_name(op)
    if "mask" not in given or uniform_integer(given["mask"]) != 0 or "volatile" in op.attributes:
        return None
    return [token_after(given, cx)]

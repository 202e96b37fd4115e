"""Reshaping, broadcasting and taking apart of tiles."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.rewrite import Rewriter, made_by
from tile_tileaa.canonical.registry import (
    attributes_of,
    constant_of,
    number,
    rules,
    same_everywhere,
    scalar_of,
    splat,
)
from tile_tileaa.dialect.math import MATH
from tile_tileaa.dialect.types import element_of, shape_of

_RESHAPED = ("nv_tileaa.view", "nv_tileaa.expand_dims", "nv_tileaa.broadcast")
#: What keeps the one element of a one-element tile.
_MOVED = (*_RESHAPED, "nv_tileaa.permute")
_ELEMENTWISE = frozenset(f"nv_tileaa.{spec.name}" for spec in MATH) | {"nv_tileaa.addptr"}
#: Predicates of `assume` that hold of each element by itself.
_OF_ELEMENTS = ("div_by", "bounded")


@rules.on("nv_tileaa.view", "nv_tileaa.broadcast", "nv_tileaa.permute")
def reshape_to_itself(op: ir.OpView, _: Rewriter) -> ir.Value | None:
    """view(x), broadcast(x) => x, if the type is x's; so is permute, if no axis moves"""
    source = op.operands[0]
    if source.type != op.results[0].type:
        return None
    if op.name == "nv_tileaa.permute":
        axes = list(ir.DenseI32ArrayAttr(op.attributes["permutation"]))
        if axes != list(range(len(axes))):
            return None
    return source


@rules.on("nv_tileaa.view")
def view_of_view(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """view(view(x)), view(expand_dims(x)) => view(x)"""
    inner = made_by(op.operands[0], "nv_tileaa.view", "nv_tileaa.expand_dims")
    if inner is None:
        return None
    return cx.create("nv_tileaa.view", [inner.operands[0]], [op.results[0].type]).result


@rules.on(*_RESHAPED)
def reshape_of_splat(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """view, broadcast, expand_dims of splat(x) => splat(x) of the final type; so are constants"""
    source, type_ = op.operands[0], op.results[0].type
    inner = made_by(source, "nv_tileaa.splat")
    if inner is not None:
        return splat(inner.operands[0], type_, cx)
    attr = constant_of(source)
    if not isinstance(attr, ir.DenseElementsAttr) or not attr.is_splat:
        return None
    return number(attr.get_splat_value(), type_, cx)


@rules.on("nv_tileaa.assume")
def assume_of_splat(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """assume(splat(x)) => splat(assume(x)), if each element is assumed to be so by itself"""
    inner = made_by(op.operands[0], "nv_tileaa.splat")
    predicate = ir.DictAttr(op.attributes["predicate"])
    if inner is None or "every" in predicate:
        return None
    if ir.StringAttr(predicate["kind"]).value not in _OF_ELEMENTS:
        return None
    source = inner.operands[0]
    known = cx.create("nv_tileaa.assume", [source], [source.type], {"predicate": predicate})
    return splat(known.result, op.results[0].type, cx)


@rules.on("arith.select")
def select_of_splats(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """select(c, splat(x), splat(y)) => splat(select(c, x, y)), if c is a scalar or a splat"""
    condition, then, other = op.operands
    if not isinstance(op.results[0].type, ir.RankedTensorType):
        return None
    if not (same_everywhere(then) and same_everywhere(other)):
        return None
    if isinstance(condition.type, ir.RankedTensorType):
        if not same_everywhere(condition):
            return None
        condition = scalar_of(condition, cx)
    arms = [scalar_of(then, cx), scalar_of(other, cx)]
    chosen = cx.create("arith.select", [condition, *arms], [arms[0].type])
    return splat(chosen.result, op.results[0].type, cx)


@rules.on("nv_tileaa.extract")
def extract_of_splat(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """extract(splat(x)) => x; so are constants"""
    source = op.operands[0]
    return scalar_of(source, cx) if same_everywhere(source) else None


@rules.on("nv_tileaa.extract")
def extract_of_reshape(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """extract of view, expand_dims, broadcast, permute of x => extract(x)"""
    inner = made_by(op.operands[0], *_MOVED)
    if inner is None:
        return None
    source = inner.operands[0]
    if not shape_of(source.type):  # a view of a scalar
        return source
    return cx.create("nv_tileaa.extract", [source], [op.results[0].type]).result


@rules.on("nv_tileaa.extract")
def extract_of_elementwise(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """extract(f(x, y)) => f(extract(x), extract(y)), if nothing else uses f"""
    source = op.operands[0]
    inner = source.owner
    if isinstance(inner, ir.Block) or not _is_elementwise(inner) or not _has_one_use(source):
        return None
    scalars = [_extracted(value, cx) for value in inner.operands]
    result = [element_of(source.type)]
    return cx.create(inner.name, scalars, result, attributes_of(inner)).result


def _is_elementwise(op: ir.OpView | ir.Operation) -> bool:
    name = op.name
    if not name.startswith(("arith.", "math.")) and name not in _ELEMENTWISE:
        return False
    return bool(len(op.operands)) and len(op.results) == 1 and not len(op.regions)


def _has_one_use(value: ir.Value) -> bool:
    uses = iter(value.uses)
    next(uses)
    return next(uses, None) is None


def _extracted(value: ir.Value, cx: Rewriter) -> ir.Value:
    if not isinstance(value.type, ir.RankedTensorType):  # the condition of a selection
        return value
    return cx.create("nv_tileaa.extract", [value], [value.type.element_type]).result

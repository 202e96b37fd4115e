"""Comparisons of integers that were made wider."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.rewrite import Rewriter, made_by
from tile_tileaa.canonical.registry import rules, splat

_EXTENSIONS = ("arith.extsi", "arith.extui")
#: Signed predicates of arith.CmpIPredicate -> unsigned ones: wider unsigned numbers have no sign.
_UNSIGNED = {2: 6, 3: 7, 4: 8, 5: 9}


@rules.on("arith.cmpi")
def comparison_of_extended(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """cmpi(ext(x), ext(y)) => cmpi(x, y), both extended alike; also where one is a splat of that

    Extension of sign keeps the order of signed numbers and that of unsigned ones.
    """
    left, right = (_extended(value) for value in op.operands)
    if left is None or right is None or left[1] != right[1]:
        return None
    sources = [left[0], right[0]]
    if _element(sources[0]) != _element(sources[1]):
        return None
    shape = op.results[0].type
    if isinstance(shape, ir.RankedTensorType):
        narrow = ir.RankedTensorType.get(shape.shape, _element(sources[0]), shape.encoding)
        sources = [
            one if isinstance(one.type, ir.RankedTensorType) else splat(one, narrow, cx)
            for one in sources
        ]
    predicate = ir.IntegerAttr(op.attributes["predicate"])
    if left[1] == "arith.extui":
        number = _UNSIGNED.get(predicate.value, predicate.value)
        predicate = ir.IntegerAttr.get(predicate.type, number)
    return cx.create("arith.cmpi", sources, [shape], {"predicate": predicate}).result


def _extended(value: ir.Value) -> tuple[ir.Value, str] | None:
    """What was extended, a scalar if `value` is a splat, and by which operation."""
    inner = made_by(value, "nv_tileaa.splat")
    op = made_by(value if inner is None else inner.operands[0], *_EXTENSIONS)
    return None if op is None else (op.operands[0], op.name)


def _element(value: ir.Value) -> ir.Type:
    type_ = value.type
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_

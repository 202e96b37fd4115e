"""Matrix products."""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_tileaa.passes.cudatile.rules import rules, text

_SEGMENTS = "operandSegmentSizes"


def _dot(op: ir.OpView, cx: Conversion, flags: dict[str, ir.Attribute]) -> ir.Value:
    operands = list(op.operands)
    scales = int(len(operands) > 3)
    flags[_SEGMENTS] = ir.DenseI32ArrayAttr.get([1, 1, 1, scales, scales])
    return cx.create("nv_tileaa.dot", operands, [cx.type(op.results[0].type)], flags).result


@rules.on("cuda_tile.mmaf", "cuda_tile.mmaf_scaled")
def mmaf(op: ir.OpView, cx: Conversion) -> ir.Value:
    """mmaf(a, b, c [, scales]) => nv_tileaa.dot"""
    fast = {"fast_acc": ir.UnitAttr.get()} if "fast_acc" in op.attributes else {}
    return _dot(op, cx, dict(fast))


@rules.on("cuda_tile.mmai")
def mmai(op: ir.OpView, cx: Conversion) -> ir.Value:
    """mmai(a, b, c) {signedness_lhs, signedness_rhs} => nv_tileaa.dot {signedness_a, .._b}"""
    flags: dict[str, ir.Attribute] = {
        "signedness_a": ir.StringAttr.get(text(op, "signedness_lhs")),
        "signedness_b": ir.StringAttr.get(text(op, "signedness_rhs")),
    }
    return _dot(op, cx, flags)

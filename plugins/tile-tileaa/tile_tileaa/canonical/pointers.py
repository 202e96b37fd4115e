"""Addresses."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.rewrite import Rewriter, made_by
from tile_tileaa.canonical.registry import number, rules, uniform_integer
from tile_tileaa.dialect.types import element_of

_ADDRESS_BITS = 64


@rules.on("nv_tileaa.addptr")
def no_offset(op: ir.OpView, _: Rewriter) -> ir.Value | None:
    """addptr(p, 0) => p"""
    return op.operands[0] if uniform_integer(op.operands[1]) == 0 else None


@rules.on("nv_tileaa.addptr")
def addptr_of_addptr(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """addptr(addptr(p, x), y) => addptr(p, x + y), if x + y cannot wrap where addresses do not

    Offsets as wide as addresses wrap as those do. Narrower ones are extended before they are
    added, so that only a sum known to fit is the same. An offset from another block, which may be
    outside of a loop, stays there.
    """
    inner = made_by(op.operands[0], "nv_tileaa.addptr")
    if inner is None or inner.operation.block != op.operation.block:
        return None
    base, first = inner.operands
    second = op.operands[1]
    if first.type != second.type:
        return None
    width = element_of(first.type).width
    known = uniform_integer(first), uniform_integer(second)
    if known[0] is not None and known[1] is not None:
        total, half = known[0] + known[1], 1 << (width - 1)
        if not -half <= total < half:
            return None
        kind = element_of(first.type)
        offset = number(ir.IntegerAttr.get(kind, total), first.type, cx)
    elif width == _ADDRESS_BITS:
        offset = cx.create("arith.addi", [first, second], [first.type]).result
    else:
        return None
    return cx.create("nv_tileaa.addptr", [base, offset], [op.results[0].type]).result

"""Atomic updates that change nothing: ordered loads.

Only of integers, since adding zero changes -0.0 and NaNs, and only where nothing is released: a
load cannot be what another thread synchronises with.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.rewrite import Rewriter
from tile_tileaa.canonical.memory import rebuilt
from tile_tileaa.canonical.registry import rules, uniform_integer
from tile_tileaa.dialect.accesses import operands_by_name
from tile_tileaa.dialect.types import element_of, is_integer

_NOT_RELEASING = ("relaxed", "acquire")
#: Mode -> the number that changes nothing.
_NEUTRAL = {"add": 0, "or": 0, "xor": 0, "and": -1}
_KEPT = ("mem_semantic", "mem_scope", "cache_modifier", "eviction_policy", "volatile")


def _may_be_a_load(op: ir.OpView) -> bool:
    semantic = ir.StringAttr(op.attributes["mem_semantic"]).value
    return semantic in _NOT_RELEASING and is_integer(element_of(op.results[0].type))


def _load(
    op: ir.OpView, given: dict[str, ir.Value], other: ir.Value | None, cx: Rewriter
) -> list[ir.Value]:
    kept = {name: op.attributes[name] for name in _KEPT if name in op.attributes}
    groups = [given["base"], given.get("mask"), other, given.get("token")]
    return rebuilt("nv_tileaa.load", op, groups, cx, kept)


@rules.on("nv_tileaa.atomic_rmw")
def rmw_of_nothing(op: ir.OpView, cx: Rewriter) -> list[ir.Value] | None:
    """atomic_rmw(p, x) => ordered load(p), if no update by x changes anything"""
    given = operands_by_name(op)
    neutral = _NEUTRAL.get(ir.StringAttr(op.attributes["rmw_mode"]).value)
    if neutral is None or not _may_be_a_load(op):
        return None
    if uniform_integer(given["value"]) != neutral:
        return None
    return _load(op, given, None, cx)


@rules.on("nv_tileaa.atomic_cas")
def cas_of_itself(op: ir.OpView, cx: Rewriter) -> list[ir.Value] | None:
    """atomic_cas(p, x, x) => ordered load(p); where the mask is false, x"""
    given = operands_by_name(op)
    cmp, value = given["cmp"], given["value"]
    if not _may_be_a_load(op):
        return None
    known = uniform_integer(cmp)
    if cmp != value and (known is None or known != uniform_integer(value)):
        return None
    return _load(op, given, cmp if "mask" in given else None, cx)

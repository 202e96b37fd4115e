"""tileaa-canonicalize: local rewrites of nv_tileaa, to a fixed point."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileaa.canonical import rules


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Simplify tiles, addresses, masked and atomic accesses, and products of constants."""

    name = "tileaa-canonicalize"
    anchor = "func.func"
    dependent_dialects = ("nv_tileaa", "arith")
    statistics = rules.statistics

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for statistic, count in sorted(rules.apply(op, cx).items()):
            cx.count(statistic, count)

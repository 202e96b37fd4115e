"""tileas-canonicalize: local rewrites of nv_tileas, to a fixed point."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.canonical import coalescing, rules


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Simplify slices of tiles and the branches around them."""

    name = "tileas-canonicalize"
    anchor = "func.func"
    dependent_dialects = ("nv_tileaa", "nv_tileas", "arith", "scf")
    statistics = {**rules.statistics, **coalescing.statistics}

    coalesce_loops: bool = option(
        False, "merge nests of loops; what is known of their variables then has to be found anew"
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        applied = rules.apply(op, cx)
        if self.coalesce_loops:
            applied += coalescing.apply(op, cx)
        for statistic, count in sorted(applied.items()):
            cx.count(statistic, count)

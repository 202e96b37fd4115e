"""nvptx-check-convergence: barriers that not all threads of a block reach together.

A check for those who work on the lowering, in no pipeline: it knows nothing of folds over all
lanes, whose result is the same everywhere although it came by shuffles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import ALL_ANALYSES, Pass, PassContext, error_at
from tile_core.walk import children
from tile_nvptx.analysis.uniformity import Same, UniformityAnalysis

_BARRIERS = ("nvvm.barrier", "nvvm.barrier0", "nvvm.barrier.reduction")
_CONTROL = ("scf.for", "scf.if", "scf.while")


@dataclass(frozen=True)
class CheckConvergence(Pass):
    """Refuse barriers of a block under a branch that only some of its threads take."""

    name = "nvptx-check-convergence"
    anchor = "gpu.module"
    preserves = ALL_ANALYSES
    statistics = {"barriers": "barriers that all threads reach"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for func in children(op):
            if func.name != "func.func":
                continue
            known = UniformityAnalysis(func)
            for barrier, way in _barriers(func.regions[0], known, Same.BLOCK):
                if way < Same.BLOCK:
                    raise error_at(
                        barrier, "stands where not all threads of the block are known to come by"
                    )
                cx.count("barriers")


def _barriers(
    region: ir.Region, known: UniformityAnalysis, way: Same
) -> Iterator[tuple[ir.OpView, Same]]:
    """Every barrier inside, and who reaches it together."""
    for block in region.blocks:
        for op in block.operations:
            name = op.operation.name
            if name in _BARRIERS:
                yield op, way
            inner = min(way, known.decides(op)) if name in _CONTROL else way
            for part in op.regions:
                yield from _barriers(part, known, inner)

"""tileas-verify-pipes: stages are taken and given back in turn, and all agents can finish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tile_core.mlir import ir
from tile_core.passes import ALL_ANALYSES, Pass, PassContext, error_at
from tile_tileas.pipes.check import problems_of
from tile_tileas.pipes.extract import extract


@dataclass(frozen=True)
class VerifyPipes(Pass):
    """Check that what agents do with pipes is balanced on every path and cannot lock up."""

    name = "tileas-verify-pipes"
    anchor = "func.func"
    preserves = ALL_ANALYSES
    statistics: ClassVar[dict[str, str]] = {"pipes": "pipes checked", "steps": "uses of pipes"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        found = extract(op.opview)
        cx.count("pipes", len(found.kernel.pipes))
        cx.count("steps", len(found.steps))
        for problem in problems_of(found.kernel):
            step = problem.step
            where = op if step is None else found.steps[step.source]
            raise error_at(where, f"breaks the protocol of its pipe: {problem.text}")

"""nvptx-verify: what the emitters refuse, asked for on its own."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import ALL_ANALYSES, Pass, PassContext
from tile_nvptx.emit.guards import check_kernels
from tile_nvptx.emit.nvvm_rules import check_operations


@dataclass(frozen=True)
class VerifyNvvm(Pass):
    """Refuse kernels and operations that LLVM or ptxas would crash on, or silently change."""

    name = "nvptx-verify"
    anchor = "gpu.module"
    preserves = ALL_ANALYSES

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        check_kernels(op, cx.target)
        check_operations(op, cx.target)

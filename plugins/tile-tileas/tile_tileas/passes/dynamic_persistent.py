"""tileas-dynamic-persistent: blocks take further tile blocks until none is left (`taken_over`)."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.kernel_spec import num_warps
from tile_tileas.pipelining.taken_over import TakenOver, is_taken_over, problem_of


@dataclass(frozen=True)
class DynamicPersistent(Pass):
    """Make the kernel into dynamic persistent kernels."""

    name = "tileas-dynamic-persistent"
    anchor = "func.func"
    statistics = {"kernels": "kernels whose blocks take further tile blocks"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if "nv_tileaa.kernel" not in op.attributes:
            return
        if is_taken_over(op):
            cx.missed(op, "Kernel is already dynamic persistent")
            return
        num_warps(op)  # raises an error where nothing says how the kernel is launched
        reason = problem_of(op, cx.target.sm)
        if reason is not None:
            cx.failed(op, f"blocks do not take further tile blocks: {reason}",
                      category="schedule", name="DynamicPersistentFailed")  # fmt: skip
            return
        TakenOver(op).wrap()
        cx.count("kernels")
        cx.passed(op, "blocks take further tile blocks until none is left")

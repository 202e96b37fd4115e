"""`example-limit-registers`: bound the registers that a thread of a kernel may use."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option


def _in_range(count: int) -> str | None:
    # PTX ISA, .maxnreg; the hardware has at most 255 per thread.
    return None if 24 <= count <= 255 else f"must be 24 to 255, but got {count}"


@dataclass(frozen=True)
class LimitRegisters(Pass):
    """Give kernels `.maxnreg`, so that more blocks fit on a multiprocessor."""

    name = "example-limit-registers"
    anchor = "gpu.module"
    statistics = {"limited": "kernels that got a limit"}
    count: int = option(64, "registers per thread", check=_in_range)

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        limit = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), self.count)
        for func in op.regions[0].blocks[0].operations:
            attributes = func.operation.attributes
            if "nvvm.kernel" not in attributes:
                continue
            if "nvvm.maxnreg" in attributes:
                cx.missed(func.operation, "has a register limit already")
                continue
            attributes["nvvm.maxnreg"] = limit
            cx.count("limited")

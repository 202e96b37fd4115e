"""convert-pipeline-to-nvvm."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.cutlass.dialect.around import kernel_spec

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_core.walk import children
from tile_nvptx.passes.cutlass import (  # noqa: F401
    barriers,
    launched,
    mods,
    pipes,
    schedulers,
    streamk,
    striped,
)
from tile_nvptx.passes.cutlass.state import State, convert_type, rules
from tile_nvptx.passes.tileas.device.helpers import Helpers


@dataclass(frozen=True)
class ConvertPipelineToNvvm(Pass):
    """Convert pipes, barriers and tile schedulers of cutlass: handshakes become mbarriers, cursors
    and work records of integers, executors branches on the number of the warp.

    Runs before `convert-cute-and-cute-nvgpu-to-llvm`, which goes on with the addresses. A warp
    takes part in a pipe if the innermost `async_exec` around a step has it in its mask; steps that
    others reach are refused.
    """

    name = "convert-pipeline-to-nvvm"
    anchor = "gpu.module"
    dependent_dialects = ("arith", "llvm", "nvvm", "scf", "vector", "cute")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        ruleset = rules.joined(cx.services.patterns(self.name))
        helpers, buffers = Helpers(op), []
        for func in children(op):
            if func.name != "func.func":
                continue
            spec = kernel_spec(func.regions[0].blocks[0].operations[0])
            mask = (1 << spec.get("num_warps", 0)) - 1
            state = State(helpers, op, mask, mask, spec.get("num_ctas", 1), buffers)
            Conversion(ruleset, convert_type, ("cutlass",), cx, state).run(func)
            types = [argument.type for argument in func.regions[0].blocks[0].arguments]
            old = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)
            kind = ir.FunctionType.get(types, [convert_type(result) for result in old.results])
            func.attributes["function_type"] = ir.TypeAttr.get(kind)

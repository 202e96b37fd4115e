"""nv-inline-must: functions that have to be inlined are marked so."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_nvptx.passes.llvm.module import callee, functions, is_kernel, size_of


@dataclass(frozen=True)
class InlineMust(Pass):
    """Mark functions `always_inline` whose parameters or result are too large for a call of PTX,
    and wrappers of functions of libdevice.

    The limits are those of pages 104 and 145 of the specification. Kernels, functions marked
    `no_inline`, and functions that call themselves stay as they are.
    """

    name = "nv-inline-must"
    anchor = "gpu.module"
    statistics = {"marked": "functions that got always_inline"}
    parameter_bytes: int = option(384, "bytes of parameters, above which a function is inlined")
    result_bytes: int = option(144, "bytes of a result, above which a function is inlined")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for name, func in functions(op).items():
            if is_kernel(func) or "always_inline" in func.attributes:
                continue
            why = self._why(func)
            if why is None or "no_inline" in func.attributes:
                continue
            if name in _callees(func):
                cx.missed(func, f"not AlwaysInline into callers: @{name} calls itself")
                continue
            func.attributes["always_inline"] = ir.UnitAttr.get()
            cx.count("marked")
            cx.passed(func, f"@{name} is always inlined: {why}")

    def _why(self, func: ir.Operation) -> str | None:
        taken = sum(max(4, size_of(a.type)) for a in func.regions[0].blocks[0].arguments)
        if taken > self.parameter_bytes:
            return f"its parameters take {taken} bytes"
        given = max(
            (sum(size_of(v.type) for v in end.operands) for end in _returns(func)), default=0
        )
        if given > self.result_bytes:
            return f"its result takes {given} bytes"
        called = _callees(func)
        operations = len(list(func.regions[0].blocks[0].operations))
        if len(func.regions[0].blocks) == 1 and operations == 2 and len(called) == 1:
            (inner,) = called
            if inner.startswith("__nv_"):
                return f"it wraps {inner}"
        return None


def _returns(func: ir.Operation) -> list[ir.Operation]:
    ends = [list(block.operations)[-1].operation for block in func.regions[0].blocks]
    return [end for end in ends if end.name == "llvm.return"]


def _callees(func: ir.Operation) -> set[str]:
    return {
        callee(view.operation)
        for block in func.regions[0].blocks
        for view in block.operations
        if view.operation.name == "llvm.call"
    }

"""Source lines for LLVM: from MLIR locations to debug information."""

from __future__ import annotations

from tile_core.locations import source_location
from tile_core.mlir import ir
from tile_nvptx.emit.options import EmitOptions


def scopes_pass(options: EmitOptions) -> str:
    """The upstream pass that gives every function a subprogram, on `builtin.module`.

    Line information alone is `DebugDirectivesOnly`: any more makes LLVM mark the whole PTX module
    as debug code, which ptxas does not optimise.
    """
    kind = "Full" if options.device_debug else "DebugDirectivesOnly"
    return f"ensure-debug-info-scope-on-llvm-func{{emission-kind={kind}}}"


def locate_calls(module: ir.Operation) -> None:
    """Give calls in `module` that came from nowhere the place of their function.

    LLVM refuses a call without a location where it might inline the callee.
    """
    calls: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.call" and source_location(op.location) is None:
            calls.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    for call in calls:
        call.location = _enclosing(call)


def _enclosing(op: ir.Operation) -> ir.Location:
    parent = op.parent
    while parent is not None:
        if source_location(parent.location) is not None:
            return parent.location
        parent = parent.parent
    return ir.Location.file("<unknown>", 0, 0)

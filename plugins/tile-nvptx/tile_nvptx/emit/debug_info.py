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


def functions_from_nowhere(module: ir.Operation) -> frozenset[str]:
    """Names of the functions inside `module` that have no place in the source: our own helpers."""
    found: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name != "llvm.func":
            return ir.WalkResult.ADVANCE
        if source_location(op.location) is None:
            found.add(ir.StringAttr(op.attributes["sym_name"]).value)
        return ir.WalkResult.SKIP

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return frozenset(found)


def forget_scopes(module: ir.Operation, names: frozenset[str]) -> None:
    """Take the subprograms of the functions `names` in a `gpu.module` away again.

    Without one, what is inlined has the line of its call; with one, it would have none, and debug
    information would show the line of whatever stands before.
    """
    for view in module.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == "llvm.func" and ir.StringAttr(op.attributes["sym_name"]).value in names:
            op.location = ir.Location.unknown()


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

"""Where a `gpu.module` calls functions of libdevice."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.diagnostics import SourceLocation
from tile_core.locations import source_location
from tile_core.mlir import ir
from tile_nvptx.emit.library_calls import PREFIX, comment


def comments(module: ir.Operation) -> Iterator[str]:
    """A comment for every function of libdevice that `module` calls: where it is called first."""
    calls = _calls(module)
    seen: set[str] = set()
    for call in calls:
        name = _callee(call)
        place = _place(call, calls) if name.startswith(PREFIX) and name not in seen else None
        if place is not None:
            seen.add(name)
            yield comment(name, place)


def _calls(module: ir.Operation) -> list[ir.Operation]:
    """Every call of a function by its name, in order."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.call" and "callee" in op.attributes:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _place(call: ir.Operation, calls: list[ir.Operation]) -> SourceLocation | None:
    """Where a call comes from; our own helper functions have no place, so who calls them counts."""
    place = source_location(call.location)
    function = call.parent
    if place is None and function is not None and "sym_name" in function.attributes:
        name = ir.StringAttr(function.attributes["sym_name"]).value
        callers = (other for other in calls if _callee(other) == name)
        found = (source_location(other.location) for other in callers)
        place = next((where for where in found if where is not None), None)
    return place

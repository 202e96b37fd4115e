"""Where a `gpu.module` calls functions of libdevice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tile_core.diagnostics import SourceLocation
from tile_core.locations import source_location
from tile_core.mlir import ir
from tile_nvptx.emit.library_calls import PREFIX, comment

#: The operation that calls functions, by name or by address.
CALL = "llvm.call"


def comments(found: Iterable[ir.Operation]) -> Iterator[str]:
    """A comment for every function of libdevice that calls name: where it is called first.

    Args:
        found: all calls of a `gpu.module`, in order.
    """
    calls = [call for call in found if "callee" in call.attributes]
    seen: set[str] = set()
    for call in calls:
        name = _callee(call)
        place = _place(call, calls) if name.startswith(PREFIX) and name not in seen else None
        if place is not None:
            seen.add(name)
            yield comment(name, place)


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

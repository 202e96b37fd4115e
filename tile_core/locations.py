"""From MLIR locations to places that a user knows."""

from __future__ import annotations

from tile_core.diagnostics import SourceLocation
from tile_core.mlir import ir


def source_location(location: ir.Location) -> SourceLocation | None:
    """The first file, line and column inside `location`, or None when it has none.

    Name locations stand for their child, call sites for the callee, fused ones for their parts
    in order.
    """
    if type(location) is ir.Location:
        # Diagnostics carry locations of the base class; the round trip gives the real one.
        location = ir.Location.from_attr(location.attr)
    if isinstance(location, ir.FileLineColLoc):
        return SourceLocation(location.filename, location.start_line, location.start_col)
    if isinstance(location, ir.NameLoc):
        return source_location(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        return source_location(location.callee) or source_location(location.caller)
    if isinstance(location, ir.FusedLoc):
        return next((p for p in map(source_location, location.locations) if p is not None), None)
    return None

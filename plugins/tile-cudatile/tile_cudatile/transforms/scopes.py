"""Debug scopes for programs that have positions only."""

from __future__ import annotations

from pathlib import PurePosixPath

from tile_cudatile import locations as loc
from tile_cudatile.tree import Entry, Module

_UNKNOWN = loc.File("<unknown>", "")


def synthesize_scopes(module: Module) -> int:
    """Gives every kernel without debug info a subprogram, and its operations places in it.

    The compile unit is the file of the module's own location. Returns how many kernels changed.
    """
    changed = [entry for entry in module.entries if not _has_scope(entry.loc)]
    if changed:
        module.layout = None
    position = _position(module.loc)
    unit = loc.CompileUnit(_file(position) if position else _UNKNOWN)
    for entry in changed:
        _scope(entry, unit)
    return len(changed)


def _has_scope(where: loc.Location) -> bool:
    if isinstance(where, loc.CallSite):
        return _has_scope(where.callee) or _has_scope(where.caller)
    return isinstance(where, loc.DebugLoc)


def _position(where: loc.Location) -> loc.FileLine | None:
    """The position a location stands for; of inlined code, that of the call."""
    if isinstance(where, loc.CallSite):
        return _position(where.caller)
    return where if isinstance(where, loc.FileLine) else None


def _file(position: loc.FileLine) -> loc.File:
    path = PurePosixPath(position.filename)
    return loc.File(path.name, str(path.parent) if len(path.parts) > 1 else "")


def _scope(entry: Entry, unit: loc.CompileUnit) -> None:
    position = _position(entry.loc)
    file = _file(position) if position else unit.file
    at = position or loc.FileLine(file.name, 1, 1)
    scope = loc.Subprogram(file, at.line, entry.name, entry.name, unit, at.line)
    entry.loc = _placed(at, scope)
    for op in entry.body.walk():
        op.loc = _placed(_position(op.loc) or at, scope)


def _placed(at: loc.FileLine, scope: loc.Scope) -> loc.DebugLoc:
    return loc.DebugLoc(scope, at.filename, at.line, at.column)

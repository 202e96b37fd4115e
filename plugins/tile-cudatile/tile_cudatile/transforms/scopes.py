"""Debug scopes for programs that have positions only."""

from __future__ import annotations

from pathlib import PurePosixPath

from tile_cudatile import locations as loc
from tile_cudatile.tree import Entry, Module

_NOWHERE = loc.FileLine("<unknown>", 1, 0)


def synthesize_scopes(module: Module) -> int:
    """Gives every kernel without debug info a subprogram, and its operations places in it.

    Returns how many kernels changed.
    """
    changed = [entry for entry in module.entries if not _has_scope(entry.loc)]
    if changed:
        module.layout = None
    for entry in changed:
        _scope(entry)
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


def _scope(entry: Entry) -> None:
    position = _position(entry.loc)
    at = position or _NOWHERE
    path = PurePosixPath(at.filename)
    file = loc.File(path.name, str(path.parent) if position and len(path.parts) > 1 else "")
    line = at.line or 1
    scope = loc.Subprogram(file, line, entry.name, entry.name, loc.CompileUnit(file), line)
    entry.loc = _placed(at, scope)
    for op in entry.body.walk():
        op.loc = _placed(_position(op.loc) or at, scope)


def _placed(at: loc.FileLine, scope: loc.Scope) -> loc.DebugLoc:
    return loc.DebugLoc(scope, at.filename, at.line, at.column)

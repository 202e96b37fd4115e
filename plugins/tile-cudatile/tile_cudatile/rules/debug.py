"""Rules of debug information."""

from __future__ import annotations

from tile_cudatile.locations import (
    CallSite,
    DebugLoc,
    LexicalBlock,
    Location,
    Scope,
    Subprogram,
    location_text,
    scope_text,
)
from tile_cudatile.tree import Entry


def _scope(where: Location) -> Scope | None:
    """The scope of a location; of inlined code, that of the caller."""
    while isinstance(where, CallSite):
        where = where.caller
    return where.scope if isinstance(where, DebugLoc) else None


def _subprogram(scope: Scope | None) -> Subprogram | None:
    while isinstance(scope, LexicalBlock):
        scope = scope.scope
    return scope


def entry_problem(entry: Entry) -> str | None:
    """What is wrong with the location of a kernel."""
    if isinstance(entry.loc, CallSite):
        return (
            f"invalid function debug info location: {location_text(entry.loc)}. "
            "Function location must not be a CallSiteLoc."
        )
    scope = _scope(entry.loc)
    if scope is None:
        return None
    if not isinstance(scope, Subprogram):
        return (
            f"invalid function debug info scope: {scope_text(scope)}. Function location must have "
            "cuda_tile.di_subprogram debug info scope."
        )
    if scope.linkage_name != entry.name:
        return (
            f"invalid function debug info scope: {scope_text(scope)}. "
            f'Function name "{entry.name}" does not match subprogram scope linkage name '
            f'"{scope.linkage_name}".'
        )
    return None


def operation_problem(where: Location, entry: Entry) -> str | None:
    """What is wrong with the location of an operation of the kernel.

    As with rules, a text that starts with `!` goes without the operation's name in front.
    """
    found = _subprogram(_scope(where))
    if found is None:
        return None
    function = _subprogram(_scope(entry.loc))
    if function is None:
        return (
            f"invalid operation debug info scope: {scope_text(found)}. "
            "Operation has debug info scope, but function debug info scope is undefined."
        )
    if found != function:
        return (
            f"!invalid operation debug info scope: {scope_text(found)}. "
            "Operation debug info scope does not match function debug info scope: "
            f"{scope_text(function)}."
        )
    return None

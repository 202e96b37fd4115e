"""Source locations and debug-info attributes as plain immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing is known."""


@dataclass(frozen=True, slots=True)
class File:
    """`di_file`."""

    name: str
    directory: str


@dataclass(frozen=True, slots=True)
class CompileUnit:
    """`di_compile_unit`."""

    file: File


@dataclass(frozen=True, slots=True)
class Subprogram:
    """`di_subprogram`; `flags` came with 13.5 and is 0 in every known file."""

    file: File
    line: int
    name: str
    linkage_name: str
    compile_unit: CompileUnit
    scope_line: int
    flags: int = 0


@dataclass(frozen=True, slots=True)
class LexicalBlock:
    """`di_lexical_block`."""

    scope: Scope
    file: File
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class DebugLoc:
    """`di_loc`: a line and column of `filename` inside `scope`."""

    scope: Scope
    filename: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class CallSite:
    """`callee` was inlined at `caller`."""

    callee: Location
    caller: Location


@dataclass(frozen=True, slots=True)
class FileLine:
    """A plain line and column without scope; not representable in bytecode."""

    filename: str
    line: int
    column: int


UNKNOWN = Unknown()
Scope: TypeAlias = Subprogram | LexicalBlock
Location: TypeAlias = Unknown | DebugLoc | CallSite | FileLine
DebugRecord: TypeAlias = File | CompileUnit | Scope | Location


def place(location: Location) -> str | None:
    """`file:line:column` of a location, or None."""
    if isinstance(location, CallSite):
        return place(location.callee) or place(location.caller)
    if isinstance(location, (DebugLoc, FileLine)):
        return f"{location.filename}:{location.line}:{location.column}"
    return None

"""Source locations and debug-info attributes as plain immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Unknown:
    """Nothing is known."""


@dataclass(frozen=True)
class File:
    """`di_file`."""

    name: str
    directory: str


@dataclass(frozen=True)
class CompileUnit:
    """`di_compile_unit`."""

    file: File


@dataclass(frozen=True)
class Subprogram:
    """`di_subprogram`; `flags` came with 13.5."""

    file: File
    line: int
    name: str
    linkage_name: str
    compile_unit: CompileUnit
    scope_line: int
    flags: int = 0


@dataclass(frozen=True)
class LexicalBlock:
    """`di_lexical_block`."""

    scope: Scope
    file: File
    line: int
    column: int


@dataclass(frozen=True)
class DebugLoc:
    """`di_loc`: a line and column of `filename` inside `scope`."""

    scope: Scope
    filename: str
    line: int
    column: int


@dataclass(frozen=True)
class CallSite:
    """`callee` was inlined at `caller`."""

    callee: Location
    caller: Location


@dataclass(frozen=True)
class FileLine:
    """A plain line and column without scope; not representable in bytecode."""

    filename: str
    line: int
    column: int


UNKNOWN = Unknown()
DECLARATION = 1  # the only flag of a subprogram
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


def flags_text(record: Subprogram) -> str:
    """The flags as the last parameter of a subprogram."""
    return ", flags = declaration" if record.flags & DECLARATION else ""


def scope_text(record: Scope | CompileUnit | File, *, bare: bool = False) -> str:
    """A debug-info attribute in MLIR's syntax; `bare` as a parameter of another."""
    if isinstance(record, File):
        prefix, inside = "di_file", f'"{record.name}" in "{record.directory}"'
    elif isinstance(record, CompileUnit):
        prefix, inside = "di_compile_unit", f"file = {scope_text(record.file, bare=True)}"
    elif isinstance(record, Subprogram):
        prefix = "di_subprogram"
        inside = (
            f"file = {scope_text(record.file, bare=True)}, line = {record.line}, "
            f'name = "{record.name}", linkageName = "{record.linkage_name}", '
            f"compileUnit = {scope_text(record.compile_unit, bare=True)}, "
            f"scopeLine = {record.scope_line}{flags_text(record)}"
        )
    else:
        prefix = "di_lexical_block"
        inside = (
            f"scope = {scope_text(record.scope)}, file = {scope_text(record.file, bare=True)}, "
            f"line = {record.line}, column = {record.column}"
        )
    return f"<{inside}>" if bare else f"#cuda_tile.{prefix}<{inside}>"


def location_text(where: Location, *, bare: bool = False) -> str:
    """A location in MLIR's syntax; `bare` as a part of another."""
    if isinstance(where, DebugLoc):
        at = location_text(FileLine(where.filename, where.line, where.column))
        return f"#cuda_tile.di_loc<{at} in {scope_text(where.scope)}>"
    if isinstance(where, CallSite):
        parts = location_text(where.callee, bare=True), location_text(where.caller, bare=True)
        inside = f"callsite({parts[0]} at {parts[1]})"
    elif isinstance(where, FileLine):
        inside = f'"{where.filename}":{where.line}:{where.column}'
    else:
        inside = "unknown"
    return inside if bare else f"loc({inside})"

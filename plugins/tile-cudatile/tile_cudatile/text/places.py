"""Names of locations, and the list of them at the end of a program."""

from __future__ import annotations

import re

from tile_cudatile import locations as loc
from tile_cudatile.text.numbers import quoted

_MARK = re.compile("\0(\\d+)\0")


class Places:
    """Numbers locations as MLIR's printer does: by depth, then name, then first use."""

    def __init__(self) -> None:
        self._depths: dict[loc.DebugRecord, int] = {}
        self._records: list[loc.DebugRecord] = []
        self._numbers: dict[loc.DebugRecord, int] = {}

    def mark(self, where: loc.Location) -> str:
        """What stands for a location in a text that `named` completes."""
        self._visit(where)
        return f" loc(\0{self._numbers[where]}\0)"

    def named(self, text: str) -> str:
        """`text` with the names in place of the marks, and their meanings behind it."""
        ordered = sorted(self._records, key=lambda r: (self._depths[r], _kind(r)))
        names: dict[loc.DebugRecord, str] = {}
        counts: dict[str, int] = {}
        lines: list[str] = []
        for record in ordered:
            kind = _kind(record)
            count = counts.get(kind, 0)
            counts[kind] = count + 1
            names[record] = f"#{kind}{count or ''}"
            lines.append(f"{names[record]} = {_meaning(record, names)}\n")
        done = _MARK.sub(lambda match: names[self._records[int(match[1])]], text)
        return done + "".join(lines)

    def _visit(self, record: loc.DebugRecord) -> int:
        depth = self._depths.get(record)
        if depth is None:
            depth = 1 + max(map(self._visit, _parts(record)), default=-1)
            self._depths[record] = depth
            self._numbers[record] = len(self._records)
            self._records.append(record)
        return depth


def _kind(record: loc.DebugRecord) -> str:
    return _KINDS.get(type(record), "loc")


def _parts(record: loc.DebugRecord) -> tuple[loc.DebugRecord, ...]:
    if isinstance(record, loc.DebugLoc):
        return loc.FileLine(record.filename, record.line, record.column), record.scope
    if isinstance(record, loc.CallSite):
        return record.callee, record.caller
    if isinstance(record, loc.CompileUnit):
        return (record.file,)
    if isinstance(record, loc.Subprogram):
        return record.file, record.compile_unit
    if isinstance(record, loc.LexicalBlock):
        return record.scope, record.file
    return ()


def _meaning(record: loc.DebugRecord, names: dict[loc.DebugRecord, str]) -> str:
    parts = [names[part] for part in _parts(record)]
    if isinstance(record, loc.Unknown):
        return "loc(unknown)"
    if isinstance(record, loc.FileLine):
        return f"loc({quoted(record.filename)}:{record.line}:{record.column})"
    if isinstance(record, loc.CallSite):
        return f"loc(callsite({parts[0]} at {parts[1]}))"
    if isinstance(record, loc.DebugLoc):
        inside = f"{parts[0]} in {parts[1]}"
    elif isinstance(record, loc.File):
        inside = f"{quoted(record.name)} in {quoted(record.directory)}"
    elif isinstance(record, loc.CompileUnit):
        inside = f"file = {parts[0]}"
    elif isinstance(record, loc.Subprogram):
        inside = (
            f"file = {parts[0]}, line = {record.line}, name = {quoted(record.name)}, "
            f"linkageName = {quoted(record.linkage_name)}, compileUnit = {parts[1]}, "
            f"scopeLine = {record.scope_line}{loc.flags_text(record)}"
        )
    else:
        inside = (
            f"scope = {parts[0]}, file = {parts[1]}, line = {record.line}, column = {record.column}"
        )
    return f"#cuda_tile.{_KINDS.get(type(record), 'di_loc')}<{inside}>"


_KINDS: dict[type, str] = {
    loc.File: "di_file",
    loc.CompileUnit: "di_compile_unit",
    loc.Subprogram: "di_subprogram",
    loc.LexicalBlock: "di_lexical_block",
}

"""A program's text as the source between the user's and the machine's code, with its places."""

from __future__ import annotations

import json
import re

from tile_cudatile import locations as loc
from tile_cudatile.text.places import Places
from tile_cudatile.text.printer import print_module
from tile_cudatile.tree import Module

#: Attribute of a builtin.module that has it: JSON, as `record` makes it.
ATTRIBUTE = "tile.source"
_MARK = re.compile("\0(\\d+)\0")


class _Marks(Places):
    """Leaves a number where a location would stand."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[loc.Location] = []

    def mark(self, where: loc.Location) -> str:
        self.found.append(where)
        return f"\0{len(self.found) - 1}\0"


def record(module: Module) -> str:
    """{"text": the program as `tileirdisasm` prints it, "places": [[line of it, file, line,
    column], ..]}: where each operation comes from, as far as is known; lines count from 1.
    """
    marks = _Marks()
    lines, places = [], []
    for number, line in enumerate(print_module(module, marks).splitlines(), start=1):
        for match in _MARK.finditer(line):
            place = _place(marks.found[int(match[1])])
            if place is not None:
                places.append([number, *place])
        lines.append(_MARK.sub("", line))
    return json.dumps({"text": "\n".join(lines) + "\n", "places": places}, separators=(",", ":"))


def _place(where: loc.Location) -> tuple[str, int, int] | None:
    """The innermost line of the user's that a location names."""
    while isinstance(where, loc.CallSite):
        where = where.callee
    if isinstance(where, loc.DebugLoc):
        return where.filename, where.line, where.column
    return None

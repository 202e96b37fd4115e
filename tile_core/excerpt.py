"""The line that an error is about, as it stands in the user's file."""

from __future__ import annotations

import linecache
from pathlib import Path

from tile_core.diagnostics import SourceLocation, TileError

#: Longer lines are cut: generated text has lines of kilobytes.
_WIDTH = 120


def rendered(error: TileError) -> str:
    """`error.render()` with the line of the source below the first line, where it can be read."""
    first, *rest = error.render().split("\n")
    shown = excerpt(error.where) if isinstance(error.where, SourceLocation) else []
    if error.also:
        # Each of the others has a line of the source, too.
        length = sum(len(other.render().split("\n")) for other in error.also)
        rest = [*rest[:-length], *(rendered(other) for other in error.also)]
    return "\n".join([first, *shown, *rest])


def excerpt(where: SourceLocation) -> list[str]:
    """The line, and a mark below its column; nothing where there is no such line."""
    if not where.line or not Path(where.file).is_file():
        return []
    line = linecache.getline(where.file, where.line).rstrip("\n").expandtabs(1)
    if not line.strip():
        return []
    # Python counts columns from 0, and so do locations that cuTile makes of it.
    column = where.column if where.file.endswith(".py") else where.column - 1
    number = str(where.line)
    shown = [f"  {number} | {line[:_WIDTH]}"]
    if 0 <= column < min(len(line), _WIDTH) and where.column:
        shown.append(f"  {' ' * len(number)} | {' ' * column}^")
    return shown

"""The line of the source below an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_core.diagnostics import SourceLocation, TileError
from tile_core.excerpt import excerpt, rendered


@pytest.mark.parametrize(("name", "column"), [("k.mlir", 5), ("k.py", 4)])
def test_the_mark_stands_below_the_column(tmp_path: Path, name: str, column: int) -> None:
    """Columns of MLIR text count from 1, those of cuTile's locations from 0."""
    file = tmp_path / name
    file.write_text("one\n    two(\n")
    assert excerpt(SourceLocation(str(file), 2, column)) == ["  2 |     two(", "    |     ^"]


def test_what_cannot_be_shown_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(f"\n{'x' * 500}\n")
    assert excerpt(SourceLocation("absent.py", 3, 1)) == []
    assert excerpt(SourceLocation(str(file), 1, 1)) == []
    assert excerpt(SourceLocation(str(file), 9, 1)) == []
    assert excerpt(SourceLocation(str(file))) == []
    assert [len(line) for line in excerpt(SourceLocation(str(file), 2, 400))] == [126]


def test_notes_come_after_it(tmp_path: Path) -> None:
    file = tmp_path / "k.mlir"
    file.write_text("first\n")
    error = TileError("no", where=SourceLocation(str(file), 1, 1), notes=("why",), hint="do")
    first, line, mark, note, hint = rendered(error).split("\n")
    assert first.endswith("error: no")
    assert (line, mark) == ("  1 | first", "    | ^")
    assert note.endswith("note: why")
    assert hint == "hint: do"
    assert rendered(TileError("no", where="somewhere")) == "somewhere: error: no"

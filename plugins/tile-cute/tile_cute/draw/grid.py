"""A table of cells: what every picture is made of."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """Text of one element, and which of the cells' groups it belongs to (its colour)."""

    text: str
    group: int


@dataclass(frozen=True)
class Grid:
    """Rows of cells under a title; `notes` are facts to print below."""

    title: str
    cells: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    row_label: str = ""
    column_label: str = ""

    @property
    def rows(self) -> int:
        return len(self.cells)

    @property
    def columns(self) -> int:
        return max((len(row) for row in self.cells), default=0)

    @property
    def width(self) -> int:
        """Characters of the widest cell."""
        return max((len(cell.text) for row in self.cells for cell in row), default=1)

"""Grids as terminal text, SVG and HTML. Same grid, same bytes."""

from collections.abc import Sequence
from html import escape

from tile_cute.draw.grid import Cell, Grid

# 16 well-separated light backgrounds: ANSI 256-colour numbers and the same as RGB.
_ANSI = (224, 223, 230, 194, 158, 159, 153, 189, 217, 222, 228, 156, 122, 123, 117, 183)
_RGB = (
    "#ffd7d7", "#ffd7af", "#ffffd7", "#d7ffd7", "#afffd7", "#afffff", "#afd7ff", "#d7d7ff",
    "#ffafaf", "#ffd787", "#ffff87", "#afff87", "#87ffd7", "#87ffff", "#87d7ff", "#d7afff",
)  # fmt: skip


def to_terminal(grids: Sequence[Grid], color: bool = True) -> str:
    """Text with a header of column numbers; colours as ANSI escapes if wanted."""
    return "\n\n".join(_terminal(grid, color) for grid in grids) + "\n"


def _terminal(grid: Grid, color: bool) -> str:
    width = max(grid.width, len(str(grid.columns - 1)))
    margin = len(str(grid.rows - 1))
    lines = [grid.title]
    lines.append(" " * margin + " " + " ".join(f"{j:>{width}}" for j in range(grid.columns)))
    for i, row in enumerate(grid.cells):
        cells = " ".join(_painted(cell, width, color) for cell in row)
        lines.append(f"{i:>{margin}} {cells}".rstrip())
    return "\n".join([*lines, *grid.notes])


def _painted(cell: Cell, width: int, color: bool) -> str:
    text = f"{cell.text:>{width}}"
    if not color or not cell.text:
        return text
    return f"\x1b[30;48;5;{_ANSI[cell.group % len(_ANSI)]}m{text}\x1b[0m"


def to_svg(grids: Sequence[Grid]) -> str:
    """One SVG document, the grids below each other."""
    parts = []
    top, width = 10, 0
    for grid in grids:
        body, height, wide = _svg_grid(grid, top)
        parts += body
        top += height + 20
        width = max(width, wide)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 20}" height="{top}" '
        'font-family="monospace" font-size="11">'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _svg_grid(grid: Grid, top: int) -> tuple[list[str], int, int]:
    side = max(24, 7 * grid.width + 8)
    left, line = 40, 20
    parts = [_text(10, top + 12, grid.title, "start")]
    origin = top + 2 * line
    for j in range(grid.columns):
        parts.append(_text(left + j * side + side // 2, origin - 4, str(j)))
    for i, row in enumerate(grid.cells):
        y = origin + i * line
        parts.append(_text(left - 6, y + 14, str(i), "end"))
        for j, cell in enumerate(row):
            fill = _RGB[cell.group % len(_RGB)] if cell.text else "#ffffff"
            x = left + j * side
            parts.append(
                f'<rect x="{x}" y="{y}" width="{side}" height="{line}" fill="{fill}" '
                'stroke="#888"/>'
            )
            if cell.text:
                parts.append(_text(x + side // 2, y + 14, cell.text))
    bottom = origin + grid.rows * line
    for k, note in enumerate(grid.notes):
        parts.append(_text(10, bottom + 14 + k * 14, note, "start"))
    height = bottom - top + 14 * len(grid.notes) + 8
    longest = max(map(len, (grid.title, *grid.notes)))
    return parts, height, max(left + grid.columns * side, 7 * longest + 20)


def _text(x: int, y: int, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def to_html(grids: Sequence[Grid]) -> str:
    """A page with a table per grid; needs nothing from elsewhere."""
    style = (
        "body{font-family:monospace}td{border:1px solid #888;padding:2px 5px;text-align:center}"
        "th{font-weight:normal;color:#666;padding:2px 5px}table{border-collapse:collapse}"
    )
    rules = "".join(f".g{i}{{background:{rgb}}}" for i, rgb in enumerate(_RGB))
    head = (
        f'<!DOCTYPE html>\n<meta charset="utf-8"><title>layout</title><style>{style}{rules}</style>'
    )
    return "\n".join([head, *map(_html_grid, grids)]) + "\n"


def _html_grid(grid: Grid) -> str:
    header = "".join(f"<th>{j}</th>" for j in range(grid.columns))
    lines = [f"<h3>{escape(grid.title)}</h3>", f"<table><tr><th></th>{header}</tr>"]
    for i, row in enumerate(grid.cells):
        lines.append(f"<tr><th>{i}</th>{''.join(map(_html_cell, row))}</tr>")
    lines.append("</table>")
    lines += [f"<p>{escape(note)}</p>" for note in grid.notes]
    return "\n".join(lines)


def _html_cell(cell: Cell) -> str:
    if not cell.text:
        return "<td></td>"
    return f'<td class="g{cell.group % len(_RGB)}">{escape(cell.text)}</td>'

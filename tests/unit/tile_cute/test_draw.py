"""Pictures: the right cells, valid and deterministic documents, clear errors."""

import xml.dom.minidom
from pathlib import Path

import pytest
from click.testing import CliRunner
from tile_cute.cli.layout import layout
from tile_cute.draw import Grid, draw, to_html, to_svg, to_terminal
from tile_cute.errors import LayoutError
from tile_cute.linear import blocked, swizzled_rows
from tile_cute.swizzle import SWIZZLE_128B

from tile_core.diagnostics import UsageError

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def texts(grid: Grid) -> list[list[str]]:
    return [[cell.text for cell in row] for row in grid.cells]


def test_layout_shows_offsets() -> None:
    (grid,) = draw("(2,4):(4,1)")
    assert texts(grid) == [["0", "1", "2", "3"], ["4", "5", "6", "7"]]


def test_swizzle_moves_columns() -> None:
    (grid,) = draw("S<3,4,3>")
    for row, line in enumerate(texts(grid)):
        assert [int(text) for text in line] == [
            SWIZZLE_128B(row * 128 + column * 16) // 16 % 8 for column in range(8)
        ]


def test_composed_layout_colours_banks() -> None:
    (grid,) = draw("S<1,0,3> o 0 o (4,32):(32,1)", elem_bits=32)
    for row in grid.cells:
        for cell in row:
            assert cell.group == int(cell.text) % 32


def test_fragment_shows_holders() -> None:
    (grid,) = draw(MMA, operand="c")
    shown = texts(grid)
    assert shown[0][:3] == ["T0:0", "T0:1", "T1:0"]
    assert shown[8][7] == "T3:3"
    assert len(draw(MMA)) == 3


def test_tensor_memory_shows_rows_columns_and_elements() -> None:
    name = "tcgen05.mma.sp.cta_group::1.kind::f16"
    a, metadata = (texts(draw(name, operand=operand)[0]) for operand in ("a", "metadata"))
    assert a[3][:3] == ["L3C0.0", "L3C0.1", "L3C1.0"]
    assert (metadata[3][9], metadata[8][0]) == ("L11C0.1", "L0C0.8")


def test_linear_layout_with_replicas() -> None:
    text = str(blocked((2, 8), (1, 1), (1, 32), (2, 1), (1, 0)))
    (grid,) = draw(text)
    assert texts(grid)[1][3] == "T35:0"
    assert "4 copies" in grid.notes[0]


def test_planes_of_matrices() -> None:
    grids = draw("ldmatrix.sync.aligned.m8n8.x4.shared.b16")
    assert len(grids) == 4
    assert texts(grids[2])[1][0] == "T4:4"


def test_access_counts() -> None:
    tile = (64, 64)
    shared = str(swizzled_rows(tile, (1, 0), 16, 128))
    reader = str(blocked(tile, (1, 8), (32, 1), (2, 2), (0, 1)))
    (grid,) = draw(shared, access=reader, elem_bits=16)
    assert "16 wavefronts per warp (without conflicts 16)" in grid.notes[0]
    assert sum(bool(text) for row in texts(grid) for text in row) == 32


@pytest.mark.parametrize("source", ["(4,8):(8,1)", "S<2,4,3>", MMA])
def test_documents(source: str) -> None:
    grids = draw(source)
    svg = to_svg(grids)
    xml.dom.minidom.parseString(svg)
    assert svg == to_svg(draw(source))
    cells = sum(bool(cell.text) for grid in grids for row in grid.cells for cell in row)
    assert to_html(grids).count('<td class="g') == cells
    assert "\x1b[" in to_terminal(grids)
    assert "\x1b[" not in to_terminal(grids, color=False)


@pytest.mark.parametrize(
    ("source", "options", "error"),
    [
        ("hello", {}, "no layout, swizzle or instruction"),
        ("(1024,1024):(1,1024)", {}, "at most 65536"),
        (MMA, {"operand": "x"}, "has no operand 'x'; it has a, b, c"),
        ("ld.global.v4.b32", {}, "no fragment to draw"),
    ],
)
def test_errors(source: str, options: dict[str, str], error: str) -> None:
    with pytest.raises(LayoutError, match=error):
        draw(source, **options)  # type: ignore[arg-type]


def test_command(tmp_path: Path) -> None:
    run = CliRunner().invoke(layout, ["(2,2):(2,1)"])
    assert run.exit_code == 0
    assert run.output.splitlines()[0] == "(2,2):(2,1)"
    target = tmp_path / "picture.svg"
    assert CliRunner().invoke(layout, ["S<2,4,3>", "-o", str(target)]).exit_code == 0
    assert target.read_text().startswith("<svg")
    page = CliRunner().invoke(layout, ["S<2,4,3>", "--format", "html"])
    assert page.output.startswith("<!DOCTYPE html>")
    bad = CliRunner().invoke(layout, ["nonsense"])
    assert isinstance(bad.exception, UsageError)

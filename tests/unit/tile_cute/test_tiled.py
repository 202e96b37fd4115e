"""Tiles of atoms: each warp's registers are whole atom operands, and the product comes out."""

import itertools

import pytest
from tile_cute.atoms import MmaRow, find_mma
from tile_cute.atoms.tiled import tiled_fragment, warp_grid
from tile_cute.errors import LayoutError


def test_atoms_of_a_tile() -> None:
    """Per warp: registers in groups of one atom, K fastest; the three operands meet."""
    atom = find_mma("sm_80", family="mma.sync", a="f16", acc="f32", k=16)[0].atoms()[0]
    tile, warps = (64, 32, 32), (2, 2)
    a, b, c = (tiled_fragment(atom, name, tile, warps) for name in "abc")
    assert (a.shape, b.shape, c.shape) == ((64, 32), (32, 32), (64, 32))
    for layout in (a, b, c):
        assert layout.is_surjective
        assert layout.in_size("warp") == 4
    assert c.is_injective
    for warp, i, j in itertools.product(range(4), range(2), range(2)):
        row, column = c.apply({"warp": warp, "register": 4 * j + 8 * i})
        rows = {a.apply({"warp": warp, "register": 8 * (k + 2 * i)})[0] for k in range(2)}
        columns = {b.apply({"warp": warp, "register": 4 * (k + 2 * j)})[1] for k in range(2)}
        assert rows == {row}
        assert columns == {column}


def test_warp_groups() -> None:
    row = find_mma("sm_90a", family="wgmma", a="bf16", acc="f32")[0]
    c = tiled_fragment(row.atom(64, 128), "c", (128, 128, 64), (2, 1))
    assert c.in_size("warp") == 8
    assert c.is_injective
    assert c.is_surjective
    with pytest.raises(LayoutError, match=r"operand b of .* is not held in registers"):
        tiled_fragment(row.atom(64, 128), "b", (128, 128, 64), (2, 1))


@pytest.mark.parametrize("row", find_mma(family="mma.sync"), ids=lambda row: row.name)
def test_every_warp_product(row: MmaRow) -> None:
    """Also where a thread holds one element of an operand (f64 m8n8k4)."""
    atom = row.atoms()[0]
    tile = (4 * atom.m, 4 * atom.n, 2 * atom.k)
    for name, shape in (("a", tile[::2]), ("b", (tile[2], tile[1])), ("c", tile[:2])):
        layout = tiled_fragment(atom, name, tile, (2, 2))
        assert layout.shape == shape
        assert layout.is_surjective
        per_atom = {"a": atom.a_layout, "b": atom.b_layout, "c": atom.c_layout}[name]
        assert per_atom is not None
        # Two more along either dimension: the warps take the others of M and N.
        assert layout.elements_per_thread == 4 * per_atom.elements_per_thread


def test_small_tiles_are_replicated() -> None:
    atom = find_mma("sm_80", family="mma.sync", a="tf32", k=8)[0].atoms()[0]
    c = tiled_fragment(atom, "c", (16, 8, 8), (2, 2))
    assert c.free_mask("warp") == 3
    with pytest.raises(LayoutError, match="does not tile 24x8x8: M 24"):
        tiled_fragment(atom, "c", (24, 8, 8))
    with pytest.raises(LayoutError, match="not 'd'"):
        tiled_fragment(atom, "d", (16, 8, 8))


@pytest.mark.parametrize(
    ("tile", "warps", "grid"),
    [((128, 128), 4, (2, 2)), ((64, 256), 4, (1, 4)), ((16, 8), 4, (4, 1)), ((128, 64), 4, (4, 1))],
)
def test_warp_grid(tile: tuple[int, int], warps: int, grid: tuple[int, int]) -> None:
    atom = find_mma("sm_80", family="mma.sync", a="f16", acc="f32", k=16)[0].atoms()[0]
    assert warp_grid(tile, atom, warps) == grid

"""Boxes of tensor maps that make up a buffer: they cover it, and what is no box is refused."""

from math import prod

import pytest
from tile_cute.atoms.descriptors import canonical_buffer
from tile_cute.linear import LinearLayout, strided, swizzled_rows
from tile_tileas.tma.boxes import Boxes, boxes_of

SWIZZLED = [
    # shape, order, bits of an element, bytes of a row -> box, swizzle, copies
    ((128, 64), (1, 0), 16, 128, (128, 64), "128B", 1),
    ((64, 128), (1, 0), 16, 128, (64, 64), "128B", 2),
    ((64, 32), (1, 0), 16, 64, (64, 32), "64B", 1),
    ((32, 64), (0, 1), 16, 64, (32, 64), "64B", 1),
    ((512, 64), (1, 0), 16, 128, (256, 64), "128B", 2),  # an extent of a box ends at 256
    ((2, 128, 64), (2, 1, 0), 16, 128, (2, 128, 64), "128B", 1),
    ((64, 64), (1, 0), 32, 128, (64, 32), "128B", 2),
    ((64, 512), (1, 0), 8, 128, (64, 128), "128B", 4),
    ((16, 8), (1, 0), 16, 16, (16, 8), "none", 1),
]


@pytest.mark.parametrize(("shape", "order", "bits", "row", "box", "swizzle", "copies"), SWIZZLED)
def test_rows_of_products(
    shape: tuple[int, ...], order: tuple[int, ...], bits: int, row: int, box: tuple[int, ...],
    swizzle: str, copies: int,
) -> None:  # fmt: skip
    layout = swizzled_rows(shape, order, bits, row)
    found = boxes_of(layout, bits, order[0])
    assert isinstance(found, Boxes)
    assert (found.extents, found.swizzle, len(found.origins)) == (box, swizzle, copies)
    covers(found, layout)


def covers(found: Boxes, layout: LinearLayout) -> None:
    """Each box is a run of the buffer, in the order of its origins."""
    size = prod(found.extents)
    for number, origin in enumerate(found.origins):
        for offset in {0, 1, size // 2, size - 1}:
            place = layout.apply({"offset": number * size + offset})
            inside = zip(place, origin, found.extents, strict=True)
            assert all(start <= at < start + extent for at, start, extent in inside)


@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize("swizzle", ["128B", "64B", "32B"])
def test_operands_of_wgmma(major: str, swizzle: str) -> None:
    layout = canonical_buffer(128, 64, 16, major, swizzle)
    found = boxes_of(layout, 16, 1 if major == "K" else 0)
    assert isinstance(found, Boxes)
    assert found.swizzle == swizzle
    covers(found, layout)


@pytest.mark.parametrize("columns", [32, 128])
def test_operands_of_tcgen05_along_columns(columns: int) -> None:
    """32-bit elements, in pieces of 32 bytes."""
    layout = canonical_buffer(columns, 16, 32, "MN", "128B_32B_atom")
    found = boxes_of(layout, 32, 0)
    assert isinstance(found, Boxes)
    assert (found.swizzle, found.extents, found.alignment) == ("128B_32B_atom", (32, 16), 1024)
    assert len(found.origins) == columns // 32
    covers(found, layout)


def test_refused() -> None:
    rows = swizzled_rows((64, 64), (0, 1), 16, 128)
    assert isinstance(boxes_of(rows, 16, 1), str)  # the other axis is contiguous in memory
    swapped = LinearLayout({"offset": [(0, 1), (1, 0), (0, 2), (0, 4), (0, 8)]}, (2, 16))
    assert isinstance(boxes_of(swapped, 32, 1), str)
    twice = LinearLayout({"offset": [(0, 1), (0, 1)]}, (1, 2))
    assert isinstance(boxes_of(twice, 32, 1), str)
    many = swizzled_rows((8, 8192), (1, 0), 16, 128)  # 128 boxes
    assert isinstance(boxes_of(many, 16, 1), str)


def test_without_swizzle() -> None:
    found = boxes_of(strided((64, 64), (1, 0)), 32, 1)
    assert isinstance(found, Boxes)
    assert (found.extents, found.swizzle, found.alignment) == ((64, 64), "none", 128)

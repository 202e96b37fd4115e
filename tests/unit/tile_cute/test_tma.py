"""Boxes of tensor-map copies against enumeration, and the order of the verifier's steps."""

import itertools

import pytest
from tile_cute.atoms.tma import TmaTile, check_mutable, partition
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout, identity_layout
from tile_cute.layout_algebra import composition
from tile_cute.swizzle import ComposedLayout, Swizzle
from tile_cute.text import parse_layout

GMEM = Layout((512, 1024), (1024, 1))


def v_map(rows: int, columns: int) -> Layout:
    """The tile's coordinates are the first of the tensor's."""
    return composition(identity_layout((512, 1024)), (rows, columns))


def lay(text: str) -> Layout | ComposedLayout:
    return parse_layout(text)


@pytest.mark.parametrize(
    ("smem", "box", "strides", "swizzle"),
    [
        ("S<3,3,3> o 0 o (64,64):(64,1)", (64, 64), (1, 1024), "128B"),
        ("(64,32):(32,1)", (32, 64), (1, 1024), "none"),
        ("S<1,3,3> o 0 o (64,16):(16,1)", (16, 64), (1, 1024), "32B"),
        ("S<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))", (64, 64, 2), (1, 1024, 64), "128B"),
    ],
)
def test_boxes(smem: str, box: tuple[int, ...], strides: tuple[int, ...], swizzle: str) -> None:
    layout = lay(smem)
    plain = layout.outer if isinstance(layout, ComposedLayout) else layout
    tile = partition(layout, GMEM, v_map(64, plain[1].size), 16)
    assert (tile.box, tile.strides, tile.swizzle) == (box, strides, swizzle)
    assert tile.elements == plain.size
    _same_elements(tile, plain)


def _same_elements(tile: TmaTile, plain: Layout) -> None:
    """The copy writes the box in order; the shared layout says what should be at each offset."""
    order = itertools.product(*(range(extent) for extent in reversed(tile.box)))
    for offset, point in enumerate(order):
        address = sum(i * s for i, s in zip(reversed(point), tile.strides, strict=True))
        row, column = divmod(address, 1024)
        assert plain(row, column) == offset


@pytest.mark.parametrize(
    ("smem", "rows", "columns", "error"),
    [
        (
            "S<3,1,3> o 0 o (64,64):(64,1)",
            64,
            64,
            "expected the SMEM layout to be a swizzle layout",
        ),
        ("(64,64):(64,1)", 64, 32, "expected top-level shape equivalence between"),
        ("(64,64):(128,1)", 64, 64, "failed to compute the TMA G-basis, got .*gaps"),
        ("(64,64):(1,64)", 64, 64, "Computed TMA layout is invalid.*stride 1024 in the fastest"),
        (
            "(512,8):(8,1)",
            512,
            8,
            "Computed TMA layout is invalid, got .*a box of 512, at most 256",
        ),
        ("(64,4):(4,1)", 64, 4, "Computed TMA layout is invalid.*no multiple of 16 bytes"),
        ("S<1,3,3> o 0 o (64,64):(64,1)", 64, 64, "rows of 128 bytes in a swizzle of 32"),
        ("(4,8):(1@0,1@1)", 4, 8, "expected the GMEM and SMEM layouts to have integer stride"),
    ],
)
def test_verifier(smem: str, rows: int, columns: int, error: str) -> None:
    with pytest.raises(LayoutError, match=error):
        partition(lay(smem), GMEM, v_map(rows, columns), 16)


def test_earlier_step_wins() -> None:
    """A wrong swizzle and a wrong shape: the swizzle is reported."""
    with pytest.raises(LayoutError, match="to be a swizzle layout"):
        partition(lay("S<3,1,3> o 0 o (64,64):(64,1)"), GMEM, v_map(64, 32), 16)
    with pytest.raises(LayoutError, match="unsupported layout for the GMEM tensor"):
        partition(lay("8:1"), ComposedLayout(Swizzle(0, 0, 0), 0, GMEM), v_map(8, 8), 16)  # type: ignore[arg-type]


def test_odd_strides() -> None:
    ragged = Layout((512, 1020), (1020, 1))
    with pytest.raises(LayoutError, match="a stride that is no multiple of 16 bytes"):
        partition(lay("(64,32):(32,1)"), ragged, v_map(64, 32), 16)


def test_multicast() -> None:
    arguments = (lay("(64,32):(32,1)"), GMEM, v_map(64, 32), 16)
    assert partition(*arguments, multicast=True, num_multicast=2).elements == 2 * 64 * 32
    with pytest.raises(LayoutError, match="missing or invalid num_multicast for a multicast TMA"):
        partition(*arguments, multicast=True)
    with pytest.raises(LayoutError, match="got num_multicast of 4"):
        partition(*arguments, num_multicast=4)


def test_mutable_fields() -> None:
    check_mutable("base")
    check_mutable("stride", 1)
    for field, index in (("stride", 0), ("swizzle", 0)):
        with pytest.raises(LayoutError, match="TMA descriptor field is not device-mutable"):
            check_mutable(field, index)


@pytest.mark.parametrize(
    ("smem", "gmem", "v_map", "message"),
    [
        (None, "(8,8):(8,1)", "(8,8):(1@0,1@1)",
         "invalid smem layout type, expected LayoutType or ComposedLayoutType, got None"),
        ("(8,8):(8,1)", None, "(8,8):(1@0,1@1)",
         "unsupported layout for the GMEM tensor, got None"),
        ("(8,8):(8,1)", "(8,8):(1@0,1@1)", "(8,8):(1@0,1@1)",
         "expected the GMEM and SMEM layouts to have integer stride elements, but got "
         "(8,8):(1@0,1@1) and (8,8):(8,1)"),
        ("(8,?):(?,1)", "(8,8):(8,1)", "(8,8):(1@0,1@1)",
         "expected the SMEM layout and the CTA V-map to be static, but got (8,?):(?,1) and "
         "(8,8):(1@0,1@1)"),
        ("(8,8):(8,1)", "(8,8):(8,1)", "(4,8):(1@0,1@1)",
         "expected top-level shape equivalence between the SMEM layout and the CTA V-map, but got "
         "(8,8):(8,1) and (4,8):(1@0,1@1)"),
        ("S<1,4,2> o 0 o (8,8):(8,1)", "(8,8):(8,1)", "(8,8):(1@0,1@1)",
         "expected the SMEM layout to be a swizzle layout, but got S<1,4,2> o 0 o (8,8):(8,1)"),
    ],
)  # fmt: skip
def test_words(smem: str | None, gmem: str | None, v_map: str, message: str) -> None:
    smem_layout = parse_layout(smem) if smem else None
    gmem_layout = parse_layout(gmem) if gmem else None
    with pytest.raises(LayoutError) as caught:
        partition(smem_layout, gmem_layout, parse_layout(v_map), 16)  # type: ignore[arg-type]
    assert str(caught.value) == message

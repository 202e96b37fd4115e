"""Swizzles, notation, and the exact correspondence with linear layouts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import distributed, pairs, shapes
from tile_cute import gf2
from tile_cute.bridge import (
    coords_to_offset,
    fragment_layout,
    is_linear,
    memory_layout,
    to_cute,
    to_fragment,
)
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout, ordered_layout
from tile_cute.linear import (
    LinearLayout,
    best_shared_layout,
    blocked,
    count_wavefronts,
    memory_access,
    strided,
    swizzled_rows,
)
from tile_cute.swizzle import SWIZZLE_128B, ComposedLayout, Swizzle
from tile_cute.text import (
    parse_basis_group,
    parse_int_tuple,
    parse_layout,
    parse_swizzle,
    parse_tile,
    print_basis_group,
)

MANY = settings(max_examples=100, deadline=None)


@st.composite
def swizzles(draw: st.DrawFn) -> Swizzle:
    bits = draw(st.integers(0, 3))
    shift = draw(st.integers(max(bits, 1), 4)) * draw(st.sampled_from([1, -1]))
    return Swizzle(bits, draw(st.integers(0, 4)), shift)


@pytest.mark.parametrize(
    ("value", "result"), [(0x80, 0x90), (0x90, 0x80), (0x1F0, 0x1C0), (0x3FF, 0x38F)]
)
def test_swizzle_128b(value: int, result: int) -> None:
    assert SWIZZLE_128B(value) == result


def test_swizzle_rows() -> None:
    assert [SWIZZLE_128B(0x80 * row) for row in range(8)] == [
        0x000, 0x090, 0x120, 0x1B0, 0x240, 0x2D0, 0x360, 0x3F0
    ]  # fmt: skip
    coarse = Swizzle(2, 5, 2)
    assert (coarse(0x80), coarse(0x180)) == (0xA0, 0x1E0)


@MANY
@given(swizzles(), st.integers(0, 4095), st.integers(0, 3))
def test_swizzle_laws(swizzle: Swizzle, x: int, repeat: int) -> None:
    assert swizzle(swizzle(x)) == x
    k = swizzle.span * repeat
    assert swizzle.commutes_with_offset(swizzle.span)
    assert swizzle(x + k) == swizzle(x) + k
    if not swizzle.is_identity:
        smaller = swizzle.span // 2
        assert not swizzle.commutes_with_offset(smaller)
        assert any(swizzle(y + smaller) != swizzle(y) + smaller for y in range(2 * swizzle.span))
    if swizzle.base >= 2:
        assert swizzle.recast(8, 32)(x) == swizzle(4 * x) // 4


def test_swizzle_errors() -> None:
    with pytest.raises(LayoutError, match=r"\|shift\| >= bits"):
        Swizzle(3, 4, 2)
    with pytest.raises(LayoutError, match="smaller pieces"):
        Swizzle(1, 1, 3).recast(8, 64)
    with pytest.raises(LayoutError, match="inner"):
        ComposedLayout(Layout(4), 0, Swizzle(1, 0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["(4,(2,3)):(1,(8,16))", "8:1", "()", "(4,8):(1@0,3@1@2)", "S<3,4,3> o 0 o (8,64):(64,1)"],
)
def test_layout_text(text: str) -> None:
    if text == "()":
        assert parse_int_tuple(text) == ()
    else:
        assert str(parse_layout(text)) == text
        assert str(parse_layout(text.replace(",", " , "))) == text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("(4,8):(1,4) x", "column 12"),
        ("(4,8):(1,4) 7", "unexpected trailing layout text"),
        ("(4,8", "failed to parse layout"),
        ("(4,8):(1)", "not congruent"),
        ("S<1,2> o 0 o 4:1", "three numbers"),
        ("4:1/2", "no integer"),
        ("1@0:1", "expected|unexpected"),
    ],
)
def test_layout_text_errors(text: str, error: str) -> None:
    with pytest.raises(LayoutError, match=error):
        parse_layout(text)


def test_other_texts() -> None:
    assert str(parse_swizzle("Sw<3,4,3>")) == "S<3,4,3>"
    assert parse_int_tuple("(_,(1,_))") == (None, (1, None))
    tile = parse_tile("<3:4,_,(2,4):(1,8)>")
    assert isinstance(tile, tuple)
    assert tile[1] is None


@pytest.mark.parametrize("text", ["()", "(1@0)", "(1@0,1/2@1,(3@2@1,-1@0))"])
def test_basis_groups(text: str) -> None:
    assert print_basis_group(parse_basis_group(text)) == text
    assert parse_basis_group(f"  {text.replace(',', ' , ')} ") == parse_basis_group(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("(1@0) 3", "unexpected trailing layout text"),
        ("(1/0@0)", "failed to parse layout descriptor"),
        ("(1)", "failed to parse layout descriptor"),
        ("1@0", "failed to parse layout descriptor"),
        ("(1@0", "failed to parse layout descriptor"),
        ("(a)", "failed to parse layout descriptor"),
    ],
)
def test_basis_group_errors(text: str, error: str) -> None:
    with pytest.raises(LayoutError, match=error):
        parse_basis_group(text)


@st.composite
def power_layouts(draw: st.DrawFn) -> Layout:
    """Power-of-two extents whose strides are a permutation of bit positions, some of them 0."""
    extents = draw(st.lists(st.sampled_from([2, 4, 8]), min_size=1, max_size=4))
    order = draw(st.permutations(range(len(extents))))
    plain = ordered_layout(tuple(extents), order)
    zero = draw(st.integers(0, len(extents)))
    strides = [0 if i == zero else d for i, (_, d) in enumerate(plain.int_leaves())]
    shape = tuple(extents)
    if len(extents) > 2:
        shape = (*extents[:-2], (extents[-2], extents[-1]))
        return Layout(shape, (*strides[:-2], (strides[-2], strides[-1])))
    return Layout(shape, tuple(strides))


@MANY
@given(power_layouts(), swizzles())
def test_linear_form_is_the_same_function(plain: Layout, swizzle: Swizzle) -> None:
    layout = ComposedLayout(swizzle, 0, plain)
    linear = coords_to_offset(layout)
    sizes = [mode.size for mode in plain]
    for flat in range(plain.size):
        point, rest = {}, flat
        for mode, extent in enumerate(sizes):
            rest, point[f"dim{mode}"] = divmod(rest, extent)
        kept = {name: i for name, i in point.items() if linear.in_bits(name)}
        assert linear.apply(kept) == (layout(tuple(point.values())),)
    back = to_cute(linear)
    assert back is not None
    assert coords_to_offset(back) == linear


def test_not_linear() -> None:
    for text, error in (
        ("(4,6):(1,4)", "extent 6"),
        ("(4,4):(1,3)", "overlaps"),
        ("S<1,0,1> o 1 o 4:1", "offset"),
    ):
        with pytest.raises(LayoutError, match=error):
            coords_to_offset(parse_layout(text))
        assert not is_linear(parse_layout(text))
    twisted = LinearLayout({"dim0": [(1,), (7,)], "dim1": [(4,)]}, (8,), ("offset",))
    assert to_cute(twisted) is None


def test_memory_layout() -> None:
    rows = memory_layout(parse_layout("(4,8):(8,1)"))
    assert rows == strided((4, 8), (1, 0))
    assert memory_layout(parse_layout("S<1,0,3> o 0 o (4,8):(8,1)")).apply({"offset": 8}) == (1, 1)
    with pytest.raises(LayoutError, match="exactly one element"):
        memory_layout(parse_layout("(4,4):(1,8)"))


def test_fragment_of_mma_accumulator() -> None:
    layout = fragment_layout(parse_layout("((4,8),(2,2)):((32,1),(16,8))"), (16, 8))  # type: ignore[arg-type]
    for lane in range(32):
        for register in range(4):
            row = lane // 4 + 8 * (register // 2)
            column = lane % 4 * 2 + register % 2
            assert layout.apply({"lane": lane, "register": register}) == (row, column)
    back = to_fragment(layout)
    assert str(back) == "((4,8),(2,2)):((32,1),(16,8))"


@MANY
@given(st.data())
def test_fragments_convert_both_ways(data: st.DataObject) -> None:
    layout = data.draw(distributed(data.draw(shapes())))
    back = to_fragment(layout)
    bases = [v for v in layout.all_flat() if v]
    single = all(v.bit_count() == 1 for v in bases) and len(set(bases)) == len(bases)
    assert (back is not None) == single
    if back is not None:
        whole = {**{s: layout.flat(s) for s in layout.spaces}}
        again = fragment_layout(back, layout.shape)
        assert {s: again.flat(s) for s in again.spaces} == whole


@pytest.mark.parametrize(
    ("stride", "size", "count"),
    [(4, 4, 1), (8, 4, 2), (128, 4, 32), (0, 4, 1), (16, 16, 4), (32, 16, 8), (8, 8, 2), (2, 2, 1)],
)
def test_wavefronts(stride: int, size: int, count: int) -> None:
    assert count_wavefronts([lane * stride for lane in range(32)], size) == count


def test_wavefronts_of_few_lanes() -> None:
    assert count_wavefronts([None] * 31 + [128], 4) == 1
    assert count_wavefronts([None] * 32, 4) == 0
    with pytest.raises(LayoutError, match="3 bytes"):
        count_wavefronts([0] * 32, 3)
    with pytest.raises(LayoutError, match="not aligned"):
        count_wavefronts([2] * 32, 4)


@MANY
@given(st.data(), st.sampled_from([8, 16, 32, 64]))
def test_memory_access_is_exact(data: st.DataObject, bits: int) -> None:
    shape = data.draw(shapes(8))
    tile = data.draw(distributed(shape))
    order = data.draw(st.permutations(range(len(shape))))
    shared = strided(shape, order)
    side = memory_access(shared, tile, bits)
    size = bits // 8
    place = {shared.unflatten(e): i for i, e in enumerate(gf2.table(shared.flat("offset")))}
    total = 0
    for access in side.accesses[0]:
        addresses = []
        for lane in range(32):
            start = side.thread_offset(lane, 1) ^ access.offset
            addresses.append(start * size)
            for k, register in enumerate(access.registers):
                point = {"register": register, "lane": lane, "warp": 1}
                point = {name: i for name, i in point.items() if tile.in_bits(name)}
                assert place[tile.apply(point)] == start + k
        total += count_wavefronts(addresses, size * side.vector)
    assert total == side.wavefronts


@MANY
@given(pairs(), st.sampled_from([8, 16, 32]))
def test_best_shared_layout(pair: tuple[LinearLayout, LinearLayout], bits: int) -> None:
    choice = best_shared_layout(*pair, bits)
    assert gf2.rank(choice.layout.flat("offset")) == choice.layout.out_bits
    for order in ((0, 1, 2), (2, 1, 0)):
        plain = strided(pair[0].shape, [d for d in order if d < pair[0].rank])
        fixed = sum(memory_access(plain, tile, bits).wavefronts for tile in pair)
        assert choice.wavefronts <= fixed or choice.store.vector > 1 or choice.load.vector > 1


def test_row_swizzle_removes_conflicts() -> None:
    """Rows written 16 bytes at a time, read down columns of 16 bytes: the pattern of ldmatrix."""
    tile = (64, 64)
    writer = blocked(tile, (1, 8), (4, 8), (4, 1), (1, 0))
    reader = blocked(tile, (1, 8), (32, 1), (2, 2), (0, 1))
    flat, swizzled = (swizzled_rows(tile, (1, 0), 16, n) for n in (16, 128))
    assert memory_access(swizzled, writer, 16).wavefronts == 16
    assert memory_access(swizzled, reader, 16).wavefronts == 16
    assert memory_access(strided(tile, (1, 0)), reader, 16).wavefronts == 16 * 8
    assert flat.is_injective
    for row in range(8):
        wanted = SWIZZLE_128B(row * 128) // 2
        assert swizzled.apply({"offset": wanted}) == (row, 0)
    with pytest.raises(LayoutError, match="no swizzle spans 48"):
        swizzled_rows(tile, (1, 0), 16, 48)

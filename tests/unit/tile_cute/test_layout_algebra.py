"""CuTe layouts: worked examples, and the laws by enumeration."""

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tile_cute import int_tuple as it
from tile_cute.errors import LayoutError
from tile_cute.int_tuple import IntTuple
from tile_cute.layout import Layout, concat, identity_layout, ordered_layout
from tile_cute.layout_algebra import (
    coalesce,
    complement,
    composition,
    dice_layout,
    downcast,
    equivalent,
    filter_zeros,
    filtered,
    group_modes,
    left_inverse,
    max_common_vector,
    recast,
    right_inverse,
    select,
    slice_layout,
    upcast,
)
from tile_cute.text import parse_layout, parse_tile
from tile_cute.tiling import (
    blocked_product,
    flat_divide,
    flat_product,
    local_partition,
    local_tile,
    logical_divide,
    logical_product,
    outer_divide,
    raked_product,
    stencil_divide,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    zipped_divide,
)

MANY = settings(max_examples=150, deadline=None)


def lay(text: str) -> Layout:
    layout = parse_layout(text)
    assert isinstance(layout, Layout)
    return layout


@st.composite
def trees(draw: st.DrawFn, leaf: st.SearchStrategy[int]) -> IntTuple:
    branch = lambda t: st.lists(t, min_size=1, max_size=3).map(tuple)  # noqa: E731
    return draw(st.recursive(leaf, branch, max_leaves=4))


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    shape = draw(trees(st.sampled_from([1, 2, 3, 4, 6, 8])))
    assume(it.size(shape) <= 512)
    strides = [draw(st.sampled_from([0, 1, 2, 3, 4, 8, 12, 64])) for _ in it.flatten(shape)]
    return Layout(shape, it.unflatten(strides, shape))


@st.composite
def compact(draw: st.DrawFn) -> Layout:
    """A bijection onto 0..size-1: strides in any order of the leaves."""
    shape = draw(trees(st.sampled_from([1, 2, 3, 4])))
    leaves = it.flatten(shape)
    assume(it.size(shape) <= 512)
    keys = draw(st.permutations(range(len(leaves))))
    return ordered_layout(shape, it.unflatten(keys, shape))


@pytest.mark.parametrize(
    ("outer", "inner", "result"),
    [
        ("8:2", "4:1", "4:2"),
        ("(4,2):(1,4)", "(2,2):(1,2)", "(2,2):(1,2)"),
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
        ("20:2", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
    ],
)
def test_composition_examples(outer: str, inner: str, result: str) -> None:
    assert str(composition(lay(outer), lay(inner))) == result


def test_composition_by_mode() -> None:
    tile = parse_tile("<3:4,8:2>")
    assert isinstance(tile, tuple)
    result = composition(lay("(12,(4,8)):(59,(13,1))"), tile)
    assert str(result) == "(3,(2,4)):(236,(26,1))"


@MANY
@given(layouts(), layouts())
def test_composition_law(outer: Layout, inner: Layout) -> None:
    try:
        result = composition(outer, inner)
    except LayoutError as error:
        assert str(outer) in str(error)  # noqa: PT017
        return
    for i in range(inner.size):
        if inner(i) < outer.size:
            assert result(i) == outer(inner(i))
    assert it.weakly_congruent(inner.shape, result.shape)


@pytest.mark.parametrize(
    ("layout", "bound", "result"),
    [
        ("4:1", 24, "6:4"),
        ("6:4", 24, "4:1"),
        ("(4,6):(1,4)", 24, "1:0"),
        ("4:2", 24, "(2,3):(1,8)"),
        ("(2,4):(1,6)", 24, "3:2"),
        ("(2,2):(1,6)", 24, "(3,2):(2,12)"),
        ("4:32", 256, "(32,2):(1,128)"),
        ("32:1", 128, "4:32"),
    ],
)
def test_complement_examples(layout: str, bound: int, result: str) -> None:
    assert str(complement(lay(layout), bound)) == result


@MANY
@given(layouts(), st.sampled_from([1, 24, 256]))
def test_complement_is_disjoint_and_covers(layout: Layout, bound: int) -> None:
    try:
        rest = complement(layout, bound)
    except LayoutError:
        seen = filtered(layout).indices()
        leaves = sorted((d, s) for s, d in filtered(layout).int_leaves() if d)
        overlap = any(b[0] % (a[0] * a[1]) for a, b in itertools.pairwise(leaves))
        assert len(set(seen)) != len(seen) or overlap
        return
    whole = concat([filtered(layout), rest]).indices()
    assert len(set(whole)) == len(whole)
    assert set(range(bound)) <= set(whole)


@pytest.mark.parametrize(
    ("layout", "result"),
    [
        ("(2,(1,6)):(1,(6,2))", "12:1"),
        ("(2,4):(1,2)", "8:1"),
        ("(2,4):(4,1)", "(2,4):(4,1)"),
        ("(2,4):(8,1)", "(2,4):(8,1)"),
        ("(1,1):(3,4)", "1:0"),
    ],
)
def test_coalesce_examples(layout: str, result: str) -> None:
    assert str(coalesce(lay(layout))) == result


@MANY
@given(layouts())
def test_coalesce_is_the_same_function(layout: Layout) -> None:
    flat = coalesce(layout)
    assert flat.indices() == layout.indices()
    assert all(extent > 1 for extent, _ in flat.leaves()) or str(flat) == "1:0"
    by_mode = coalesce(layout, (0,) * len(layout)) if it.is_tuple(layout.shape) else flat
    assert by_mode.indices() == layout.indices()


def test_filters_and_cosize() -> None:
    assert str(filter_zeros(lay("(4,3):(1,0)"))) == "(4,1):(1,0)"
    assert str(filtered(lay("(4,3):(1,0)"))) == "4:1"
    assert lay("(4,8):(1,5)").cosize == 39
    assert equivalent(lay("(4,3):(1,0)"), lay("(2,2):(1,2)"))
    assert not equivalent(lay("4:1"), lay("4:2"))


@pytest.mark.parametrize(
    ("layout", "right", "left"),
    [
        ("(4,8):(8,1)", "(8,4):(4,1)", "(8,4):(4,1)"),
        ("(4,8):(1,8)", "4:1", "(4,2,8):(1,32,4)"),
        ("(2,4,2):(4,1,8)", "(4,2,2):(2,1,8)", "(4,2,2):(2,1,8)"),
    ],
)
def test_inverse_examples(layout: str, right: str, left: str) -> None:
    assert str(right_inverse(lay(layout))) == right
    assert str(left_inverse(lay(layout))) == left


@MANY
@given(layouts())
def test_right_inverse_law(layout: Layout) -> None:
    inverse = right_inverse(layout)
    for i in range(inverse.size):
        assert layout(inverse(i)) == i


@MANY
@given(compact())
def test_inverses_of_a_bijection(layout: Layout) -> None:
    assert sorted(layout.indices()) == list(range(layout.size))
    inverse = right_inverse(layout)
    assert inverse.size == layout.size
    left = left_inverse(layout)
    assert [left(index) for index in layout.indices()] == list(range(layout.size))


def test_divide_examples() -> None:
    assert str(logical_divide(lay("(4,2,3):(2,1,8)"), lay("4:2"))) == (
        "((2,2),(2,3)):((4,1),(2,8))"
    )
    assert str(logical_divide(lay("128:1"), 32)) == "(32,4):(1,32)"
    square = lay("(128,128):(1,128)")
    assert str(tiled_divide(square, (64, 64))) == "((64,64),2,2):((1,128),64,8192)"
    assert str(logical_divide(square, (32, 16))) == "((32,4),(16,8)):((1,32),(128,2048))"
    layout = lay("(9,(4,8)):(59,(13,1))")
    tile = parse_tile("<3:3,(2,4):(1,8)>")
    assert isinstance(tile, tuple)
    assert str(logical_divide(layout, tile)) == ("((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))")
    assert str(tiled_divide(layout, tile)) == ("((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))")
    assert str(flat_divide(square, (64, 64))) == "(64,64,2,2):(1,128,64,8192)"
    assert str(zipped_divide(square, (64, None))) == "((64),(2,128)):((1),(64,128))"
    assert str(outer_divide(lay("(4,8):(1,4)"), (4,))) == "(4,(4,2)):(1,(4,16))"


@pytest.mark.parametrize(
    ("tiler", "error"),
    [
        (40, "failed to perform a valid division of .* by 40:1: 40 does not divide 128"),
        ((2, 2), r"expects rank\(tiler\) <= rank\(input\)"),
    ],
)
def test_divide_errors(tiler: int | tuple[int, ...], error: str) -> None:
    with pytest.raises(LayoutError, match=error):
        logical_divide(lay("128:1"), tiler)


@MANY
@given(compact(), compact())
def test_divide_only_reorders(layout: Layout, tiler: Layout) -> None:
    if layout.size % tiler.size:
        return
    try:
        divided = logical_divide(layout, tiler)
    except LayoutError:
        return
    assert sorted(divided.indices()) == sorted(layout.indices())
    assert [divided[0](i) for i in range(tiler.size)] == [
        layout(tiler(i)) for i in range(tiler.size)
    ]


def test_product_examples() -> None:
    line = lay("128:1")
    assert str(logical_product(line, 4)) == "(128,4):(1,128)"
    assert str(logical_product(line, lay("4:32"))) == "(128,4):(1,4096)"
    assert str(logical_product(lay("(2,2):(4,1)"), lay("6:1"))) == "((2,2),(2,3)):((4,1),(2,8))"
    block, grid = lay("(2,5):(5,1)"), lay("(3,4):(1,3)")
    assert str(blocked_product(block, grid)) == "((2,3),(5,4)):((5,10),(1,30))"
    assert str(raked_product(block, grid)) == "((3,2),(4,5)):((10,5),(30,1))"
    assert str(tiled_product(block, grid)) == "((2,5),3,4):((5,1),10,30)"
    assert str(flat_product(block, grid)) == "(2,5,3,4):(5,1,10,30)"


@MANY
@given(compact(), compact())
def test_product_repeats_the_block(block: Layout, tiler: Layout) -> None:
    assume(block.size * tiler.size <= 512)
    product = logical_product(block, tiler)
    assert product[0] == block
    assert sorted(product.indices()) == list(range(block.size * tiler.size))


def test_tile_to_shape() -> None:
    atom = lay("(8,64):(64,1)")
    assert str(tile_to_shape(atom, (128, 128))) == "(128,(64,2)):(64,(1,8192))"
    assert str(tile_to_shape(atom, (128, 128), (1, 0))) == "((8,16),(64,2)):((64,1024),(1,512))"
    with pytest.raises(LayoutError, match="does not divide"):
        tile_to_shape(atom, (12, 64))
    with pytest.raises(LayoutError, match="same rank"):
        tile_to_shape(atom, (128, 128), (0, 1, 2))


@MANY
@given(st.data())
def test_tile_to_shape_keeps_the_block(data: st.DataObject) -> None:
    block = ordered_layout((4, 8), tuple(data.draw(st.permutations(range(2)))))
    whole = tile_to_shape(block, (16, 32), tuple(data.draw(st.permutations(range(2)))))
    assert sorted(whole.indices()) == list(range(512))
    for i, j in itertools.product(range(4), range(8)):
        assert whole(i, j) == block(i, j)


def test_local_tile_and_partition() -> None:
    whole = lay("(8,16):(16,1)")
    tile, offset = local_tile(whole, (4, 8), (1, 1))
    assert (str(tile), offset) == ("(4,8):(16,1)", 72)
    kept, offset = local_tile(whole, (4, 8), (None, 1))
    assert (str(kept), offset) == ("(4,8,2):(16,1,64)", 8)
    threads = lay("(4,8):(8,1)")
    seen = []
    for thread in range(32):
        mine, start = local_partition(whole, threads, thread)
        assert isinstance(start, int)
        seen += [start + index for index in mine.indices()]
    assert sorted(seen) == list(range(128))
    with pytest.raises(LayoutError, match="rank 2"):
        local_tile(whole, (4, 8), (0, 0, 0))


def test_modes() -> None:
    layout = lay("(2,3,4):(1,2,6)")
    assert str(group_modes(layout, 0, 2)) == "((2,3),4):((1,2),6)"
    assert str(group_modes(layout, -2, 3)) == "(2,(3,4)):(1,(2,6))"
    assert str(select(layout, (2, 0))) == "(4,2):(6,1)"
    for begin, end, error in ((3, 4, "begin in the range"), (0, 4, "end in"), (1, 1, r"\(\[1\]\)")):
        with pytest.raises(LayoutError, match=error):
            group_modes(layout, begin, end)
    with pytest.raises(LayoutError, match=r"Invalid results for select\(\). Modes: \[0, 0\]"):
        select(layout, (0, 0))


def test_slice_and_dice() -> None:
    layout = lay("(4,(2,3)):(6,(1,2))")
    kept, offset = slice_layout(layout, (None, (1, None)))
    assert (str(kept), offset) == ("(4,3):(6,2)", 1)
    assert str(dice_layout(layout, (None, (1, None)))) == "(2):(1)"
    with pytest.raises(LayoutError, match="Failed to dice"):
        dice_layout(layout, (None, (1, None), 2))


@MANY
@given(compact(), st.sampled_from([2, 4, 8]))
def test_recast_round_trip(layout: Layout, factor: int) -> None:
    wide = downcast(layout, factor)
    assert wide.size in (layout.size, layout.size * factor)
    if wide.size != layout.size:
        assert equivalent(upcast(wide, factor), layout)


def test_recast() -> None:
    assert str(recast(lay("(8,4):(1,8)"), 16, 32)) == "(4,4):(1,4)"
    assert str(recast(lay("(8,4):(4,1)"), 8, 32)) == "(8,1):(1,1)"
    assert str(recast(lay("(4,4):(1,4)"), 32, 8)) == "(16,4):(1,16)"
    with pytest.raises(LayoutError, match="neither divides"):
        recast(lay("4:1"), 24, 32)
    with pytest.raises(LayoutError, match="split"):
        recast(lay("(3,4):(1,3)"), 16, 32)


def test_max_common_vector() -> None:
    assert max_common_vector(lay("(8,4):(1,8)"), lay("(8,4):(1,16)")) == 8
    assert max_common_vector(lay("(8,4):(1,8)"), lay("(8,4):(4,1)")) == 1
    assert max_common_vector(lay("(8,4):(4,1)"), lay("(8,4):(4,1)")) == 32


def test_identity_and_basis_strides() -> None:
    coords = identity_layout((4, (2, 3)))
    assert str(coords) == "(4,(2,3)):(1@0,(1@1@0,1@1@1))"
    assert coords(3, (1, 2)) == (3, (1, 2))
    half = composition(coords, (2, None))
    assert half(1, (0, 1)) == (1, (0, 1))
    assert parse_layout(str(coords)) == coords


@pytest.mark.parametrize(
    ("args", "length"),
    [((10, 3, 1, 1), 8), ((10, 3, 2, 1), 6), ((10, 3, 2, 2), 3), ((5, 5, 1, 1), 1)],
)
def test_stencil(args: tuple[int, int, int, int], length: int) -> None:
    extent, window, dilation, stride = args
    result = stencil_divide(Layout(extent), window, dilation, stride)
    assert result.shape == (window, length)
    for place, k in itertools.product(range(length), range(window)):
        assert result(k, place) == place * stride + k * dilation


def test_stencil_errors() -> None:
    with pytest.raises(LayoutError, match="smaller than the window"):
        stencil_divide(Layout(4), 3, 2)
    with pytest.raises(LayoutError, match="positive"):
        stencil_divide(Layout(4), 0)


def test_ordered_layout() -> None:
    assert str(ordered_layout((2, 4, 8), (2, 0, 1))) == "(2,4,8):(32,1,4)"
    assert str(ordered_layout(((2, 2), 4), (1, 0))) == "((2,2),4):((4,8),1)"


def test_illegal_layouts() -> None:
    with pytest.raises(LayoutError, match="not congruent"):
        Layout((2, 2), (1,))
    with pytest.raises(LayoutError, match="not positive"):
        Layout((2, 0))
    with pytest.raises(LayoutError, match="does not fit shape"):
        Layout((2, 2))((1, 1, 1))


def test_tuple_arithmetic() -> None:
    assert it.arithmetic("mul", (2, (3, 4)), 2) == (4, (6, 8))
    assert it.arithmetic("sub", (5, (3, 4)), (1, (1, 1))) == (4, (2, 3))
    assert it.ceil_div((10, 9), (4, 3)) == (3, 3)
    assert it.shape_div((8, 4), 16) == (1, 2)
    assert it.shape_div(7, 2, "floor") == 3
    with pytest.raises(LayoutError, match="zero divisor"):
        it.arithmetic("div", (4, 4), (2, 0))
    with pytest.raises(LayoutError, match="congruent"):
        it.arithmetic("add", (4, 4), (2, (0, 1)))
    with pytest.raises(LayoutError, match="divides the other"):
        it.shape_div(6, 4)

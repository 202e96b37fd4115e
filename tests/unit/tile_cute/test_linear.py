"""Linear layouts against their definition by enumeration."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import distributed, holdings, pairs, shapes
from tile_cute import gf2
from tile_cute.linear import (
    LayoutError,
    LinearLayout,
    blocked,
    broadcast_dims,
    broadcast_registers,
    compose,
    default_blocked,
    divide,
    expand_dim,
    invert,
    invert_and_compose,
    join,
    permute_dims,
    product,
    project_dims,
    quotient,
    replicated,
    reshape,
    slice_dim,
    slice_registers,
    strided,
    subtile,
    subtile_registers,
    threads_contiguous_along,
    vector_width,
)

FEW = settings(max_examples=40, deadline=None)


@st.composite
def any_distributed(draw: st.DrawFn) -> LinearLayout:
    return draw(distributed(draw(shapes())))


def elements(layout: LinearLayout) -> list[tuple[int, ...]]:
    ranges = [range(layout.in_size(space)) for space in layout.spaces]
    return [
        layout.apply(dict(zip(layout.spaces, point, strict=True)))
        for point in itertools.product(*ranges)
    ]


@FEW
@given(any_distributed())
def test_text_round_trip(layout: LinearLayout) -> None:
    again = LinearLayout.parse(str(layout))
    assert again == layout
    assert hash(again) == hash(layout)
    assert "\n" not in str(layout)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("register=[[1]]", "no ': shape'"),
        ("register=[[1]] : 3", "power of two"),
        ("register=[[4]] : 4", "outside shape"),
        ("register=[[1,0]] : 4", "rank"),
        ("register=[[1] : 4", "column 0"),
        ("lane=[[1]] lane=[[2]] : 4", "occurs twice"),
        ("lane=[[1]] : fourteen", "expected a shape"),
    ],
)
def test_bad_text(text: str, error: str) -> None:
    with pytest.raises(LayoutError, match=error):
        LinearLayout.parse(text)


def test_xor_of_bases() -> None:
    layout = LinearLayout({"register": [(0, 1), (3, 2)], "lane": [(1, 0)]}, (4, 4))
    assert layout.apply({"register": 3, "lane": 1}) == (2, 3)
    assert layout.coord_bits(0) == {"register": (0, 3), "lane": (1,)}
    assert layout.coords("register") == [(0, 0), (0, 1), (3, 2), (3, 3)]
    assert layout.bases["warp"] == ()
    with pytest.raises(LayoutError, match="outside space 'lane'"):
        layout.apply({"lane": 2})


@FEW
@given(any_distributed())
def test_predicates_by_counting(layout: LinearLayout) -> None:
    seen = elements(layout)
    assert layout.is_surjective == (len(set(seen)) == layout.size)
    assert layout.is_injective == (len(set(seen)) == len(seen))
    assert len(set(seen)) == 1 << len(layout.image())
    assert len(seen) == len(set(seen)) << len(layout.kernel())
    for difference in layout.kernel():
        assert not any(layout.apply(difference))


@FEW
@given(any_distributed())
def test_free_bits_leave_each_element_once(layout: LinearLayout) -> None:
    kept = [
        [i for i in range(layout.in_size(space)) if not i & layout.free_mask(space)]
        for space in layout.spaces
    ]
    seen = [
        layout.apply(dict(zip(layout.spaces, point, strict=True)))
        for point in itertools.product(*kept)
    ]
    assert len(seen) == len(set(seen)) == layout.size


@FEW
@given(any_distributed())
def test_inverse(layout: LinearLayout) -> None:
    identity = compose(layout, invert(layout))
    for coord in itertools.product(*map(range, layout.shape)):
        point = {f"dim{i}": value for i, value in enumerate(coord)}
        assert identity.apply(point) == coord


@FEW
@given(pairs())
def test_invert_and_compose(pair: tuple[LinearLayout, LinearLayout]) -> None:
    src, dst = pair
    assert compose(src, invert_and_compose(src, dst)) == dst


def test_missing_elements_are_named() -> None:
    half = LinearLayout({"lane": [(1,)]}, (4,))
    with pytest.raises(LayoutError, match=r"no index reaches coordinate \[2\]"):
        invert(half)


@FEW
@given(any_distributed(), any_distributed())
def test_divide_undoes_product(tile: LinearLayout, outer: LinearLayout) -> None:
    if tile.rank != outer.rank:
        with pytest.raises(LayoutError, match="different dimensions"):
            product(tile, outer)
        return
    both = product(tile, outer)
    assert divide(both, tile) == outer
    assert quotient(both, tile) == outer
    assert both.size == tile.size * outer.size


def test_quotient_error() -> None:
    with pytest.raises(LayoutError, match="does not begin with"):
        quotient(strided((4, 4), (1, 0)), strided((4, 4), (0, 1)))


@FEW
@given(shapes(10, 3), st.data(), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]))
def test_blocked_nests_boxes(
    shape: tuple[int, ...], data: st.DataObject, per_thread: int, warps: int
) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    fast = order[0]
    pick = lambda n: tuple(n if d == fast else 1 for d in range(len(shape)))  # noqa: E731
    layout = blocked(shape, pick(per_thread), pick(32), pick(warps), order)
    assert layout.is_surjective
    assert layout.in_size("lane") == 32
    assert layout.in_size("warp") == warps
    for lane in range(32):
        expected = lane * per_thread if (lane + 1) * per_thread <= shape[fast] else None
        if expected is not None:
            assert layout.apply({"lane": lane})[fast] == expected


def test_blocked_examples() -> None:
    layout = blocked((4, 64), (1, 4), (1, 32), (2, 1), (1, 0))
    assert str(layout) == (
        "register=[[0,1],[0,2],[2,0]] lane=[[0,4],[0,8],[0,16],[0,32],[0,0]] warp=[[1,0]] : 4x64"
    )
    assert layout.free_mask("lane") == 16
    small = blocked((2,), (4,), (32,), (4,), (0,))
    assert small.elements_per_thread == 2
    with pytest.raises(LayoutError, match="no permutation"):
        blocked((2, 2), (1, 1), (1, 32), (1, 1), (0, 0))
    with pytest.raises(LayoutError, match="power of two"):
        blocked((6,), (1,), (32,), (1,), (0,))


@FEW
@given(shapes(12, 3), st.data(), st.sampled_from([1, 4]), st.sampled_from([1, 4]))
def test_default_blocked(
    shape: tuple[int, ...], data: st.DataObject, warps: int, per_thread: int
) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    layout = default_blocked(shape, warps, order, per_thread)
    assert layout.is_surjective
    assert (layout.in_size("lane"), layout.in_size("warp")) == (32, warps)
    replicas = 32 * warps * layout.elements_per_thread // layout.size
    assert replicas == max(1, replicas)


def test_rank_zero() -> None:
    scalar = default_blocked((), 4, ())
    assert scalar.elements_per_thread == 1
    assert LinearLayout.parse(str(scalar)) == scalar
    assert replicated((), warps=4) == scalar


@FEW
@given(any_distributed(), st.data())
def test_slice_keeps_what_threads_hold(layout: LinearLayout, data: st.DataObject) -> None:
    dim = data.draw(st.integers(0, layout.rank - 1))
    sliced = slice_dim(layout, dim)
    targets = slice_registers(layout, dim)
    assert gf2.rank(sliced.flat("register")) == sliced.in_bits("register")
    before, after = holdings(layout), holdings(sliced)
    for lanes, sliced_lanes in zip(before, after, strict=True):
        for regs, sliced_regs in zip(lanes, sliced_lanes, strict=True):
            for register, element in enumerate(regs):
                coord = layout.unflatten(element)
                expected = coord[:dim] + coord[dim + 1 :]
                assert sliced.unflatten(sliced_regs[targets[register]]) == expected


@FEW
@given(any_distributed(), st.data())
def test_broadcast(layout: LinearLayout, data: st.DataObject) -> None:
    dim = data.draw(st.integers(0, layout.rank))
    thin = expand_dim(layout, dim)
    wide_shape = [*thin.shape]
    wide_shape[dim] = data.draw(st.sampled_from([1, 2, 4]))
    wide = broadcast_dims(thin, wide_shape)
    picks = broadcast_registers(thin, wide)
    assert picks is not None
    for register, pick in enumerate(picks):
        same = thin.apply({"register": pick})
        assert same == thin.apply({"register": register % layout.elements_per_thread})
        assert same == tuple(
            0 if d == dim else c for d, c in enumerate(wide.apply({"register": register}))
        )
    assert slice_dim(wide, dim).image() == layout.image()


@FEW
@given(any_distributed(), st.data())
def test_broadcast_of_projection_is_local(layout: LinearLayout, data: st.DataObject) -> None:
    keep = [data.draw(st.booleans()) for _ in layout.shape]
    shape = [size if k else 1 for size, k in zip(layout.shape, keep, strict=True)]
    thin = project_dims(layout, shape)
    picks = broadcast_registers(thin, layout)
    assert picks is not None
    for register, pick in enumerate(picks):
        wanted = [c * k for c, k in zip(layout.apply({"register": register}), keep, strict=True)]
        assert list(thin.apply({"register": pick})) == wanted


def test_broadcast_needs_conversion() -> None:
    src = blocked((1, 32), (1, 1), (1, 32), (1, 1), (1, 0))
    dst = blocked((32, 32), (1, 1), (32, 1), (1, 1), (0, 1))
    assert broadcast_registers(src, dst) is None


@FEW
@given(any_distributed(), st.data())
def test_permute_and_reshape(layout: LinearLayout, data: st.DataObject) -> None:
    perm = data.draw(st.permutations(range(layout.rank)))
    turned = permute_dims(layout, perm)
    flat = reshape(layout, (layout.size,))
    for point in ({"lane": 5}, {"warp": 2}, {"register": layout.elements_per_thread - 1}):
        coord = layout.apply(point)
        assert turned.apply(point) == tuple(coord[p] for p in perm)
        assert flat.apply(point) == (layout.flatten(coord),)
    assert reshape(flat, layout.shape) == layout


@FEW
@given(any_distributed(), st.data())
def test_subtiles_of_a_join(layout: LinearLayout, data: st.DataObject) -> None:
    dim = data.draw(st.integers(0, layout.rank - 1))
    count = data.draw(st.sampled_from([1, 2, 4]))
    whole = join(layout, dim, count)
    assert subtile(whole, layout.shape) == layout
    for part in range(count):
        offset = [layout.shape[dim] * part if d == dim else 0 for d in range(layout.rank)]
        first = part * layout.elements_per_thread
        expected = tuple(range(first, first + layout.elements_per_thread))
        assert subtile_registers(whole, layout.shape, offset) == expected


def test_subtile_across_lanes() -> None:
    layout = blocked((64,), (2,), (32,), (1,), (0,))
    assert subtile(layout, (32,)) is None
    with pytest.raises(LayoutError, match="no thread-local subtile"):
        subtile_registers(layout, (32,), (0,))


def brute_width(layout: LinearLayout, dim: int) -> int:
    """Longest aligned run of consecutive registers that steps by one along `dim`, everywhere."""
    width = layout.elements_per_thread
    while width > 1:
        runs = (
            [layout.unflatten(e) for e in regs[i : i + width]]
            for lanes in holdings(layout)
            for regs in lanes
            for i in range(0, len(regs), width)
        )
        if all(
            run[0][dim] % width == 0
            and all(
                coord == (*run[0][:dim], run[0][dim] + k, *run[0][dim + 1 :])
                for k, coord in enumerate(run)
            )
            for run in runs
        ):
            return width
        width //= 2
    return 1


@FEW
@given(any_distributed(), st.data())
def test_contiguous_registers(layout: LinearLayout, data: st.DataObject) -> None:
    dim = data.draw(st.integers(0, layout.rank - 1))
    assert layout.registers_contiguous_along(dim) == brute_width(layout, dim)


@FEW
@given(st.data())
def test_contiguous_registers_of_blocked(data: st.DataObject) -> None:
    per_thread = data.draw(st.sampled_from([1, 2, 4, 8]))
    shape = (data.draw(st.sampled_from([1, 4, 32])), data.draw(st.sampled_from([1, 4, 256])))
    layout = blocked(shape, (1, per_thread), (1, 32), (4, 1), (1, 0))
    assert layout.registers_contiguous_along(1) == brute_width(layout, 1)


def test_vector_width() -> None:
    layout = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0))
    assert vector_width(layout, (1, 0), 16) == 8
    assert vector_width(layout, (1, 0), 32) == 4
    assert vector_width(layout, (1, 0), 16, divisibility=12) == 4
    assert vector_width(layout, (1, 0), 16, divisibility=0) == 8
    assert vector_width(layout, (1, 0), 16, max_bits=32) == 2
    assert vector_width(layout, (0, 1), 16) == 1
    assert vector_width(replicated(()), (), 32) == 1
    assert threads_contiguous_along(layout, 1) == 8
    # a lane that starts in the middle of another's run
    crossed = LinearLayout({"register": [(1,), (2,)], "lane": [(3,), (4,)]}, (8,))
    assert crossed.registers_contiguous_along(0) == 1

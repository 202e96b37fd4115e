"""Conversion plans move every element to its place, and count what they say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import holdings, pairs, warp_local_pairs
from tile_cute import gf2
from tile_cute.linear import (
    LayoutError,
    LinearLayout,
    Plan,
    RegisterPermute,
    SharedRoundTrip,
    SharedSide,
    WarpShuffle,
    blocked,
    execute,
    matrix_side,
    memory_access,
    plan_conversion,
    replicated,
    slice_dim,
)
from tile_cute.linear.shared import plan_shared

SOME = settings(max_examples=120, deadline=None)
SIZES = st.sampled_from([1, 8, 16, 32, 64])


def moved(plan: Plan, src: LinearLayout, dst: LinearLayout) -> None:
    assert execute(plan, holdings(src)) == holdings(dst)


def count_wavefronts(side: SharedSide, elem_bytes: int, lanes: int = 32) -> int:
    """Lane by lane: per phase the largest number of distinct words of one bank (warp 0)."""
    size = side.vector * elem_bytes
    served = max(1, size // 4)
    total = 0
    for group in side.accesses:
        for access in group:
            starts = [
                (side.thread_offset(lane, 0) ^ access.offset) * elem_bytes for lane in range(lanes)
            ]
            for first in range(0, lanes, lanes // served):
                words: dict[int, set[int]] = {}
                for start in starts[first : first + lanes // served]:
                    assert start % size == 0
                    for word in range(start // 4, (start + size - 1) // 4 + 1):
                        words.setdefault(word % 32, set()).add(word)
                total += max(map(len, words.values()))
    return total


@SOME
@given(pairs(), SIZES)
def test_conversion(pair: tuple[LinearLayout, LinearLayout], bits: int) -> None:
    plan = plan_conversion(*pair, bits)
    moved(plan, *pair)
    assert plan.describe()
    if isinstance(plan, SharedRoundTrip):
        for side in (plan.store, plan.load):
            assert count_wavefronts(side, plan.elem_bytes) == side.wavefronts >= side.ideal


@SOME
@given(pairs())
def test_matrix_loads(pair: tuple[LinearLayout, LinearLayout]) -> None:
    """What a plan says of matrix loads is what those of its buffer are."""
    src, dst = pair
    plan = plan_shared(src, dst, 16, None, "cta")
    if plan.matrices is not None:
        assert plan.buffer is not None
        side = matrix_side(memory_access(plan.buffer, dst, 16), 16, transposed=True)
        assert side is not None
        assert plan.matrices == (side.wavefronts, len(side.accesses))
        assert plan.store.vector == 8


def test_a_transpose_is_loaded_as_matrices() -> None:
    rows = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0))
    columns = blocked((64, 64), (8, 1), (4, 8), (1, 4), (0, 1))
    plan = plan_conversion(rows, columns, 16)
    assert isinstance(plan, SharedRoundTrip)
    assert plan.matrices == (16, 4)
    assert "4 loads of matrices in 16 wavefronts" in plan.describe()
    moved(plan, rows, columns)
    wide = plan_conversion(rows, columns, 32)
    assert isinstance(wide, SharedRoundTrip)
    assert wide.matrices is None


@SOME
@given(warp_local_pairs(), SIZES)
def test_conversion_within_warps(pair: tuple[LinearLayout, LinearLayout], bits: int) -> None:
    plan = plan_conversion(*pair, bits, max_smem=0)
    assert not isinstance(plan, SharedRoundTrip)
    moved(plan, *pair)


@SOME
@given(pairs(), st.sampled_from([8, 16, 32, 64]), st.integers(0, 3), st.booleans())
def test_forced_round_trip(
    pair: tuple[LinearLayout, LinearLayout], bits: int, halvings: int, guarded: bool
) -> None:
    limit = pair[0].size * bits // 8 >> halvings
    try:
        plan = plan_shared(*pair, bits, limit, "cta", guarded)
    except LayoutError as error:
        assert "elements in shared memory at least" in str(error)  # noqa: PT017
        return
    assert guarded or not (plan.store.is_guarded or plan.load.is_guarded)
    assert plan.bytes <= limit
    moved(plan, *pair)
    for side in (plan.store, plan.load):
        assert count_wavefronts(side, plan.elem_bytes) == side.wavefronts


def test_identity_and_permutation() -> None:
    layout = blocked((16, 64), (2, 2), (4, 8), (2, 2), (1, 0))
    plan = plan_conversion(layout, layout, 32)
    assert isinstance(plan, RegisterPermute)
    assert plan.is_identity
    swapped = LinearLayout(
        {**layout.bases, "register": layout.bases["register"][::-1]}, layout.shape
    )
    plan = plan_conversion(layout, swapped, 32)
    assert isinstance(plan, RegisterPermute)
    assert plan.perm[1] == 1 << (layout.in_bits("register") - 1)


def test_transposed_quad_needs_three_shuffles() -> None:
    """A 4x4 transpose across four lanes: a quarter of the data stays at home."""
    src = LinearLayout({"register": [(0, 1), (0, 2)], "lane": [(1, 0), (2, 0)]}, (4, 4))
    dst = LinearLayout({"register": [(1, 0), (2, 0)], "lane": [(0, 1), (0, 2)]}, (4, 4))
    plan = plan_conversion(src, dst, 32)
    assert isinstance(plan, WarpShuffle)
    assert plan.is_butterfly
    assert plan.shuffles == 3


def test_narrow_elements_share_shuffles() -> None:
    src = blocked((1, 1024), (1, 32), (1, 32), (1, 1), (1, 0))
    dst = LinearLayout(
        {"register": src.bases["register"], "lane": src.bases["lane"][::-1]}, src.shape
    )
    counts = {}
    for bits in (8, 16, 32, 64):
        plan = plan_conversion(src, dst, bits, max_smem=0)
        assert isinstance(plan, WarpShuffle)
        counts[bits] = plan.shuffles
    assert counts == {8: 8, 16: 16, 32: 32, 64: 64}


def test_gathering_a_sliced_layout_is_free() -> None:
    """Replicas already hold the value: no data moves."""
    tile = blocked((32, 32), (1, 1), (1, 32), (4, 1), (1, 0))
    row = slice_dim(tile, 1)
    assert isinstance(plan_conversion(row, row, 32), RegisterPermute)
    everywhere = replicated((4,), warps=4)
    spread = LinearLayout({"lane": [(1,), (2,), (0,), (0,), (0,)], "warp": [(0,), (0,)]}, (4,))
    plan = plan_conversion(everywhere, spread, 32)
    assert isinstance(plan, WarpShuffle)
    assert plan.shuffles == 0


def test_large_transpose_has_no_conflicts() -> None:
    src = blocked((128, 256), (1, 8), (1, 32), (4, 1), (1, 0))
    dst = blocked((128, 256), (8, 1), (16, 2), (1, 4), (0, 1))
    for bits in (8, 16, 32, 64):
        plan = plan_conversion(src, dst, bits)
        assert isinstance(plan, SharedRoundTrip)
        assert plan.store.wavefronts == plan.store.ideal
        assert plan.load.wavefronts == plan.load.ideal
    split = plan_conversion(src, dst, 32, max_smem=65536)
    assert isinstance(split, SharedRoundTrip)
    assert (split.passes, split.bytes) == (2, 65536)


def test_guarded_passes_fit_where_plain_ones_do_not() -> None:
    src = blocked((64, 64), (1, 4), (2, 16), (4, 1), (1, 0))
    dst = blocked((64, 64), (4, 1), (16, 2), (1, 4), (0, 1))
    with pytest.raises(LayoutError, match="4096 elements in shared memory at least, 2048 fit"):
        plan_conversion(src, dst, 32, max_smem=8192)
    plan = plan_conversion(src, dst, 32, max_smem=8192, guarded=True)
    assert isinstance(plan, SharedRoundTrip)
    assert (plan.passes, plan.bytes) == (2, 8192)
    assert plan.store.is_guarded or plan.load.is_guarded
    moved(plan, src, dst)


def test_errors() -> None:
    layout = blocked((64, 64), (1, 1), (1, 32), (4, 1), (1, 0))
    other = blocked((64, 64), (1, 1), (32, 1), (1, 4), (0, 1))
    with pytest.raises(LayoutError, match="different tiles"):
        plan_conversion(layout, blocked((64,), (1,), (32,), (4,), (0,)), 32)
    with pytest.raises(LayoutError, match=r"has 4 warps, .* has 8"):
        plan_conversion(layout, blocked((64, 64), (1, 1), (1, 32), (8, 1), (1, 0)), 32)
    with pytest.raises(LayoutError, match="65 bits"):
        plan_conversion(layout, layout, 65)
    with pytest.raises(LayoutError, match="elements in shared memory at least, 0 fit"):
        plan_conversion(layout, other, 32, max_smem=0)
    with pytest.raises(LayoutError, match="not distributed over threads"):
        plan_conversion(layout, LinearLayout({"offset": [(1, 0)]}, (64, 64)), 32)
    flat = {space: layout.flat(space) for space in layout.spaces}
    half = LinearLayout.from_flat({**flat, "register": ()}, layout.shape)
    with pytest.raises(LayoutError, match="lacks elements"):
        plan_conversion(half, layout, 32)


def test_block_bits() -> None:
    """A tile spread over a cluster converts within each CTA, and only there."""
    one = blocked((32, 32), (1, 1), (1, 32), (4, 1), (1, 0))
    two = blocked((32, 32), (1, 1), (32, 1), (1, 4), (0, 1))
    bases = ({**one.bases, "block": [(32, 0)]}, {**two.bases, "block": [(32, 0)]})
    src, dst = (LinearLayout(b, (64, 32)) for b in bases)
    plan = plan_conversion(src, dst, 32)
    assert isinstance(plan, SharedRoundTrip)
    assert plan.bytes == 32 * 32 * 4
    moved(plan, one, two)
    elsewhere = LinearLayout({**two.bases, "block": [(0, 0)]}, (64, 32))
    with pytest.raises(LayoutError, match="distributed shared memory"):
        plan_conversion(src, elsewhere, 32)


def test_gf2_identities() -> None:
    vectors = [0b0110, 0b1010, 0b1100, 0b0001]
    assert gf2.rank(vectors) == 3
    assert gf2.kernel(vectors) == [0b0111]
    assert gf2.inverse([0b01, 0b11]) == [0b01, 0b11]
    assert gf2.inverse([0b01, 0b01]) is None
    assert gf2.reduced([0b110, 0b011]) == gf2.reduced([0b101, 0b011])
    assert gf2.intersection([0b01, 0b10], [0b11, 0b100]) == [0b11]

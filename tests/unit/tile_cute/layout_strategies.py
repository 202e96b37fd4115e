"""Random layouts for property tests, and the definition by enumeration that they are held to."""

from hypothesis import strategies as st
from tile_cute import gf2
from tile_cute.linear import LinearLayout

LANE_BITS, WARP_BITS = 5, 2


def holdings(layout: LinearLayout) -> list[list[list[object]]]:
    """The element that `[warp][lane][register]` holds, as its flat index."""
    tables = [gf2.table(layout.flat(space)) for space in ("register", "lane", "warp")]
    registers, lanes, warps = tables
    return [[[r ^ lane ^ warp for r in registers] for lane in lanes] for warp in warps]


@st.composite
def shapes(draw: st.DrawFn, max_bits: int = 9, max_rank: int = 3) -> tuple[int, ...]:
    rank = draw(st.integers(1, max_rank))
    return tuple(1 << draw(st.integers(0, max_bits // rank)) for _ in range(rank))


@st.composite
def invertible(draw: st.DrawFn, bits: int) -> list[int]:
    """Columns of an invertible matrix: a permutation with some columns added to others."""
    columns = [1 << i for i in draw(st.permutations(range(bits)))]
    if bits > 1:
        pairs = st.tuples(st.integers(0, bits - 1), st.integers(0, bits - 1))
        for i, j in draw(st.lists(pairs, max_size=6)):
            if i != j:
                columns[i] ^= columns[j]
    return columns


@st.composite
def distributed(draw: st.DrawFn, shape: tuple[int, ...], replicas: bool = True) -> LinearLayout:
    """A surjective layout over 32 lanes and 4 warps, with replicated bits of both kinds."""
    bits = LinearLayout({}, shape).out_bits
    vectors: list[int] = draw(invertible(bits))
    extra = draw(st.integers(0, 3)) if replicas else 0
    while len(vectors) < LANE_BITS + WARP_BITS or extra > 0:
        known = st.sampled_from([0, *vectors]) if vectors else st.just(0)
        vectors.append(draw(known) if replicas else 0)
        extra -= 1
    vectors = list(draw(st.permutations(vectors)))
    threads = LANE_BITS + WARP_BITS
    flat = {
        "lane": vectors[:LANE_BITS],
        "warp": vectors[LANE_BITS:threads],
        "register": vectors[threads:],
    }
    return LinearLayout.from_flat(flat, shape)


@st.composite
def pairs(draw: st.DrawFn, max_bits: int = 9) -> tuple[LinearLayout, LinearLayout]:
    shape = draw(shapes(max_bits))
    return draw(distributed(shape)), draw(distributed(shape))


@st.composite
def warp_local_pairs(draw: st.DrawFn) -> tuple[LinearLayout, LinearLayout]:
    """Two layouts whose warps hold the same elements."""
    src = draw(distributed(draw(shapes())))
    vectors = [*src.flat("lane"), *src.flat("register")]
    mixed = [gf2.combine(vectors, column) for column in draw(invertible(len(vectors)))]
    flat = {"lane": mixed[:LANE_BITS], "register": mixed[LANE_BITS:], "warp": src.flat("warp")}
    return src, LinearLayout.from_flat(flat, src.shape)

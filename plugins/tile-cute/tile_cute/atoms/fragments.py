"""Fragment layouts of warp and warp-group MMAs, as linear layouts.

All follow one scheme (PTX ISA, "Matrix fragments for mma" and "for wgmma"): with g = lane / 4 and
t = lane % 4, a 32-bit register holds neighbours along K (A, B) or N (C, D), t picks the register
along that dimension, g the row of A and C or the column of B. Further registers alternate between
rows g and g + 8, then go on along K or N. A value of 64 bits takes the place of a register.
"""

from functools import cache

from tile_cute.linear.layout import LinearLayout, log2


def _runs(start: int, stop: int) -> list[int]:
    """Powers of two from `start` up to below `stop`."""
    values = []
    while start < stop:
        values.append(start)
        start *= 2
    return values


@cache
def fragment_a(m: int, k: int, bits: int, warps: int = 1) -> LinearLayout:
    """A, M x K: per warp 8 or 16 rows; warps stack along M. `bits` is the register footprint."""
    word = max(1, 32 // bits)
    rows = m // warps
    bases = {
        "register": [
            *[(0, v) for v in _runs(1, word)],
            *[(v, 0) for v in _runs(8, rows)],
            *[(0, v) for v in _runs(4 * word, k)],
        ],
        "lane": [(0, word), (0, 2 * word), (1, 0), (2, 0), (4, 0)],
        "warp": [(v, 0) for v in _runs(rows, m)],
    }
    return LinearLayout(bases, (m, k))


@cache
def fragment_b(n: int, k: int, bits: int) -> LinearLayout:
    """B, K x N with 8 columns: words along K."""
    word = max(1, 32 // bits)
    bases = {
        "register": [*[(v, 0) for v in _runs(1, word)], *[(v, 0) for v in _runs(4 * word, k)]],
        "lane": [(word, 0), (2 * word, 0), (0, 1), (0, 2), (0, 4)],
    }
    return LinearLayout(bases, (k, n))


@cache
def fragment_c(m: int, n: int, warps: int = 1) -> LinearLayout | None:
    """C and D, M x N: pairs along N; None for an N that is no power of two (tiles of 8 columns
    are then numbered by `register // 4` all the same, see `accumulator_register`).
    """
    if n & (n - 1):
        return None
    rows = m // warps
    bases = {
        "register": [(0, 1), *[(v, 0) for v in _runs(8, rows)], *[(0, v) for v in _runs(8, n)]],
        "lane": [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)],
        "warp": [(v, 0) for v in _runs(rows, m)],
    }
    return LinearLayout(bases, (m, n))


def accumulator_register(row: int, column: int) -> tuple[int, int, int]:
    """(warp, lane, register) of an element of D of a warp-group MMA, for any N."""
    lane = row % 8 * 4 + column % 8 // 2
    return row // 16, lane, column // 8 * 4 + row // 8 % 2 * 2 + column % 2


@cache
def metadata_fragment(
    rows: int, kept: int, fields: int, halved: bool, warps: int = 1
) -> LinearLayout:
    """Sparsity metadata: which kept element of A each field of a lane's u32 describes.

    `kept` is the number of fields along a row of A, `fields` the number in one register. With
    `halved` (16- and 32-bit elements) rows g and g + 8 share a register, half of it each; else
    they take a lane each. The lanes of a quad that take part come first (selector 0; a selector
    s stands for the next ones), the others are not read and appear as replicas.

    PTX ISA, "Sparse matrix storage" of mma.sp.
    """
    piece = fields // 2 if halved else fields
    register: list[tuple[int, int]] = [(0, v) for v in _runs(1, piece)]
    quad: list[tuple[int, int]] = []
    (register if halved else quad).append((8, 0))
    quad += [(0, v) for v in _runs(piece, kept)]
    quad += [(0, 0)] * (2 - len(quad))
    bases = {
        "register": register,
        "lane": [*quad, (1, 0), (2, 0), (4, 0)],
        "warp": [(v, 0) for v in _runs(rows // warps, rows)],
    }
    return LinearLayout(bases, (rows, kept))


@cache
def scale_fragment(rows: int, blocks: int, is_a: bool) -> LinearLayout:
    """Block scales of a warp MMA: bytes of one u32 along K, rows of A or columns of B by lane.

    With thread-id 0: for A lanes t = 0 and 1 give rows g and g + 8, for B lane t = 0 gives
    column g; the other lanes of a quad are not read, so they appear as replicas.
    """
    low = [(8, 0), (0, 0)] if is_a else [(0, 0), (0, 0)]
    bases = {
        "register": [(0, v) for v in _runs(1, blocks)],
        "lane": [*low, (1, 0), (2, 0), (4, 0)],
    }
    return LinearLayout(bases, (rows, blocks))


def register_count(layout: LinearLayout, bits: int) -> int:
    """32-bit registers that a fragment of elements of `bits` bits takes."""
    return max(1, layout.elements_per_thread * bits // 32)


def fragment_bits(layout: LinearLayout) -> int:
    """log2 of the elements a thread holds."""
    return log2(layout.elements_per_thread)

"""How matrices lie in tensor memory: 128 rows ("lanes" of the memory) of 512 32-bit columns.

Spaces are `row` (7 bits: 5 of them within the 32 rows that one warp of four may access, 2 name
the warp) and `column`. PTX ISA, "tcgen05 data path layout organization" and "block scaling".
"""

from dataclasses import dataclass
from functools import cache

from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout, log2

ROWS, COLUMNS = 128, 512


def _bits(extent: int, dim: int, start: int = 1) -> list[tuple[int, int]]:
    values = []
    while start < extent:
        values.append((start, 0) if dim == 0 else (0, start))
        start *= 2
    return values


@dataclass(frozen=True)
class Datapath:
    """Which row of D (and A) each of the 7 bits of a memory row stands for.

    0 is a bit that rows leave unused; bits of `banks` choose a share of the columns instead: each
    bank holds all the rows, so that what is read by rows has to be there in every bank.
    """

    name: str
    rows: tuple[int, ...]
    banks: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Rows of one CTA."""
        return 1 << sum(v > 0 for v in self.rows)


# PTX ISA, "Data path layout organization": A to G.
_DATAPATHS = {
    "A": Datapath("A", (1, 2, 4, 8, 16, 32, 64)),
    "B": Datapath("B", (1, 2, 4, 8, 16, 32, 0), (6,)),
    "C": Datapath("C", (1, 2, 4, 8, 0, 16, 32)),
    "D": Datapath("D", (1, 2, 4, 8, 16, 32, 64)),
    "E": Datapath("E", (1, 2, 4, 8, 16, 32, 0), (6,)),
    "F": Datapath("F", (1, 2, 4, 8, 0, 16, 32)),
    "G": Datapath("G", (1, 2, 4, 8, 16, 0, 0), (5, 6)),
}
# (M, CTA group, sparse A, weight-stationary); a pair never is weight-stationary
_CHOICE = {
    (32, 1, False, True): "G",
    (32, 1, True, True): "G",
    (64, 1, False, True): "E",
    (64, 1, True, True): "E",
    (64, 1, False, False): "F",
    (64, 1, True, False): "F",
    **{(128, 1, sparse, ws): "D" for sparse in (False, True) for ws in (False, True)},
    (128, 2, False, False): "B",
    (128, 2, True, False): "C",
    (256, 2, False, False): "A",
    (256, 2, True, False): "A",
}


def datapath(m: int, cta_group: int, weight_stationary: bool, sparse: bool = False) -> Datapath:
    """The data path of a tcgen05.mma; LayoutError for an M that none has."""
    name = _CHOICE.get((m, cta_group, sparse, weight_stationary))
    if name is None:
        kind = " weight-stationary" if weight_stationary else ""
        raise LayoutError(f"no tensor-memory layout for{kind} M {m} with cta_group {cta_group}")
    return _DATAPATHS[name]


@cache
def accumulator_layout(
    m: int, n: int, cta_group: int, weight_stationary: bool, sparse: bool = False
) -> LinearLayout | None:
    """The accumulator of tcgen05.mma; 32-bit elements, one per column.

    With cta_group 2 the pair is the space `block`, its first CTA holding the lower half of M.
    None for an N that is no power of two. LayoutError for an M that no data path has.
    """
    path = datapath(m, cta_group, weight_stationary, sparse)
    if n & (n - 1):
        return None
    width = n >> len(path.banks)
    row = [(v, 0) for v in path.rows]
    for index, bit in enumerate(path.banks):
        row[bit] = (0, width << index)
    block = [(path.count, 0)] if cta_group == 2 else []
    return LinearLayout({"row": row, "column": _bits(width, 1), "block": block}, (m, n))


@cache
def operand_layout(
    m: int,
    k: int,
    bits: int,
    cta_group: int = 1,
    weight_stationary: bool = False,
    sparse: bool = False,
) -> LinearLayout:
    """A (M x stored K) in tensor memory: rows as in D, elements packed along K into columns.

    Space `element` counts the elements within a column, lowest bits first.
    """
    path = datapath(m, cta_group, weight_stationary, sparse)
    word = 32 // bits
    bases = {
        "row": [(v, 0) for v in path.rows],
        "column": _bits(k, 1, word),
        "element": _bits(word, 1),
        "block": [(path.count, 0)] if cta_group == 2 else [],
    }
    return LinearLayout(bases, (m, k))


@cache
def metadata_layout(
    m: int, kept: int, bits: int, cta_group: int, weight_stationary: bool
) -> LinearLayout:
    """Sparsity metadata: which kept element of A each field describes (pairs for 4-bit types).

    `kept` is the number of fields along a row, `bits` the size of A's elements. Fields are of 2
    bits (4 for 32-bit elements), and the space `element` counts them within a column. Narrow
    types fill two columns in the row's own place. For wide ones rows r and r + 8 share a column,
    half of it each, memory row bit 3 choosing the half of K; the column is that of the sparsity
    selector.

    PTX ISA, "Sparsity selector" of tcgen05; the places are those of CUTLASS (`tmem_e_frg`).
    """
    path = datapath(m, cta_group, weight_stationary, True)
    row = [(v, 0) for v in path.rows]
    column: list[tuple[int, int]] = []
    if bits >= 16:
        element = [*_bits(kept // 2, 1), row[3]]
        row[3] = (0, kept // 2)
    else:
        element, column = _bits(16, 1), _bits(kept, 1, 16)
    block = [(path.count, 0)] if cta_group == 2 else []
    bases = {"row": row, "column": column, "element": element, "block": block}
    return LinearLayout(bases, (m, kept))


@cache
def scale_layout(extent: int, blocks: int, halves: int = 1) -> LinearLayout:
    """Block scales: row r of A (or column of B) at row r % 32 of every warp's 32 rows, in column
    r / 32; the bytes of a column are the factors along K.

    With 2 `halves` (B of a pair with M 128, whose D has two banks), the upper rows hold the
    upper half of the columns.
    """
    part = extent // halves
    row = [(v, 0) if v < part else (0, 0) for v in (1, 2, 4, 8, 16)]
    row += [(0, 0), (part, 0) if halves == 2 else (0, 0)]
    column = _bits(part, 0, 32)
    element = [*_bits(blocks, 1), *[(0, 0)] * (2 - log2(blocks))]
    return LinearLayout({"row": row, "column": column, "element": element}, (extent, blocks))


_LOADS: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]], int]] = {
    # shape: (lane bases, register bases of x1, columns of x1), coordinates (row, column)
    "32x32b": ([(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], [], 1),
    "16x64b": ([(8, 0), (0, 1), (1, 0), (2, 0), (4, 0)], [], 2),
    "16x128b": ([(0, 1), (0, 2), (1, 0), (2, 0), (4, 0)], [(8, 0)], 4),
    "16x256b": ([(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)], [(0, 1), (8, 0)], 8),
    "16x32bx2": ([(1, 0), (2, 0), (4, 0), (8, 0)], [], 1),
}


@cache
def load_fragment(shape: str, repeat: int) -> LinearLayout:
    """tcgen05.ld and .st: which (row, column) of the warp's piece each lane's register holds.

    For 16x32bx2, lanes 16..31 hold the second half, here placed right behind the first; the
    instruction's `immHalfSplitoff` moves it.
    """
    lanes, registers, columns = _LOADS[shape]
    rows = 32 if shape == "32x32b" else 16
    more = _bits(columns * repeat, 1, columns)
    lane, total = list(lanes), columns * repeat
    if shape == "16x32bx2":
        lane.append((0, repeat))
        total = 2 * repeat
    return LinearLayout({"register": [*registers, *more], "lane": lane}, (rows, total))


# tcgen05.cp: source rows that the 7 bits of a memory row choose; 0 where they repeat, None where
# the copy leaves the rows with that bit alone.
_WITHIN = (1, 2, 4, 8, 16)
_CP_ROWS: dict[str, tuple[int | None, ...]] = {
    "128x256b": (*_WITHIN, 32, 64),
    "128x128b": (*_WITHIN, 32, 64),
    "64x128b.warpx2::02_13": (*_WITHIN, 32, 0),
    "64x128b.warpx2::01_23": (*_WITHIN, 0, 32),
    "32x128b.warpx4": (*_WITHIN, 0, 0),
    "4x256b": (None, None, None, None, None, 1, 2),
}


@cache
def copy_layout(shape: str) -> LinearLayout:
    """tcgen05.cp: which (row, 32-bit column) of the source each place of tensor memory receives.

    The source is K-major in shared memory; packed sources count as they are after their expansion
    to bytes. Space `row` is the memory row, except for 4x256b: there it is the warp (the one row
    of its 32 that the address names receives a row of the source).
    """
    rows, bits = shape.split(".")[0].removesuffix("b").split("x")
    row = [(v, 0) for v in _CP_ROWS[shape] if v is not None]
    columns = int(bits) // 32
    return LinearLayout({"row": row, "column": _bits(columns, 1)}, (int(rows), columns))


def load_shapes() -> tuple[str, ...]:
    return tuple(_LOADS)


def load_repeats(shape: str) -> tuple[int, ...]:
    """Legal `.num`: at most 128 registers per thread."""
    per_repeat = {"16x128b": 2, "16x256b": 4}.get(shape, 1)
    return tuple(n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n * per_repeat <= 128)

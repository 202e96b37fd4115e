"""How matrices lie in tensor memory: 128 rows ("lanes" of the memory) of 512 32-bit columns.

Spaces are `row` (7 bits: 5 of them within the 32 rows that one warp of four may access, 2 name
the warp) and `column`. PTX ISA, "tcgen05 data path layout organization" and "block scaling".
"""

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


@cache
def accumulator_layout(
    m: int, n: int, cta_group: int, weight_stationary: bool
) -> LinearLayout | None:
    """The accumulator of tcgen05.mma; 32-bit elements, one per column.

    With cta_group 2 the pair is the space `block`, its first CTA holding the lower half of M.
    None for an N that is no power of two. LayoutError for an M that no data path has.
    """
    if n & (n - 1):
        return None
    rows = m // cta_group
    block = [(rows, 0)] if cta_group == 2 else []
    if rows == 128:
        row, column = _bits(128, 0), _bits(n, 1)
    elif rows == 64 and cta_group == 1 and not weight_stationary:
        # 16 rows of each warp's 32; row bit 4 of the memory is not used
        row, column = [*_bits(16, 0), (0, 0), (16, 0), (32, 0)], _bits(n, 1)
    elif rows == 64:
        row, column = [*_bits(64, 0), (0, n // 2)], _bits(n // 2, 1)
    elif rows == 32:
        row, column = [*_bits(32, 0), (0, n // 4), (0, n // 2)], _bits(n // 4, 1)
    else:
        raise LayoutError(f"no tensor-memory layout for M {m} with cta_group {cta_group}")
    return LinearLayout({"row": row, "column": column, "block": block}, (m, n))


@cache
def operand_layout(m: int, k: int, bits: int) -> LinearLayout:
    """A in tensor memory: row m at row m, elements packed along K into 32-bit columns.

    Space `element` counts the elements within a column, lowest bits first.
    """
    if m not in (64, 128):
        raise LayoutError(f"A in tensor memory has M 64 or 128, not {m}")
    word = 32 // bits
    row = _bits(128, 0) if m == 128 else [*_bits(16, 0), (0, 0), (16, 0), (32, 0)]
    return LinearLayout(
        {"row": row, "column": _bits(k, 1, word), "element": _bits(word, 1)}, (m, k)
    )


@cache
def scale_layout(extent: int, blocks: int) -> LinearLayout:
    """Block scales: row r of A (or column of B) at row r % 32 of every warp's 32 rows, in column
    r / 32; the bytes of a column are the factors along K.
    """
    row = [*_bits(32, 0), (0, 0), (0, 0)]
    column = _bits(max(32, extent), 0, 32)
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


# tcgen05.cp: source rows that tensor-memory row bits 5 and 6 (the warp) choose, where they repeat.
_CP_WARPS = {
    "128x256b": (32, 64),
    "128x128b": (32, 64),
    "64x128b.warpx2::02_13": (32, 0),
    "64x128b.warpx2::01_23": (0, 32),
    "32x128b.warpx4": (0, 0),
}


@cache
def copy_layout(shape: str) -> LinearLayout | None:
    """tcgen05.cp: which (row, 32-bit column) of the source each place of tensor memory receives.

    The source is K-major in shared memory. None for 4x256b, whose rows in tensor memory the PTX
    ISA does not spell out.
    """
    warps = _CP_WARPS.get(shape)
    if warps is None:
        return None
    rows, bits = shape.split(".")[0].removesuffix("b").split("x")
    row = [*_bits(32, 0), *((v, 0) for v in warps)]
    columns = int(bits) // 32
    return LinearLayout({"row": row, "column": _bits(columns, 1)}, (int(rows), columns))


def load_shapes() -> tuple[str, ...]:
    return tuple(_LOADS)


def load_repeats(shape: str) -> tuple[int, ...]:
    """Legal `.num`: at most 128 registers per thread."""
    per_repeat = {"16x128b": 2, "16x256b": 4}.get(shape, 1)
    return tuple(n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n * per_repeat <= 128)

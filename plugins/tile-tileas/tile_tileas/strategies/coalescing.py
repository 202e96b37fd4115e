"""How many sectors of memory an access of a tile touches, by its layout."""

from __future__ import annotations

from collections.abc import Sequence

from tile_cute import gf2
from tile_cute.linear import (
    LayoutError,
    LinearLayout,
    SharedRoundTrip,
    blocked,
    plan_conversion,
)

SECTOR_BITS = 256  # what global memory moves at least, 32 bytes
LINE_BITS = 1024  # what is looked for at a time in L1
#: An access gets a layout of its own, and a conversion, if another one makes it touch so many
#: times the sectors.
WASTEFUL = 2
#: Lanes next to each other along the axis on which vectors lie, and along the other one: `ldmatrix`
#: with `.trans` gives four lanes neighbouring rows of a matrix, eight its columns.
_ROWS, _COLUMNS = 4, 8
_VECTOR_BITS = 128


def touched_sectors(layout: LinearLayout, fast: int, vector: int, bits: int) -> int:
    """Sectors that a warp's instructions touch, summed; elements of `bits` bits lie next to each
    other along axis `fast`, and up to `vector` of them move at a time.
    """
    return instructions(layout, fast, vector) * _pieces(layout, fast, SECTOR_BITS // bits)


def instructions(layout: LinearLayout, fast: int, vector: int) -> int:
    """Accesses of a thread that move up to `vector` elements along axis `fast` each."""
    width = accessed(layout, fast, vector)
    copies = layout.free_mask("register").bit_count()
    return max(1, (layout.elements_per_thread >> copies) // width)


def accessed(layout: LinearLayout, fast: int, vector: int) -> int:
    """Elements of an access of a thread that may move up to `vector` along axis `fast`."""
    return min(vector, layout.registers_contiguous_along(fast))


def lines(layout: LinearLayout, fast: int, bits: int) -> int:
    """Lines of memory in which the lanes of a warp begin, in one access of elements of `bits`."""
    return _pieces(layout, fast, LINE_BITS // bits)


def _pieces(layout: LinearLayout, fast: int, inside: int) -> int:
    """Pieces of memory, of `inside` elements along axis `fast`, in which lanes of a warp begin."""
    lanes = []
    for basis in layout.bases["lane"]:
        place = [c // max(1, inside) if axis == fast else c for axis, c in enumerate(basis)]
        lanes.append(sum(c << 32 * axis for axis, c in enumerate(place)))
    return 1 << gf2.rank(lanes)


def turned_by_matrices(
    held: LinearLayout, wanted: LinearLayout, order: Sequence[int], bits: int
) -> LinearLayout | None:
    """A layout for stores of 16 bytes along order[0] that touch no more sectors than `wanted`, and
    whose elements, `held` along another axis, matrix loads bring at no more than the cost of
    `wanted`; None if there is none.
    """
    fast, vector = order[0], _VECTOR_BITS // bits
    across = next((d for d in order[1:] if held.registers_contiguous_along(d) >= _COLUMNS), None)
    if across is None or wanted.registers_contiguous_along(fast) < vector:
        return None
    if wanted.shape[fast] < vector * _ROWS:
        return None
    box, lanes, warps = ([1] * len(wanted.shape) for _ in range(3))
    box[fast], lanes[fast], lanes[across] = vector, _ROWS, _COLUMNS
    warps[across] = wanted.in_size("warp")
    found = blocked(wanted.shape, box, lanes, warps, order)
    sectors = [touched_sectors(each, fast, vector, bits) for each in (found, wanted)]
    if sectors[0] > sectors[1] or not found.is_injective:
        return None
    try:
        first, second = (plan_conversion(held, each, bits) for each in (found, wanted))
    except LayoutError:
        return None
    by_matrices = isinstance(first, SharedRoundTrip) and first.matrices is not None
    return found if by_matrices and first.cost <= second.cost else None

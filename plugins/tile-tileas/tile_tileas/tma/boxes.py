"""How a buffer in shared memory is filled, or emptied, by boxes of a tensor map. No MLIR here.

A copy writes a box densely, innermost axis first, pieces of 16 or 32 bytes moved by the swizzle of
the map, which works on addresses (PTX ISA, "Swizzling Modes"). A buffer of several such boxes, one
behind the other, takes several copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tile_cute import gf2
from tile_cute.atoms.descriptors import SPANS
from tile_cute.linear import LinearLayout
from tile_cute.swizzle import BYTE_SWIZZLES
from tile_cute.tensor_map import MAX_BOX

#: Swizzle modes, those of long rows first.
_MODES = tuple(sorted(SPANS, key=lambda mode: -SPANS[mode]))
#: Rows after which a pattern repeats.
_ROWS = 8
#: Where a box starts in shared memory, in bytes.
_ALIGNMENT = 128
#: Copies of one tile; more are better made by all threads.
MOST_BOXES = 16


@dataclass(frozen=True)
class Boxes:
    """Copies of a tile of shape (d0, d1, ..).

    Attributes:
        order: the axes of the tile that the box reaches along, innermost first.
        extents: the box along each axis of the tile, in elements.
        swizzle: a mode of tensor maps.
        origins: the first element of each copy, in order of memory.
    """

    order: tuple[int, ...]
    extents: tuple[int, ...]
    swizzle: str
    origins: tuple[tuple[int, ...], ...]

    @property
    def alignment(self) -> int:
        """Bytes to which the buffer must be aligned, so that patterns start with it."""
        return max(_ALIGNMENT, _ROWS * _span(self.swizzle))

    def divided(self, parts: int, bits: int) -> Boxes | None:
        """The same tile in at least `parts` copies, a power of two; None if they cannot be made.

        Boxes are halved along their outermost axis, as long as patterns start with each half.
        """
        found = self
        while len(found.origins) < parts:
            if len(found.order) < 2:
                return None
            axis, extents = found.order[-1], list(found.extents)
            extents[axis] //= 2
            if not extents[axis] or prod(extents) * bits // 8 % self.alignment:
                return None
            origins = [
                tuple(start + half * (at == axis) for at, start in enumerate(origin))
                for origin in found.origins
                for half in (0, extents[axis])
            ]
            order = found.order if extents[axis] > 1 else found.order[:-1]
            found = Boxes(order, tuple(extents), found.swizzle, tuple(origins))
        return found


def _span(mode: str) -> int:
    """Bytes of a row of the box; 0 for rows of any length."""
    return 0 if BYTE_SWIZZLES[mode].is_identity else SPANS[mode]


@lru_cache(maxsize=512)
def boxes_of(layout: LinearLayout, bits: int, inner: int) -> Boxes | str:
    """The boxes that fill a buffer laid out as `layout` (offset -> tile), or why there are none.

    `bits` are those of an element, `inner` the axis of the tile that is contiguous in memory.
    """
    if not (layout.is_injective and layout.is_surjective) or layout.spaces != ("offset",):
        return "the buffer does not hold each element once"
    found = [_boxes(layout, bits, inner, mode) for mode in _MODES]
    fitting = [one for one in found if one is not None and len(one.origins) <= MOST_BOXES]
    if not fitting:
        return "the buffer's layout is no sequence of boxes"
    return min(fitting, key=lambda one: len(one.origins))


def _boxes(layout: LinearLayout, bits: int, inner: int, mode: str) -> Boxes | None:
    """The largest boxes with one swizzle."""
    span = _span(mode)
    plain = _plain_bits(layout, bits, mode)
    if plain is None or not plain or plain[0] != (inner, 1):
        return None
    size, row = bits // 8, max(1, span * 8 // bits) if span else MAX_BOX
    extents, order, low = _lowest(layout, plain, inner, row)
    if span and extents[inner] != row:
        return None
    if extents[inner] * size % 16:
        return None
    rest = plain[low:]
    box_bytes = prod(extents) * size
    if rest and box_bytes % (max(_ALIGNMENT, _ROWS * span)):
        return None
    return Boxes(tuple(order), tuple(extents), mode, tuple(_origins(layout.rank, rest)))


def _lowest(
    layout: LinearLayout, plain: list[tuple[int, int]], inner: int, row: int
) -> tuple[list[int], list[int], int]:
    """Extents of the box that the lowest bits of the offset make, its axes, and those bits."""
    extents, order = [1] * layout.rank, []
    for low, (axis, value) in enumerate(plain):
        if axis not in order and value == 1:
            order.append(axis)
        limit = row if axis == inner else MAX_BOX
        if order[-1:] != [axis] or extents[axis] != value or 2 * value > limit:
            return extents, [one for one in order if extents[one] > 1], low
        extents[axis] *= 2
    return extents, order, len(plain)


def _plain_bits(layout: LinearLayout, bits: int, mode: str) -> list[tuple[int, int]] | None:
    """(axis, step) of each bit of the offset, the swizzle undone; None if a bit moves along more
    than one axis.
    """
    flat, count = layout.flat("offset"), len(layout.bases["offset"])
    swizzle = BYTE_SWIZZLES[mode]
    if not swizzle.is_identity:
        pattern = swizzle.recast(8, 1).recast(1, bits)
        mask = (1 << count) - 1
        flat = [gf2.combine(flat, pattern(1 << bit) & mask) for bit in range(count)]
    vectors = LinearLayout.from_flat({"offset": flat}, layout.shape).bases["offset"]
    found: list[tuple[int, int]] = []
    for vector in vectors:
        moved = [(axis, step) for axis, step in enumerate(vector) if step]
        if len(moved) != 1 or moved[0][1] & (moved[0][1] - 1):
            return None
        found.append(moved[0])
    return found


def _origins(rank: int, rest: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    found: list[list[int]] = [[0] * rank]
    for axis, step in rest:
        moved = [list(origin) for origin in found]
        for origin in moved:
            origin[axis] += step
        found += moved
    return [tuple(origin) for origin in found]

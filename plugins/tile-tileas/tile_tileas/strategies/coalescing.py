"""How many sectors of memory an access of a tile touches, by its layout."""

from __future__ import annotations

from tile_cute import gf2
from tile_cute.linear import LinearLayout

SECTOR_BITS = 256  # what global memory moves at least, 32 bytes
#: An access gets a layout of its own, and a conversion, if another one makes it touch so many
#: times the sectors.
WASTEFUL = 2


def touched_sectors(layout: LinearLayout, fast: int, vector: int, bits: int) -> int:
    """Sectors that a warp's instructions touch, summed; elements of `bits` bits lie next to each
    other along axis `fast`, and up to `vector` of them move at a time.
    """
    width = min(vector, layout.registers_contiguous_along(fast))
    inside = max(1, SECTOR_BITS // bits)
    lanes = []
    for basis in layout.bases["lane"]:
        place = [c // inside if axis == fast else c for axis, c in enumerate(basis)]
        lanes.append(sum(c << 32 * axis for axis, c in enumerate(place)))
    copies = layout.free_mask("register").bit_count()
    return max(1, (layout.elements_per_thread >> copies) // width) << gf2.rank(lanes)

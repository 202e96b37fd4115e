"""Where elements live while prefixes are taken along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_cute.linear import LinearLayout

LANE_BITS = 5
#: A thread keeps at least 2**KEPT_BITS elements: with fewer, meeting other warps costs more than
#: it saves.
KEPT_BITS = 2


def scan_layout(shape: Sequence[int], axis: int, num_warps: int) -> LinearLayout:
    """Neighbours along `axis` in the low registers of a thread, then in the low lanes of a warp.

    The other axes are spread over warps, the lanes that are left, and high registers. Warps that
    they leave without work take segments of `axis`, if threads keep enough of it; otherwise warps
    and lanes for which there is no room hold copies.
    """
    zero = (0,) * len(shape)
    along = [_unit(shape, axis, bit) for bit in range(shape[axis].bit_length() - 1)]
    others = [
        _unit(shape, dim, bit)
        for dim in reversed(range(len(shape)))
        if dim != axis
        for bit in range(shape[dim].bit_length() - 1)
    ]
    warp_bits = num_warps.bit_length() - 1
    in_warps = others[max(0, len(others) - warp_bits) :]
    others = others[: len(others) - len(in_warps)]
    lanes_along = min(len(along), max(0, LANE_BITS - len(others)))
    room = max(0, len(along) - lanes_along - KEPT_BITS)
    segments = min(warp_bits - len(in_warps), room) if len(others) <= LANE_BITS else 0
    along, in_segments = along[: len(along) - segments], along[len(along) - segments :]
    in_warps = [*in_segments, *in_warps]
    low, high = along[: len(along) - lanes_along], along[len(along) - lanes_along :]
    in_lanes = [*high, *others[: LANE_BITS - lanes_along]]
    return LinearLayout(
        {
            "register": [*low, *others[LANE_BITS - lanes_along :]],
            "lane": in_lanes + [zero] * (LANE_BITS - len(in_lanes)),
            "warp": in_warps + [zero] * (warp_bits - len(in_warps)),
        },
        tuple(shape),
    )


@dataclass(frozen=True)
class ScanExtents:
    """How many registers of a thread, lanes and warps lie along the axis in a scan layout.

    Each is the lowest part of its index.
    """

    registers: int
    lanes: int
    warps: int


def scan_extents(layout: LinearLayout, axis: int) -> ScanExtents:
    """The extents of a layout that `scan_layout` made."""
    return ScanExtents(
        *(
            1 << sum(1 for basis in layout.bases[space] if basis[axis])
            for space in ("register", "lane", "warp")
        )
    )


def scan_bytes(layout: LinearLayout, axis: int, bits: int) -> int:
    """Shared memory for the totals of all warps' segments, of elements of `bits` bits each."""
    warps = scan_extents(layout, axis).warps
    rows = layout.size // layout.shape[axis]
    return rows * warps * bits // 8 if warps > 1 else 0


def _unit(shape: Sequence[int], axis: int, bit: int) -> tuple[int, ...]:
    return tuple(1 << bit if dim == axis else 0 for dim in range(len(shape)))

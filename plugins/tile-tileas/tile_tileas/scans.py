"""Where elements live while prefixes are taken along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from tile_cute.linear import LinearLayout

LANE_BITS = 5


def scan_layout(shape: Sequence[int], axis: int, num_warps: int) -> LinearLayout:
    """Neighbours along `axis` in the low registers of a thread, then in the low lanes of a warp.

    The other axes are spread over warps, the lanes that are left, and high registers; warps and
    lanes for which there is no room hold copies.
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


def scan_extents(layout: LinearLayout, axis: int) -> tuple[int, int]:
    """How many registers of a thread, and how many lanes, lie along the axis in a scan layout."""
    registers, lanes = (
        sum(1 for basis in layout.bases[space] if basis[axis]) for space in ("register", "lane")
    )
    return 1 << registers, 1 << lanes


def _unit(shape: Sequence[int], axis: int, bit: int) -> tuple[int, ...]:
    return tuple(1 << bit if dim == axis else 0 for dim in range(len(shape)))

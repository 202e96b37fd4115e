"""Layouts of tiles that are loaded and stored: vectors, lanes, warps, each beside the others."""

from __future__ import annotations

from collections.abc import Sequence

from tile_cute.linear import LinearLayout, blocked, replicated

LANES = 32


def spread(
    shape: Sequence[int],
    num_warps: int,
    order: Sequence[int],
    vector: int,
    warp_order: Sequence[int] | None = None,
    rows: tuple[int, int] | None = None,
    tall: tuple[int, int] | None = None,
) -> LinearLayout:
    """Vectors along order[0], then lanes along `order`, then warps along `warp_order`.

    Lanes and warps that a small tile has no room for hold copies. With `rows`, (axis, number), so
    many groups of lanes stand along that axis, and the lanes of each along `order`. With `tall`,
    (axis, number), a thread has so many vectors next to each other along that axis.
    """
    if not shape:
        return replicated((), LANES, num_warps)
    left = list(shape)
    boxes: list[list[int]] = []
    axis_of_rows, groups = rows or (order[0], 1)
    for count, axes, replicate in (
        (vector, order[:1], False),
        (LANES // groups, order, True),
        (num_warps, warp_order or order, True),
    ):
        box = [1] * len(shape)
        if len(boxes) == 1:
            box[axis_of_rows] = groups
            left[axis_of_rows] //= groups
        for axis in axes:
            take = min(count, left[axis])
            box[axis] *= take
            left[axis] //= take
            count //= take
        if tall is not None and not boxes:
            box[tall[0]] *= tall[1]
            left[tall[0]] //= tall[1]
        if replicate:
            box[axes[-1]] *= count  # no room left: these hold copies
        boxes.append(box)
    return blocked(shape, boxes[0], boxes[1], boxes[2], order)

"""Layouts from the numbers that passes and people write."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout, log2


def blocked(
    shape: Sequence[int],
    per_thread: Sequence[int],
    threads_per_warp: Sequence[int],
    warps: Sequence[int],
    order: Sequence[int],
) -> LinearLayout:
    """Boxes of registers, of lanes and of warps; order[0] is the dimension that varies fastest.

    A tile larger than the box of all warps repeats it in higher registers (fastest dimension
    first); a smaller one is replicated: lanes and warps that would leave it have zero bases,
    registers that would leave it do not exist.
    """
    rank = len(shape)
    for name, sizes in (
        ("per_thread", per_thread),
        ("threads_per_warp", threads_per_warp),
        ("warps", warps),
        ("order", order),
    ):
        if len(sizes) != rank:
            raise LayoutError(f"{name} {list(sizes)} and shape {list(shape)} differ in rank")
    if sorted(order) != list(range(rank)):
        raise LayoutError(f"order {list(order)} is no permutation of the {rank} dimensions")
    strides = [prod(shape[dim + 1 :]) for dim in range(rank)]
    reached = [1] * rank
    flat: dict[str, list[int]] = {"register": [], "lane": [], "warp": []}
    for space, sizes in (("register", per_thread), ("lane", threads_per_warp), ("warp", warps)):
        for dim in order:
            for _ in range(log2(sizes[dim])):
                if reached[dim] < shape[dim]:
                    flat[space].append(reached[dim] * strides[dim])
                    reached[dim] *= 2
                elif space != "register":
                    flat[space].append(0)
    for dim in order:
        while reached[dim] < shape[dim]:
            flat["register"].append(reached[dim] * strides[dim])
            reached[dim] *= 2
    return LinearLayout({}, shape) if not any(flat.values()) else _checked(flat, shape)


def _checked(flat: dict[str, list[int]], shape: Sequence[int]) -> LinearLayout:
    for size in shape:
        log2(size)
    return LinearLayout.from_flat(flat, shape)


def strided(shape: Sequence[int], order: Sequence[int], space: str = "offset") -> LinearLayout:
    """A compact memory layout: order[0] is the dimension that lies contiguously."""
    if sorted(order) != list(range(len(shape))):
        raise LayoutError(f"order {list(order)} is no permutation of the {len(shape)} dimensions")
    bases: list[tuple[int, ...]] = []
    for dim in order:
        for bit in range(log2(shape[dim])):
            bases.append(tuple(1 << bit if d == dim else 0 for d in range(len(shape))))
    return LinearLayout({space: bases}, shape)


def replicated(shape: Sequence[int], lanes: int = 32, warps: int = 1) -> LinearLayout:
    """Every thread holds the whole tile, in row-major order."""
    registers = [1 << bit for bit in range(log2(prod(shape)))]
    flat = {"register": registers, "lane": [0] * log2(lanes), "warp": [0] * log2(warps)}
    return _checked(flat, shape)


def default_blocked(
    shape: Sequence[int], warps: int, order: Sequence[int], per_thread: int = 1
) -> LinearLayout:
    """Spread a tile over 32 * warps threads: vectors of `per_thread` along order[0], then lanes,
    then warps, each filling the dimensions in `order`.
    """
    sizes = {name: [1] * len(shape) for name in ("per_thread", "lanes", "warps")}
    left = list(shape)
    for name, count in (("per_thread", per_thread), ("lanes", 32), ("warps", warps)):
        for dim in order[:1] if name == "per_thread" else order:
            take = min(count, left[dim])
            sizes[name][dim] = take
            left[dim] //= take
            count //= take
        if name != "per_thread" and shape:
            sizes[name][order[-1]] *= count
    if not shape:
        return LinearLayout({"lane": [()] * 5, "warp": [()] * log2(warps)}, ())
    return blocked(shape, sizes["per_thread"], sizes["lanes"], sizes["warps"], order)


def is_nested(layouts: Sequence[LinearLayout]) -> bool:
    """Whether each layout, in turn, begins with the one before it."""
    from tile_cute.linear.algebra import divide

    return all(divide(b, a) is not None for a, b in pairwise(layouts))

"""How wide a thread can read or write memory, given where its registers lie."""

from collections.abc import Sequence

from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout, is_power_of_two


def vector_width(
    layout: LinearLayout,
    order: Sequence[int],
    elem_bits: int,
    max_bits: int = 128,
    divisibility: int | None = None,
) -> int:
    """Elements of one vector access: registers v*i .. v*i+v-1 hold neighbours along order[0].

    `order[0]` is the dimension that is contiguous in memory; `divisibility` the largest power of
    two that is known to divide the address of every row's start, in elements (None: no limit).
    The result is a power of two of at most `max_bits` bits, and at least 1.
    """
    if elem_bits <= 0 or max_bits < 1:
        raise LayoutError(f"cannot access elements of {elem_bits} bits, {max_bits} at a time")
    if not order:
        return 1
    width = layout.registers_contiguous_along(order[0])
    if divisibility is not None:
        if divisibility < 0:
            raise LayoutError(f"divisibility {divisibility} is negative")
        # 0 is divisible by everything
        width = min(width, divisibility & -divisibility) if divisibility else width
    while width > 1 and width * elem_bits > max_bits:
        width //= 2
    assert is_power_of_two(width)
    return width


def threads_contiguous_along(layout: LinearLayout, dim: int) -> int:
    """Lanes that stand next to each other along `dim`, each with its run of registers: how long
    the contiguous piece is that a warp touches, in units of one thread's run.
    """
    run = layout.registers_contiguous_along(dim)
    stride = layout.flatten([int(d == dim) for d in range(layout.rank)])
    count = 1
    for vector in layout.flat("lane"):
        if run * count >= layout.shape[dim] or vector != stride * run * count:
            break
        count *= 2
    return count

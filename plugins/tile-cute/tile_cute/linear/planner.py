"""Choosing how to convert a distributed tile from one layout to another."""

from tile_cute import gf2
from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout
from tile_cute.linear.plans import Plan, RegisterPermute
from tile_cute.linear.shared import plan_shared
from tile_cute.linear.shuffle import plan_shuffle

_SPACES = ("register", "lane", "warp", "block")


def plan_conversion(
    src: LinearLayout,
    dst: LinearLayout,
    elem_bits: int,
    *,
    max_smem: int | None = None,
    guarded: bool = False,
) -> Plan:
    """The cheapest plan that turns the registers of `src` into those of `dst`.

    Both layouts map register, lane, warp and block bits to the same tile; elements may be
    replicated on either side. `elem_bits` is the size of an element (1 to 64; below 8 it is
    stored as a byte); `max_smem` the bytes of shared memory that may be used (None: no limit;
    0: none at all). With `guarded`, a plan in passes may let different warps take part in
    different passes (`SharedSide.warp_pass`), which fits into less memory.

    LayoutError for other spaces, different tiles, thread counts or CTA distributions, elements
    that `src` lacks, and where shared memory is needed but too small.
    """
    _check(src, dst, elem_bits)
    permutation = plan_registers(src, dst)
    if permutation is not None:
        return permutation
    storage = max(8, 1 << (elem_bits - 1).bit_length())
    shuffle = plan_shuffle(src, dst, storage)
    if shuffle is not None and max_smem == 0:
        return shuffle
    try:
        scope = "warp" if shuffle is not None and not _shared_by_warps(src, dst) else "cta"
        trip = plan_shared(src, dst, storage, max_smem, scope, guarded)
    except LayoutError:
        if shuffle is not None:
            return shuffle
        raise
    return shuffle if shuffle is not None and shuffle.cost <= trip.cost else trip


def _shared_by_warps(src: LinearLayout, dst: LinearLayout) -> bool:
    return bool(src.free_mask("warp") or dst.free_mask("warp"))


def _check(src: LinearLayout, dst: LinearLayout, elem_bits: int) -> None:
    if not 1 <= elem_bits <= 64:
        raise LayoutError(f"cannot convert elements of {elem_bits} bits; 1 to 64 are supported")
    if src.shape != dst.shape:
        raise LayoutError(f"the layouts describe different tiles: {src} and {dst}")
    for layout in (src, dst):
        foreign = [space for space in layout.spaces if space not in _SPACES]
        if foreign:
            raise LayoutError(f"space '{foreign[0]}' of {layout} is not distributed over threads")
    for space in ("lane", "warp"):
        if src.in_bits(space) != dst.in_bits(space):
            raise LayoutError(
                f"{src} has {src.in_size(space)} {space}s, {dst} has {dst.in_size(space)}"
            )
    if src.flat("block") != dst.flat("block"):
        raise LayoutError(
            f"the tile is distributed over CTAs differently in {src} and {dst}; "
            "that needs distributed shared memory"
        )
    span = gf2.Span(src.all_flat())
    if not all(span.contains(vector) for vector in dst.all_flat()):
        raise LayoutError(f"{src} lacks elements that {dst} needs")


def plan_registers(src: LinearLayout, dst: LinearLayout) -> RegisterPermute | None:
    """The permutation, if every thread already holds what it needs in the same place."""
    if src.flat("lane") != dst.flat("lane") or src.flat("warp") != dst.flat("warp"):
        return None
    span = gf2.Span(src.flat("register"))
    picks = [span.solve(vector) for vector in dst.flat("register")]
    if None in picks:
        return None
    return RegisterPermute(tuple(gf2.table([pick or 0 for pick in picks])))

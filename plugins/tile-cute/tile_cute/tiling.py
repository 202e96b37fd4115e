"""Divides and products: how layouts are cut into tiles and repeated."""

from collections.abc import Sequence
from dataclasses import dataclass

from tile_cute import int_tuple as it
from tile_cute.errors import LayoutError
from tile_cute.int_tuple import IntTuple
from tile_cute.layout import Layout, concat, ordered_layout
from tile_cute.layout_algebra import (
    Tile,
    coalesce,
    complement,
    composition,
    dice_layout,
    filtered,
    slice_layout,
    tile_text,
)

Tiler = Layout | int | Tile


def logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    """(tile, rest): by mode for a tile, over the whole domain for a layout or an extent.

    An extent known at run time only is divided with the last tile reaching beyond it.
    """
    if isinstance(tiler, tuple):
        if len(tiler) > len(layout):
            raise LayoutError(
                f"expects rank(tiler) <= rank(input), but got input={layout}, "
                f"tiler={tile_text(tiler)}"
            )
        parts = [
            mode if tile is None else logical_divide(mode, tile)
            for mode, tile in zip(layout, tiler, strict=False)
        ]
        return concat([*parts, *list(layout)[len(tiler) :]])
    tiler = Layout(tiler) if isinstance(tiler, int) else tiler
    whole, part = layout.extent, filtered(tiler).size
    if isinstance(whole, int) and whole % part:
        raise LayoutError(
            f"failed to perform a valid division of {layout} by {tiler}: "
            f"{part} does not divide {whole}"
        )
    return composition(layout, concat([tiler, complement(tiler, whole)]))


def zipped_divide(layout: Layout, tiler: Tiler) -> Layout:
    """((tiles), (rests, untouched modes))."""
    divided = logical_divide(layout, tiler)
    if not isinstance(tiler, tuple):
        return divided
    tiles, rests = [], []
    for place, mode in enumerate(divided):
        if place < len(tiler) and tiler[place] is not None:
            tiles.append(mode[0])
            rests.append(mode[1])
        else:
            rests.append(mode)
    return concat([concat(tiles), concat(rests)])


def tiled_divide(layout: Layout, tiler: Tiler) -> Layout:
    """((tiles), rest0, rest1, ...)."""
    tiles, rests = zipped_divide(layout, tiler)
    return concat([tiles, *rests])


def flat_divide(layout: Layout, tiler: Tiler) -> Layout:
    """(tile0, tile1, ..., rest0, rest1, ...)."""
    tiles, rests = zipped_divide(layout, tiler)
    return concat([*tiles, *rests])


def outer_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Divide from the last mode on: reverse, divide, reverse."""
    reverse = tiler[::-1] if isinstance(tiler, tuple) else tiler
    flipped = concat(list(layout)[::-1])
    return concat(list(logical_divide(flipped, reverse))[::-1])


def logical_product(block: Layout, tiler: Layout | int) -> Layout:
    """(block, repetition): the block repeated as often and in the order that `tiler` says."""
    tiler = Layout(tiler) if isinstance(tiler, int) else tiler
    rest = complement(block, block.size * tiler.cosize)
    return concat([block, composition(rest, tiler)])


def zipped_product(block: Layout, tiler: Layout | int) -> Layout:
    """((block modes), (repetition modes)): as `logical_product` for a layout tiler."""
    return logical_product(block, tiler)


def tiled_product(block: Layout, tiler: Layout | int) -> Layout:
    """(block, repetition0, repetition1, ...)."""
    first, rest = logical_product(block, tiler)
    return concat([first, *rest])


def flat_product(block: Layout, tiler: Layout | int) -> Layout:
    """(block0, block1, ..., repetition0, ...)."""
    first, rest = logical_product(block, tiler)
    return concat([*first, *rest])


def _padded(layout: Layout, rank: int) -> list[Layout]:
    return [*layout, *[Layout(1, 0)] * (rank - len(layout))]


def _mixed_product(block: Layout, tiler: Layout, block_first: bool) -> Layout:
    rank = max(len(block), len(tiler))
    block, tiler = concat(_padded(block, rank)), concat(_padded(tiler, rank))
    inner, outer = logical_product(block, tiler)
    pairs = zip(inner, outer, strict=True)
    return concat([concat([b, t] if block_first else [t, b]) for b, t in pairs])


def blocked_product(block: Layout, tiler: Layout) -> Layout:
    """Mode i is (block_i, repetition_i): blocks stay together."""
    return _mixed_product(block, tiler, block_first=True)


def raked_product(block: Layout, tiler: Layout) -> Layout:
    """Mode i is (repetition_i, block_i): blocks are interleaved."""
    return _mixed_product(block, tiler, block_first=False)


def tile_to_shape(block: Layout, shape: IntTuple, order: IntTuple = None) -> Layout:
    """Repeat a block until it fills `shape`, modes in the given order (default: first fastest)."""
    target = it.modes(shape)
    blocks = _padded(block, len(target))
    if len(blocks) > len(target):
        raise LayoutError(f"cannot tile {it.text(shape)} with {block}: too many modes")
    if order is not None and it.rank(order) != len(target):
        raise LayoutError(
            f"expects target shape and order operands have same rank, but got {it.text(shape)} "
            f"and {it.text(order)}"
        )
    counts = []
    for mode, extent in zip(blocks, target, strict=True):
        whole = it.size(extent)
        if whole % mode.size:
            raise LayoutError(f"{block} does not divide shape {it.text(shape)}")
        counts.append(whole // mode.size)
    keys = it.modes(order) if order is not None else tuple(range(len(target)))
    repeat = ordered_layout(tuple(counts), keys)
    product = blocked_product(concat(blocks), repeat)
    return concat([coalesce(mode) for mode in product])


def local_tile(layout: Layout, tiler: Tiler, coord: IntTuple) -> tuple[Layout, IntTuple]:
    """The tile at a tile coordinate (`None` keeps a mode), and its offset."""
    divided = zipped_divide(layout, tiler)
    tiles, rests = divided
    if it.is_tuple(coord) and len(coord) != len(rests):
        raise LayoutError(
            f"expected a coordinate of rank {len(rests)} but got {it.text(coord)} for {layout}"
        )
    kept, offset = slice_layout(rests, coord if it.is_tuple(coord) else (coord,))
    modes = list(tiles) if isinstance(tiler, tuple) else [tiles]
    return concat([*modes, *(kept if kept.shape != () else [])]), offset


def partition(layout: Layout, tiler: Tiler, coord: IntTuple) -> tuple[Layout, IntTuple]:
    """What a layout has at one coordinate of each tile, a mode for each of the tile's, and its
    offset."""
    tiles, rests = zipped_divide(layout, tiler)
    if it.rank(coord) != len(tiles):
        raise LayoutError(
            f"expected a coordinate of rank {len(tiles)} but got {it.text(coord)} for {layout}"
        )
    return rests, tiles(coord)


def local_partition(layout: Layout, threads: Layout, index: int) -> tuple[Layout, IntTuple]:
    """What thread `index` of a thread layout owns of the tensor, and its offset."""
    tiler = tuple(mode.size for mode in threads)
    place = it.idx2crd(_thread_position(threads, index), tuple(mode.size for mode in threads))
    tiles, rests = zipped_divide(layout, tiler)
    return rests, tiles(place)


MOST_THREADS = 1 << 16


def _thread_position(threads: Layout, index: int) -> int:
    if threads.size > MOST_THREADS:
        raise LayoutError(f"thread layout {threads} has more than {MOST_THREADS} threads")
    for position, thread in enumerate(threads.indices()):
        if thread == index:
            return position
    raise LayoutError(f"thread {index} does not occur in the thread layout {threads}")


def stencil_divide(layout: Layout, window: int, dilation: int = 1, stride: int = 1) -> Layout:
    """(window, positions) of a one-dimensional sliding window; windows overlap.

    Their number is 1 + (extent - ((window-1)*dilation + 1)) // stride.
    """
    if min(window, dilation, stride) < 1:
        raise LayoutError("stencil_divide: window, dilation and stride must be positive")
    reach = (window - 1) * dilation + 1
    if layout.size < reach:
        raise LayoutError(f"stencil_divide: {layout} is smaller than the window of {reach}")
    count = 1 + (layout.size - reach) // stride
    return composition(layout, Layout((window, count), (dilation, stride)))


@dataclass(frozen=True)
class Stencil:
    """How a window goes over one mode: `window` elements `dilation` apart, a step of `stride` from
    one to the next. The first begins `lower` elements before the mode, the last ends `upper` at
    most behind it. All in elements of the mode.
    """

    window: int
    dilation: int = 1
    stride: int = 1
    lower: int = 0
    upper: int = 0


def stencil_divide_modes(layout: Layout, stencils: Sequence[Stencil]) -> Layout:
    """((window, ..), (positions, ..)) of a window over several modes.

    Index 0 is where the first window begins, which with a lower padding is before the layout's
    own: the pointer of a tensor has to be moved back by as much, and what is outside left out.

    Raises:
        LayoutError: a mode whose elements are no constant distance apart, or too few.
    """
    windows, positions = [], []
    for mode, one in zip(layout, stencils, strict=True):
        if min(one.window, one.dilation, one.stride) < 1 or min(one.lower, one.upper) < 0:
            raise LayoutError("stencil_divide: window, dilation and stride must be positive")
        reach, extent = (one.window - 1) * one.dilation + 1, mode.size + one.lower + one.upper
        if extent < reach:
            raise LayoutError(f"stencil_divide: {mode} is smaller than the window of {reach}")
        leaves = coalesce(mode).int_leaves()
        if len(leaves) != 1:
            raise LayoutError(f"stencil_divide: {mode} has no single stride for a window")
        step = leaves[0][1]
        windows.append(Layout(one.window, step * one.dilation))
        positions.append(Layout(1 + (extent - reach) // one.stride, step * one.stride))
    return concat([concat(windows), concat(positions)])


__all__ = [
    "Stencil",
    "Tiler",
    "blocked_product",
    "dice_layout",
    "flat_divide",
    "flat_product",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "outer_divide",
    "partition",
    "raked_product",
    "stencil_divide",
    "stencil_divide_modes",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "zipped_divide",
    "zipped_product",
]

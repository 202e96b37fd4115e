"""Exact conversion between CuTe layouts with swizzles and linear layouts.

A CuTe layout is linear over GF(2) exactly if its extents are powers of two and adding its
contributions never carries: then addition is XOR.
"""

from collections.abc import Sequence

from tile_cute.errors import LayoutError
from tile_cute.layout import Layout, concat, from_leaves
from tile_cute.linear.algebra import invert
from tile_cute.linear.layout import LinearLayout, is_power_of_two, log2
from tile_cute.swizzle import ComposedLayout, Swizzle


def _parts(layout: Layout | ComposedLayout) -> tuple[Swizzle, int, Layout]:
    if isinstance(layout, ComposedLayout):
        return layout.inner, layout.offset, layout.outer
    return Swizzle(0, 0, 0), 0, layout


def _contributions(mode: Layout, whole: Layout | ComposedLayout) -> list[int]:
    """What each bit of the mode's integer coordinate adds to the index."""
    bits = []
    for extent, stride in mode.int_leaves():
        if not is_power_of_two(extent):
            raise LayoutError(f"{whole} is not linear: extent {extent} is no power of two")
        bits += [stride << bit for bit in range(log2(extent))]
    return bits


def coords_to_offset(
    layout: Layout | ComposedLayout, names: Sequence[str] | None = None, bound: int | None = None
) -> LinearLayout:
    """The index as a linear function of the modes' integer coordinates.

    Spaces are the top-level modes (`dim0`, ... unless named), the single dimension is `offset`,
    of size `bound` (default: the cosize, rounded up). LayoutError, with the reason, for a layout
    that is not linear over bits.
    """
    swizzle, offset, plain = _parts(layout)
    if offset:
        raise LayoutError(f"{layout} is not linear: its offset is not 0")
    used = 0
    flat: dict[str, list[int]] = {}
    labels = names if names is not None else [f"dim{i}" for i in range(len(plain))]
    if len(labels) != len(plain):
        raise LayoutError(f"{layout} has {len(plain)} modes, {len(labels)} names are given")
    for name, mode in zip(labels, plain, strict=True):
        flat[name] = _contributions(mode, layout)
        for value in flat[name]:
            if value < 0 or used & value:
                raise LayoutError(
                    f"{layout} is not linear: the contribution {value} of mode '{name}' overlaps "
                    "another, so that sums carry"
                )
            used |= value
    flat = {name: list(map(swizzle, values)) for name, values in flat.items()}
    reached = max((v for values in flat.values() for v in values), default=0)
    size = 1 << reached.bit_length()
    if bound is not None:
        if bound < size:
            raise LayoutError(f"{layout} reaches offset {reached}, beyond the bound {bound}")
        size = bound
    return LinearLayout.from_flat(flat, (size,), ("offset",))


def memory_layout(layout: Layout | ComposedLayout) -> LinearLayout:
    """offset -> coordinates (`dim0`, ...) of a layout that fills memory without gaps."""
    forward = coords_to_offset(layout)
    _, _, plain = _parts(layout)
    if not forward.is_surjective or not forward.is_injective:
        raise LayoutError(f"{layout} does not hold exactly one element at each offset")
    return _with_shape(invert(forward), [mode.size for mode in plain])


def _with_shape(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """The same map onto dimensions that include those of size 1."""
    names = [f"dim{i}" for i in range(len(shape))]
    place = {name: i for i, name in enumerate(layout.outs)}
    bases = {
        space: [tuple(v[place[n]] if n in place else 0 for n in names) for v in vectors]
        for space, vectors in layout.bases.items()
    }
    return LinearLayout(bases, shape)


def fragment_layout(layout: Layout, shape: Sequence[int], lanes: int = 32) -> LinearLayout:
    """A (thread, value) layout into a tile, as register, lane and warp bits.

    The index counts the elements of `shape` colexicographically (first dimension fastest), as the
    thread-value layouts of MMA and copy atoms do.
    """
    if len(layout) != 2:
        raise LayoutError(f"{layout} is no (thread, value) layout: it has {len(layout)} modes")
    forward = coords_to_offset(layout, ("thread", "value"))
    cut = log2(lanes)
    groups = {
        "register": forward.flat("value"),
        "lane": forward.flat("thread")[:cut],
        "warp": forward.flat("thread")[cut:],
    }
    if any(v >= LinearLayout({}, shape).size for values in groups.values() for v in values):
        raise LayoutError(f"{layout} reaches outside the tile {list(shape)}")
    bases = {space: [_colex(value, shape) for value in values] for space, values in groups.items()}
    return LinearLayout(bases, shape)


def _colex(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    coords = []
    for size in shape:
        index, here = divmod(index, size)
        coords.append(here)
    return tuple(coords)


def to_fragment(layout: LinearLayout) -> Layout | None:
    """The (thread, value) layout of a distributed one; None if some basis has several bits
    or occurs twice.
    """
    strides = []
    for dim in range(layout.rank):
        strides.append(LinearLayout({}, layout.shape[:dim]).size)
    used = 0
    modes = []
    for spaces in (("lane", "warp"), ("register",)):
        leaves = []
        for space in spaces:
            for vector in layout.bases[space]:
                index = sum(v * s for v, s in zip(vector, strides, strict=True))
                if index and (index & used or not is_power_of_two(index)):
                    return None
                used |= index
                leaves.append((2, index))
        modes.append(_merged(leaves))
    return concat(modes)


def _merged(leaves: list[tuple[int, int]]) -> Layout:
    """Coalesced, with runs of zero strides kept as one leaf of their extent."""
    merged: list[tuple[int, int]] = []
    for extent, stride in leaves:
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return from_leaves(list(merged))


def to_cute(layout: LinearLayout) -> Layout | ComposedLayout | None:
    """shape:stride, with a swizzle where one is needed, of a map from dimensions to `offset`.

    The spaces become the modes, in order. Accepts the result of `coords_to_offset`; None if no
    layout with at most one swizzle is the same map.
    """
    if layout.rank != 1:
        raise LayoutError(f"{layout} has {layout.rank} dimensions; a memory offset is one")
    columns = layout.all_flat()
    swizzle = _find_swizzle([v for v in columns if v])
    if swizzle is None:
        return None
    modes = []
    for space in layout.spaces:
        leaves = [(2, swizzle(value)) for value in layout.flat(space)]
        modes.append(_merged(leaves))
    plain = modes[0] if len(modes) == len(modes[0]) == 1 else concat(modes)
    seen = [swizzle(v) for v in columns if v]
    if any(not is_power_of_two(v) for v in seen) or len(set(seen)) != len(seen):
        return None
    return plain if swizzle.is_identity else ComposedLayout(swizzle, 0, plain)


def _find_swizzle(columns: list[int]) -> Swizzle | None:
    """The smallest swizzle that turns every column into a power of two; None if none does."""
    mixed = [v for v in columns if not is_power_of_two(v)]
    if not mixed:
        return Swizzle(0, 0, 0)
    if any(v.bit_count() != 2 for v in mixed):
        return None
    highs = [v.bit_length() - 1 for v in mixed]
    lows = [(v & -v).bit_length() - 1 for v in mixed]
    shifts = {high - low for high, low in zip(highs, lows, strict=True)}
    if len(shifts) != 1:
        return None
    shift = shifts.pop()
    bits = max(lows) - min(lows) + 1
    for sign in (1, -1):
        if bits > shift:
            continue
        swizzle = Swizzle(bits, min(lows), sign * shift)
        if all(is_power_of_two(swizzle(v)) for v in columns):
            return swizzle
    return None


def is_linear(layout: Layout | ComposedLayout) -> bool:
    """Whether `coords_to_offset` applies."""
    try:
        coords_to_offset(layout)
    except LayoutError:
        return False
    return True


__all__ = [
    "coords_to_offset",
    "fragment_layout",
    "is_linear",
    "memory_layout",
    "to_cute",
    "to_fragment",
]

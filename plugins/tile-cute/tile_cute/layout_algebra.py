"""The algebra of CuTe layouts: simplification, composition, complement, inverses, recasts.

Composition is `R(c) = A(B(c))` with the profile of B. Divides and products, which are built of
these, are in `tiling`.

Numbers known at run time only go through `coalesce`, `filter_zeros`, `composition` (where each leaf
of the inner layout meets one mode of the outer, or its last), divides by mode, and what only moves
modes; the rest raises LayoutError, and says so.
"""

from collections.abc import Sequence

from tile_cute import int_tuple as it
from tile_cute.errors import LayoutError
from tile_cute.int_tuple import Basis, IntTuple
from tile_cute.layout import Layout, concat, from_leaves

# A tiler by mode: each entry a layout, an extent (n means n:1) or None (mode untouched)
Tile = tuple["Layout | int | Tile | None", ...]


def coalesce(layout: Layout, profile: IntTuple = 0) -> Layout:
    """The flattest layout that is the same function of an integer coordinate.

    With a tuple as profile, mode by mode down to the leaves of the profile.
    """
    if it.is_tuple(profile):
        if len(profile) > len(layout):
            raise LayoutError(f"cannot coalesce {layout} by profile {it.text(profile)}")
        done = [coalesce(mode, part) for mode, part in zip(layout, profile, strict=False)]
        return concat([*done, *list(layout)[len(profile) :]])
    merged: list[tuple[it.Extent, it.Leaf | it.Dynamic]] = []
    for extent, stride in layout.open_leaves():
        if extent == 1:
            continue
        if merged and _continues(*merged[-1], stride):
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return from_leaves(merged)


def _continues(extent: it.Extent, step: object, stride: object) -> bool:
    """Whether a mode goes on where the one before it ends, as far as is known."""
    known = not any(isinstance(v, it.Dynamic) for v in (extent, step, stride))
    return known and extent * step == stride  # type: ignore[operator]


def _is_zero(stride: it.Leaf) -> bool:
    return stride == 0 or (isinstance(stride, Basis) and stride.count == 0)


def filter_zeros(layout: Layout) -> Layout:
    """Extent 1 wherever the stride is 0; the tree stays."""
    shape = it.transform(lambda s, d: 1 if _is_zero(d) else s, layout.shape, layout.stride)
    return Layout(shape, layout.stride)


def filtered(layout: Layout) -> Layout:
    """`coalesce(filter_zeros(layout))`: what the image of the layout depends on."""
    return coalesce(filter_zeros(layout))


def equivalent(left: Layout, right: Layout) -> bool:
    """Equal after zero strides are filtered and modes coalesced; both have to be static."""
    if not (left.is_static and right.is_static):
        raise LayoutError(f"whether {left} and {right} are equivalent is known at run time only")
    return filtered(left) == filtered(right)


def composition(outer: Layout, inner: "Layout | int | Tile") -> Layout:
    """R(c) = outer(inner(c)); a tile composes mode by mode and leaves the rest alone.

    LayoutError where the extents or strides do not divide.
    """
    if inner is None:
        return outer
    if isinstance(inner, int):
        inner = Layout(inner)
    if isinstance(inner, tuple):
        if len(inner) > len(outer):
            raise LayoutError(f"tile {tile_text(inner)} has more modes than {outer}")
        parts = [composition(m, t) for m, t in zip(outer, inner, strict=False)]  # type: ignore[arg-type]
        return concat([*parts, *list(outer)[len(inner) :]])
    flat = coalesce(outer).open_leaves()
    result = _compose_tree(flat, inner, outer)
    if len(flat) > 1 and _carries(inner):
        _check_by_enumeration(result, outer, inner)
    return result


_ENUMERATED = 1 << 16


def _carries(inner: Layout) -> bool:
    """Whether the leaves' ranges overlap, so that their sum may carry from one into another."""
    reach = 0
    for stride, extent in sorted((d, s) for s, d in inner.int_leaves() if d and s > 1):
        if stride <= reach:
            return True
        reach += (extent - 1) * stride
    return False


def _check_by_enumeration(result: Layout, outer: Layout, inner: Layout) -> None:
    """Composing leaf by leaf is only right if `outer` is additive where the sums carry."""
    inside = [i for i in inner.indices() if i < outer.size] if inner.size <= _ENUMERATED else None
    if (
        inside is None
        or len(inside) != inner.size
        or any(result(i) != outer(index) for i, index in enumerate(inner.indices()))
    ):
        raise LayoutError(f"cannot compose {outer} with {inner}: its modes overlap")


_Leaves = list[tuple[it.Extent, it.Leaf | it.Dynamic]]


def _compose_tree(flat: _Leaves, inner: Layout, outer: Layout) -> Layout:
    if it.is_tuple(inner.shape):
        return concat([_compose_tree(flat, mode, outer) for mode in inner])
    if not isinstance(inner.stride, it.Extent):
        raise LayoutError(f"cannot compose {outer} with {inner}: its strides are no ints")
    return _compose_leaf(flat, inner.shape, inner.stride, f"{outer} with {inner}")


def _compose_leaf(flat: _Leaves, extent: it.Extent, step: it.Extent, what: str) -> Layout:
    if step == 0 or extent == 1:
        return Layout(extent, 0)
    result: _Leaves = []
    for place, (size, stride) in enumerate(flat):
        if extent == 1:
            break
        if place == len(flat) - 1:
            result.append((extent, step * stride))  # type: ignore[operator]
            break
        if not (isinstance(size, int) and isinstance(extent, int) and isinstance(step, int)):
            raise LayoutError(f"cannot compose {what}: where modes end is known at run time only")
        if step >= size:
            if step % size:
                raise LayoutError(f"cannot compose {what}: {size} does not divide stride {step}")
            step //= size
            continue
        if size % step:
            raise LayoutError(f"cannot compose {what}: stride {step} does not divide {size}")
        room = size // step
        taken = min(extent, room)
        if extent % taken or room % taken:
            raise LayoutError(f"cannot compose {what}: extent {extent} straddles {room}")
        result.append((taken, step * stride))
        extent //= taken
        step = 1
    return from_leaves(result)


def complement(layout: Layout, bound: it.Extent | None = None) -> Layout:
    """What the layout misses: strides that, with it, reach every index below `bound` once.

    `bound` defaults to the cosize. LayoutError if the layout is not injective on its image.
    """
    bound = layout.cosize if bound is None else bound
    current = 1
    result: _Leaves = []
    for stride, extent in sorted((d, s) for s, d in filtered(layout).int_leaves()):
        if stride == 0:
            continue
        if stride % current or stride < current:
            raise LayoutError(f"{layout} has no complement: its indices overlap at stride {stride}")
        result.append((stride // current, current))
        current = stride * extent
    result.append((it.quotient(bound, current), current))
    return coalesce(from_leaves(result))


def right_inverse(layout: Layout) -> Layout:
    """The longest R with layout(R(i)) == i for all i < size(R)."""
    if not layout.is_static:
        raise LayoutError(f"expects an input with static shape, but got {layout}")
    leaves = coalesce(layout).int_leaves()
    starts = it.flatten(it.prefix_product(tuple(s for s, _ in leaves)))
    current = 1
    result: list[tuple[int, it.Leaf]] = []
    order = sorted(range(len(leaves)), key=lambda i: (leaves[i][1], leaves[i][0]))
    for place in order:
        extent, stride = leaves[place]
        if extent == 1 or stride == 0:
            continue
        if stride != current:
            break
        result.append((extent, starts[place]))
        current = extent * stride
    return coalesce(from_leaves(result))


def left_inverse(layout: Layout) -> Layout:
    """L with L(layout(c)) == c for every coordinate of an injective layout."""
    return right_inverse(concat([layout, complement(layout)]))


def upcast(layout: Layout, factor: int) -> Layout:
    """The layout in units of `factor` elements; LayoutError where units would be split."""
    if layout.has_basis:
        raise LayoutError(f"cannot recast {layout}: its strides are no ints")

    def leaf(extent: int, stride: int) -> tuple[int, int]:
        if stride == 0:
            return extent, 0
        step = it.shape_div(factor, abs(stride))
        if extent % step:
            raise LayoutError(f"cannot recast {layout} up by {factor}: extent {extent} is split")
        new = it.shape_div(abs(stride), factor)
        return extent // step, new if stride > 0 else -new

    return _leafwise(layout, leaf)


def downcast(layout: Layout, factor: int) -> Layout:
    """The layout in units of 1/`factor` elements: stride 1 gets longer, others wider."""
    units = [leaf for leaf in layout.int_leaves() if abs(leaf[1]) == 1]
    longest = max(units, default=None)
    if longest is None:
        raise LayoutError(f"cannot recast {layout} down by {factor}: no mode has stride 1")
    stretched = False

    def leaf(extent: int, stride: int) -> tuple[int, int]:
        nonlocal stretched
        if (extent, stride) == longest and not stretched:
            stretched = True
            return extent * factor, stride
        return extent, stride * factor

    return _leafwise(layout, leaf)


def _leafwise(layout: Layout, leaf) -> Layout:  # type: ignore[no-untyped-def]
    pairs = [leaf(extent, stride) for extent, stride in layout.int_leaves()]
    return Layout(
        it.unflatten([s for s, _ in pairs], layout.shape),
        it.unflatten([d for _, d in pairs], layout.shape),
    )


def recast(layout: Layout, old_bits: int, new_bits: int) -> Layout:
    """The same bits seen as elements of another size; the sizes divide one another."""
    if old_bits == new_bits:
        return layout
    if new_bits % old_bits == 0:
        return upcast(layout, new_bits // old_bits)
    if old_bits % new_bits == 0:
        return downcast(layout, old_bits // new_bits)
    raise LayoutError(
        f"cannot recast {layout} from {old_bits} to {new_bits} bits: neither divides the other"
    )


def max_common_layout(left: Layout, right: Layout) -> Layout:
    """The longest coordinates along which both layouts are contiguous from index 0."""
    inverse = right_inverse(right)
    common = coalesce(composition(left, inverse))
    extent, stride = common.leaves()[0]
    return composition(inverse, Layout(extent)) if stride == 1 else Layout(1, 0)


def max_common_vector(left: Layout, right: Layout) -> int:
    """How many elements a copy between the layouts can move at once."""
    return max_common_layout(left, right).size


def group_modes(layout: Layout, begin: int, end: int) -> Layout:
    """Modes begin..end-1 as one; negative numbers count from the end."""
    count = len(layout)
    if not -count <= begin <= count - 1:
        raise LayoutError(
            f"expects begin in the range of [-rank , rank-1], but got begin [{begin}] "
            f"and rank [{count}]"
        )
    if not -count + 1 <= end <= count:
        raise LayoutError(
            f"expects end in the range of [-rank+1 , rank], but got end [{end}] and rank [{count}]"
        )
    first, last = begin % count, end if end > 0 else end + count
    if first >= last:
        raise LayoutError(
            f"expects begin < end, but got begin [{begin}] ([{first}]) and end [{end}] ([{last}])"
        )
    parts = list(layout)
    return concat([*parts[:first], concat(parts[first:last]), *parts[last:]])


def select(layout: Layout, picked: Sequence[int]) -> Layout:
    """The modes `picked`, in that order."""
    if len(set(picked)) != len(picked) or any(not 0 <= m < len(layout) for m in picked):
        numbers = ", ".join(map(str, picked))
        raise LayoutError(f"Invalid results for select(). Modes: [{numbers}]")
    return concat([layout[mode] for mode in picked])


def slice_layout(layout: Layout, coord: IntTuple) -> tuple[Layout, IntTuple]:
    """Fix the given parts of a coordinate (`None` is free): the layout left, and its offset."""
    if not it.weakly_congruent(coord, layout.shape):
        raise LayoutError(f"coordinate {it.text(coord)} does not fit {layout}")
    shape = it.select_kept(coord, layout.shape)
    stride = it.select_kept(coord, layout.stride)
    kept = Layout(shape, stride)
    if coord is None:
        kept = layout
    return kept, layout(it.zeros_for_free(coord))


def dice_layout(layout: Layout, coord: IntTuple) -> Layout:
    """The modes at which `coord` is given: the opposite of a slice."""
    if not it.weakly_congruent(coord, layout.shape):
        raise LayoutError(f"Failed to dice {layout} with {it.text(coord)}")
    return Layout(it.select_fixed(coord, layout.shape), it.select_fixed(coord, layout.stride))


def tile_text(tile: "Layout | int | Tile | None") -> str:
    """`<3:4,8:2>`; `_` for a mode that is left alone."""
    if isinstance(tile, tuple):
        return "<" + ",".join(map(tile_text, tile)) + ">"
    return "_" if tile is None else str(tile)

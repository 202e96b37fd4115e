"""What shape operations do to a distributed layout, and to the registers that hold the tile.

Where registers are dropped, added or picked, a second function (`*_registers`) says which
register of the old fragment each register of the new one is, in register order.
"""

from collections.abc import Mapping, Sequence
from math import prod

from tile_cute import gf2
from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout, log2


def _checked_dim(layout: LinearLayout, dim: int, limit: int) -> int:
    if not 0 <= dim < limit:
        raise LayoutError(f"dimension {dim} is outside 0..{limit - 1} of {layout}")
    return dim


def _without_dim(layout: LinearLayout, dim: int) -> dict[str, list[int]]:
    """Bases as flat indices of the shape without `dim`."""
    below = prod(layout.shape[dim + 1 :])
    above = below * layout.shape[dim]
    return {
        space: [v // above * below + v % below for v in layout.flat(space)]
        for space in layout.spaces
    }


def slice_dim(layout: LinearLayout, dim: int) -> LinearLayout:
    """Layout of the result of a reduction along `dim`: the dimension goes, and so do registers
    that become duplicates of others of the same thread; lanes and warps become replicas.
    """
    _checked_dim(layout, dim, layout.rank)
    flat = _without_dim(layout, dim)
    flat["register"] = gf2.independent(flat.get("register", ()))
    return LinearLayout.from_flat(flat, layout.shape[:dim] + layout.shape[dim + 1 :])


def slice_registers(layout: LinearLayout, dim: int) -> tuple[int, ...]:
    """For each register of `layout` the register of `slice_dim(layout, dim)` it reduces into."""
    _checked_dim(layout, dim, layout.rank)
    columns = _without_dim(layout, dim).get("register", [])
    kept = gf2.Span(gf2.independent(columns))
    targets = [kept.solve(column) or 0 for column in columns]
    return tuple(gf2.table(targets))


def expand_dim(layout: LinearLayout, dim: int) -> LinearLayout:
    """Insert a dimension of size 1 before `dim` (at the end for dim == rank)."""
    _checked_dim(layout, dim, layout.rank + 1)
    shape = (*layout.shape[:dim], 1, *layout.shape[dim:])
    return LinearLayout.from_flat(dict(_flat(layout)), shape)


def _flat(layout: LinearLayout) -> list[tuple[str, tuple[int, ...]]]:
    return [(space, layout.flat(space)) for space in layout.spaces]


def broadcast_dims(layout: LinearLayout, new_shape: Sequence[int]) -> LinearLayout:
    """Dimensions of size 1 grow; the copies are new, high register bits, last dimension fastest.

    Register r of the result is register `r % layout.elements_per_thread` of the source.
    """
    if len(new_shape) != layout.rank or any(
        old not in (1, new) for old, new in zip(layout.shape, new_shape, strict=True)
    ):
        raise LayoutError(f"cannot broadcast {layout} to shape {list(new_shape)}")
    bases = {space: list(layout.bases[space]) for space in layout.spaces}
    registers = bases.setdefault("register", [])
    for dim in reversed(range(layout.rank)):
        if layout.shape[dim] == 1:
            for bit in range(log2(new_shape[dim])):
                registers.append(tuple(1 << bit if d == dim else 0 for d in range(layout.rank)))
    return LinearLayout(bases, new_shape)


def project_dims(layout: LinearLayout, new_shape: Sequence[int]) -> LinearLayout:
    """The layout in which `broadcast` to `layout` needs no data movement: dimensions of size 1 in
    `new_shape` shrink to 1, registers that become duplicates go. The opposite of broadcast_dims.
    """
    if len(new_shape) != layout.rank or any(
        new not in (1, old) for old, new in zip(layout.shape, new_shape, strict=True)
    ):
        raise LayoutError(f"cannot shrink {layout} to shape {list(new_shape)}")
    for dim, size in enumerate(new_shape):
        if size != layout.shape[dim]:
            layout = expand_dim(slice_dim(layout, dim), dim)
    return layout


def broadcast_registers(src: LinearLayout, dst: LinearLayout) -> tuple[int, ...] | None:
    """For each register of `dst` the register of `src` that the same thread broadcasts into it.

    `src` has size 1 wherever it differs from the shape of `dst`. None if some thread of `dst`
    needs an element that it does not hold in `src`: convert to `project_dims(dst, src.shape)`
    first.
    """
    if src.rank != dst.rank:
        raise LayoutError(f"cannot broadcast {src} to {dst}: their ranks differ")
    keep = [int(size != 1) for size in src.shape]
    if any(k and a != b for k, a, b in zip(keep, src.shape, dst.shape, strict=True)):
        raise LayoutError(f"cannot broadcast {src} to shape {list(dst.shape)}")

    def seen(vector: tuple[int, ...]) -> int:
        return src.flatten([value * k for value, k in zip(vector, keep, strict=True)])

    registers = gf2.Span(src.flat("register"))
    for space in {*src.spaces, *dst.spaces} - {"register"}:
        if [seen(v) for v in dst.bases[space]] != list(src.flat(space)):
            return None
    picks = [registers.solve(seen(vector)) for vector in dst.bases["register"]]
    if None in picks:
        return None
    return tuple(gf2.table([pick or 0 for pick in picks]))


def permute_dims(layout: LinearLayout, perm: Sequence[int]) -> LinearLayout:
    """Dimension i of the result is dimension perm[i] of the source; registers stay."""
    if sorted(perm) != list(range(layout.rank)):
        raise LayoutError(f"{list(perm)} is no permutation of the dimensions of {layout}")
    bases = {
        space: [tuple(vector[p] for p in perm) for vector in vectors]
        for space, vectors in layout.bases.items()
    }
    return LinearLayout(bases, [layout.shape[p] for p in perm])


def reshape(layout: LinearLayout, new_shape: Sequence[int]) -> LinearLayout:
    """The same row-major order of elements in another shape; registers stay."""
    for size in new_shape:
        log2(size)
    if prod(new_shape) != layout.size:
        raise LayoutError(f"cannot reshape {layout} to {list(new_shape)}: sizes differ")
    return LinearLayout.from_flat(dict(_flat(layout)), new_shape)


def join(layout: LinearLayout, dim: int, count: int) -> LinearLayout:
    """`count` tiles of this layout behind each other along `dim`: part p supplies the registers
    `p * elements_per_thread` and up. The layout of a concatenation without data movement.
    """
    _checked_dim(layout, dim, layout.rank)
    size = layout.shape[dim]
    shape = [*layout.shape]
    shape[dim] = size * count
    bases = {space: list(layout.bases[space]) for space in layout.spaces}
    registers = bases.setdefault("register", [])
    for bit in range(log2(count)):
        registers.append(tuple(size << bit if d == dim else 0 for d in range(layout.rank)))
    return LinearLayout(bases, shape)


def _subtile_split(layout: LinearLayout, shape: Sequence[int]) -> list[int] | None:
    """Mask, per dimension, of the coordinate bits above the subtile; None if it is none."""
    if len(shape) != layout.rank:
        return None
    if any(size < 1 or whole % size for whole, size in zip(layout.shape, shape, strict=True)):
        return None
    return [whole - size for whole, size in zip(layout.shape, shape, strict=True)]


def subtile(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout | None:
    """Layout of an aligned subtile that every thread extracts from its own registers.

    None if that is not possible: lanes, warps or mixed registers reach across subtiles.
    """
    masks = _subtile_split(layout, shape)
    if masks is None:
        raise LayoutError(f"{list(shape)} does not divide the shape of {layout}")
    bases: dict[str, list[tuple[int, ...]]] = {}
    for space, vectors in layout.bases.items():
        bases[space] = []
        for vector in vectors:
            above = any(v & m for v, m in zip(vector, masks, strict=True))
            if not above:
                bases[space].append(vector)
            elif space != "register" or any(v & ~m for v, m in zip(vector, masks, strict=True)):
                return None
    return LinearLayout(bases, shape)


def subtile_registers(
    layout: LinearLayout, shape: Sequence[int], offset: Sequence[int]
) -> tuple[int, ...]:
    """The registers of `layout` that form the subtile at `offset` (a multiple of `shape`)."""
    masks = _subtile_split(layout, shape)
    if masks is None or subtile(layout, shape) is None:
        raise LayoutError(f"no thread-local subtile of shape {list(shape)} in {layout}")
    if any(o % size for o, size in zip(offset, shape, strict=True)):
        raise LayoutError(f"offset {list(offset)} is no multiple of the subtile {list(shape)}")
    flat_mask = layout.flatten(masks)
    wanted = layout.flatten(offset)
    values = gf2.table(layout.flat("register"))
    return tuple(r for r, value in enumerate(values) if value & flat_mask == wanted)


def rename_spaces(layout: LinearLayout, names: Mapping[str, str]) -> LinearLayout:
    """The same map with spaces renamed; names that are not mentioned stay."""
    flat = {names.get(space, space): layout.flat(space) for space in layout.spaces}
    return LinearLayout.from_flat(flat, layout.shape, layout.outs)

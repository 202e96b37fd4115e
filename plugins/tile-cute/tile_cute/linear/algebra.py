"""Composition, inversion, products and quotients of linear layouts."""

from collections.abc import Iterable

from tile_cute import gf2
from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout, log2


def compose(outer: LinearLayout, inner: LinearLayout) -> LinearLayout:
    """x -> outer(inner(x)); the dimensions of `inner` are spaces of `outer`, by name.

    `compose(src, invert_and_compose(src, dst)) == dst`. LayoutError if a dimension of `inner` is
    larger than the space it feeds.
    """
    columns: list[int] = []
    for name, size in zip(reversed(inner.outs), reversed(inner.shape), strict=True):
        vectors, bits = outer.flat(name), log2(size)
        if bits > len(vectors):
            raise LayoutError(
                f"cannot compose: '{name}' has size {size} in {inner} "
                f"but only {1 << len(vectors)} in {outer}"
            )
        columns += vectors[:bits]
    flat = {
        space: [gf2.combine(columns, vector) for vector in inner.flat(space)]
        for space in inner.spaces
    }
    return LinearLayout.from_flat(flat, outer.shape, outer.outs)


def invert(layout: LinearLayout) -> LinearLayout:
    """The map from coordinates back to indices; spaces and dimensions change sides.

    Of several places of one element the one whose free bits are 0 is taken (see `free_mask`),
    so this is a right inverse in general. LayoutError if the layout is not surjective.
    """
    spaces = layout.spaces
    return _solve(
        layout, spaces, {name: _units(layout, name) for name in layout.outs}, f"invert {layout}"
    )


def _units(layout: LinearLayout, name: str) -> list[int]:
    """Flat indices of the unit coordinates 1, 2, 4, ... of one dimension."""
    place = layout.outs.index(name)
    shift = sum(log2(size) for size in layout.shape[place + 1 :])
    return [1 << (shift + bit) for bit in range(log2(layout.shape[place]))]


def _solve(
    layout: LinearLayout, spaces: tuple[str, ...], wanted: dict[str, list[int]], what: str
) -> LinearLayout:
    """For each wanted flat index the indices of `layout` that reach it."""
    span = gf2.Span(layout.all_flat(spaces))
    columns = _index_columns(layout, spaces)
    flat: dict[str, list[int]] = {}
    for name, vectors in wanted.items():
        flat[name] = []
        for vector in vectors:
            mask = span.solve(vector)
            if mask is None:
                raise LayoutError(
                    f"cannot {what}: no index reaches coordinate {list(layout.unflatten(vector))}"
                )
            flat[name].append(gf2.combine(columns, mask))
    return LinearLayout.from_flat(flat, [layout.in_size(s) for s in spaces], spaces)


def _index_columns(layout: LinearLayout, spaces: tuple[str, ...]) -> list[int]:
    """Place of every bit of `spaces`, in order, in the flat index of their sizes."""
    shift = sum(layout.in_bits(space) for space in spaces)
    columns = []
    for space in spaces:
        shift -= layout.in_bits(space)
        columns += [1 << (shift + bit) for bit in range(layout.in_bits(space))]
    return columns


def invert_and_compose(src: LinearLayout, dst: LinearLayout) -> LinearLayout:
    """x -> src^-1(dst(x)): where the element that `dst` has at x lies in `src`.

    The result maps the spaces of `dst` to the spaces of `src`, choosing places whose free bits
    are 0. LayoutError if the tiles differ or `src` lacks an element that `dst` has.
    """
    if src.shape != dst.shape or src.outs != dst.outs:
        raise LayoutError(f"the layouts describe different tiles: {src} and {dst}")
    wanted = {space: list(dst.flat(space)) for space in dst.spaces}
    return _solve(src, src.spaces, wanted, f"reach {dst} from {src}")


def product(inner: LinearLayout, outer: LinearLayout) -> LinearLayout:
    """`inner` repeated over `outer`: the bits of `inner` are the low bits, in spaces and
    dimensions alike. A dimension or space that one of them lacks has size 1 there.
    """
    if inner.outs != outer.outs:
        raise LayoutError(f"cannot multiply layouts of different dimensions: {inner} by {outer}")
    shape = [a * b for a, b in zip(inner.shape, outer.shape, strict=True)]
    bases = {space: list(inner.bases[space]) for space in inner.spaces}
    for space in outer.spaces:
        scaled = [
            tuple(value * size for value, size in zip(vector, inner.shape, strict=True))
            for vector in outer.bases[space]
        ]
        bases[space] = bases.get(space, []) + scaled
    return LinearLayout(bases, shape, inner.outs)


def divide(layout: LinearLayout, tile: LinearLayout) -> LinearLayout | None:
    """The q with product(tile, q) == layout; None if the layout does not begin with the tile."""
    if layout.outs != tile.outs or any(
        size % part for size, part in zip(layout.shape, tile.shape, strict=True)
    ):
        return None
    bases: dict[str, list[tuple[int, ...]]] = {}
    for space in dict.fromkeys((*layout.spaces, *tile.spaces)):
        inner, all_of_it = tile.bases[space], layout.bases[space]
        if all_of_it[: len(inner)] != inner:
            return None
        rest = []
        for vector in all_of_it[len(inner) :]:
            if any(value % part for value, part in zip(vector, tile.shape, strict=True)):
                return None
            rest.append(tuple(v // part for v, part in zip(vector, tile.shape, strict=True)))
        bases[space] = rest
    shape = [size // part for size, part in zip(layout.shape, tile.shape, strict=True)]
    return LinearLayout(bases, shape, layout.outs)


def quotient(layout: LinearLayout, tile: LinearLayout) -> LinearLayout:
    """`divide`, with LayoutError where it does not go."""
    result = divide(layout, tile)
    if result is None:
        raise LayoutError(f"{layout} does not begin with the tile {tile}")
    return result


def restrict(layout: LinearLayout, spaces: Iterable[str]) -> LinearLayout:
    """The layout with every space that is not named held at 0."""
    flat = {space: layout.flat(space) for space in spaces}
    return LinearLayout.from_flat(flat, layout.shape, layout.outs)


def same_elements(left: LinearLayout, right: LinearLayout) -> bool:
    """Whether both reach the same elements of the same tile."""
    return left.shape == right.shape and gf2.reduced(left.all_flat()) == gf2.reduced(
        right.all_flat()
    )

"""CuTe layouts: congruent trees shape:stride, a function from coordinates to indices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_cute import int_tuple as it
from tile_cute.errors import LayoutError
from tile_cute.int_tuple import Basis, IntTuple


@dataclass(frozen=True)
class Layout:
    """`shape:stride`; immutable, compared structurally (see `equivalent` for as functions).

    The stride defaults to compact column-major. Extents and strides may be known at run time only
    (`it.Dynamic`); what needs to know them raises LayoutError. So do trees that are not congruent
    and extents that are not positive.
    """

    shape: IntTuple
    stride: IntTuple = None

    def __post_init__(self) -> None:
        if self.stride is None:
            object.__setattr__(self, "stride", it.prefix_product(self.shape))
        if not it.congruent(self.shape, self.stride):
            raise LayoutError(
                f"shape {it.text(self.shape)} and stride {it.text(self.stride)} are not congruent"
            )
        for extent in it.flatten(self.shape):
            if not isinstance(extent, it.Dynamic) and (not isinstance(extent, int) or extent < 1):
                raise LayoutError(f"shape {it.text(self.shape)} has an extent that is not positive")

    def __call__(self, *coord: IntTuple) -> IntTuple:
        """Index of a coordinate: an int, one argument per mode, or a nested tuple."""
        return it.crd2idx(coord[0] if len(coord) == 1 else coord, self.shape, self.stride)

    def __str__(self) -> str:
        return f"{it.text(self.shape)}:{it.text(self.stride)}"

    def __len__(self) -> int:
        return it.rank(self.shape)

    def __getitem__(self, mode: int) -> "Layout":
        """One mode; negative numbers count from the end."""
        count = len(self)
        if not -count <= mode < count:
            raise LayoutError(f"mode {mode} is outside the {count} modes of {self}")
        return Layout(it.modes(self.shape)[mode], it.modes(self.stride)[mode])

    def __iter__(self) -> Iterator["Layout"]:
        return (self[mode] for mode in range(len(self)))

    @property
    def rank(self) -> int:
        return len(self)

    @property
    def depth(self) -> int:
        return it.depth(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether all of it is known now."""
        return it.is_static(self.shape) and it.is_static(self.stride)

    @property
    def extent(self) -> it.Extent:
        """Number of coordinates, which may be known at run time only."""
        return it.extent(self.shape)

    @property
    def size(self) -> int:
        """Number of coordinates; LayoutError if it is known at run time only."""
        return it.size(self.shape)

    @property
    def cosize(self) -> int:
        """One more than the largest index; LayoutError for strides that are no ints."""
        return 1 + sum((s - 1) * d for s, d in self.int_leaves())

    @property
    def has_basis(self) -> bool:
        """Whether it leads to coordinates (strides such as `1@0`) instead of ints."""
        return any(isinstance(d, Basis) for d in it.flatten(self.stride))

    def open_leaves(self) -> list[tuple[it.Extent, it.Leaf | it.Dynamic]]:
        """(extent, stride) of the leaves from left to right, known or not."""
        return list(zip(it.flatten(self.shape), it.flatten(self.stride), strict=True))  # type: ignore[arg-type]

    def leaves(self) -> list[tuple[int, it.Leaf]]:
        """The leaves, all of them known; LayoutError otherwise."""
        if not self.is_static:
            raise LayoutError(f"{self} is known at run time only; this needs a static layout")
        return self.open_leaves()  # type: ignore[return-value]

    def int_leaves(self) -> list[tuple[int, int]]:
        """The leaves, where every stride is an int; LayoutError otherwise."""
        result = []
        for extent, stride in self.leaves():
            if not isinstance(stride, int):
                raise LayoutError(f"{self} has scaled-basis strides; this needs integer strides")
            result.append((extent, stride))
        return result

    def indices(self) -> list[IntTuple]:
        """The index of every coordinate in colexicographic order."""
        if self.has_basis:
            return [self(i) for i in range(self.size)]
        values = [0]
        for extent, stride in self.int_leaves():
            values = [value + i * stride for i in range(extent) for value in values]
        return values


def from_leaves(leaves: Sequence[tuple[it.Extent, it.Leaf | it.Dynamic]]) -> Layout:
    """A flat layout: a leaf for one pair, `1:0` for none."""
    if not leaves:
        return Layout(1, 0)
    if len(leaves) == 1:
        return Layout(*leaves[0])
    return Layout(tuple(s for s, _ in leaves), tuple(d for _, d in leaves))


def concat(layouts: Sequence[Layout]) -> Layout:
    """The layouts as modes of one."""
    return Layout(tuple(l.shape for l in layouts), tuple(l.stride for l in layouts))


def ordered_layout(shape: IntTuple, order: IntTuple) -> Layout:
    """Compact layout whose strides grow in the order of the keys; ties go from left to right."""
    if not it.weakly_congruent(order, shape):
        raise LayoutError(f"order {it.text(order)} does not fit shape {it.text(shape)}")
    keys = _spread(order, shape)
    extents = it.flatten(shape)
    strides: list[IntTuple] = [0] * len(extents)
    step: IntTuple = 1
    for place in sorted(range(len(extents)), key=lambda i: (keys[i], i)):
        strides[place] = step
        step = step * extents[place]
    return Layout(shape, it.unflatten(strides, shape))


def _spread(order: IntTuple, shape: IntTuple) -> list[int]:
    if it.is_tuple(order):
        return [key for o, s in zip(order, shape, strict=True) for key in _spread(o, s)]
    return [order] * len(it.flatten(shape))


def identity_layout(shape: IntTuple) -> Layout:
    """Every coordinate leads to itself: strides `1@i`, nested `1@i@j`."""

    def bases(part: IntTuple, path: tuple[int, ...]) -> IntTuple:
        if it.is_tuple(part):
            return tuple(bases(inner, (*path, i)) for i, inner in enumerate(part))
        return Basis(1, path)

    return Layout(shape, bases(shape, ()) if it.is_tuple(shape) else Basis(1, (0,)))

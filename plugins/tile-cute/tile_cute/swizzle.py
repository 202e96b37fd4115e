"""XOR swizzles and the layouts composed with them."""

from collections.abc import Callable
from dataclasses import dataclass

from tile_cute import int_tuple as it
from tile_cute import layout_algebra, tiling
from tile_cute.errors import LayoutError
from tile_cute.int_tuple import IntTuple
from tile_cute.layout import Layout
from tile_cute.layout_algebra import Tile


@dataclass(frozen=True)
class Swizzle:
    """`S<B,M,S>(x)`: bits [M+S, M+S+B) of x are XORed into bits [M, M+B).

    A negative S takes the source below the target. Self-inverse, since |S| >= B keeps source and
    target apart. LayoutError for B or M below 0 and |S| < B.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise LayoutError(
                f"swizzle <{self.bits},{self.base},{self.shift}> needs bits >= 0, base >= 0 and "
                "|shift| >= bits"
            )

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"

    @property
    def is_identity(self) -> bool:
        return self.bits == 0

    @property
    def source_mask(self) -> int:
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    @property
    def target_mask(self) -> int:
        return ((1 << self.bits) - 1) << (self.base + max(0, -self.shift))

    @property
    def span(self) -> int:
        """The pattern repeats after this many elements."""
        return 1 << (self.base + self.bits + abs(self.shift))

    def __call__(self, index: int) -> int:
        chosen = index & self.source_mask
        return index ^ (chosen >> self.shift if self.shift >= 0 else chosen << -self.shift)

    def commutes_with_offset(self, multiple: int) -> bool:
        """Whether S(x + k) == S(x) + k for every k that is a multiple of `multiple`."""
        return self.is_identity or multiple % self.span == 0

    def recast(self, old_bits: int, new_bits: int) -> "Swizzle":
        """The same bytes moved, counted in elements of another size (a power of two apart)."""
        up, down = new_bits // old_bits, old_bits // new_bits
        factor = max(up, down)
        if factor & (factor - 1) or max(old_bits, new_bits) != factor * min(old_bits, new_bits):
            raise LayoutError(f"cannot recast {self} from {old_bits} to {new_bits} bits")
        moved = factor.bit_length() - 1
        base = self.base - moved if up else self.base + moved
        if base < 0:
            raise LayoutError(f"cannot recast {self} to {new_bits} bits: it moves smaller pieces")
        return Swizzle(self.bits, base, self.shift)


# Swizzles of shared memory over byte addresses, named by the bytes of a row they permute.
SWIZZLE_NONE = Swizzle(0, 4, 3)
SWIZZLE_32B = Swizzle(1, 4, 3)
SWIZZLE_64B = Swizzle(2, 4, 3)
SWIZZLE_128B = Swizzle(3, 4, 3)
SWIZZLE_128B_ATOM_32B = Swizzle(2, 5, 2)

BYTE_SWIZZLES = {
    "none": SWIZZLE_NONE,
    "32B": SWIZZLE_32B,
    "64B": SWIZZLE_64B,
    "128B": SWIZZLE_128B,
    "128B_32B_atom": SWIZZLE_128B_ATOM_32B,
}


_ENUMERATED = 1 << 18


@dataclass(frozen=True)
class ComposedLayout:
    """`inner(offset + outer(c))`; `inner` is a swizzle, `outer` the value layout."""

    inner: Swizzle
    offset: int
    outer: Layout

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Swizzle) or not isinstance(self.outer, Layout):
            raise LayoutError(
                "a composed layout applies a swizzle (inner) to a layout (outer), not "
                f"{self.inner} to {self.outer}"
            )

    def __call__(self, *coord: IntTuple) -> int:
        index = it.add(self.offset, self.outer(*coord))
        if not isinstance(index, int):
            raise LayoutError(f"cannot swizzle {it.text(index)}: it is no integer")
        return self.inner(index)

    def __str__(self) -> str:
        return f"{self.inner} o {self.offset} o {self.outer}"

    @property
    def size(self) -> int:
        return self.outer.size

    @property
    def shape(self) -> IntTuple:
        return self.outer.shape

    def map_outer(self, function: Callable[[Layout], Layout]) -> "ComposedLayout":
        """The same swizzle and offset over a changed value layout."""
        return ComposedLayout(self.inner, self.offset, function(self.outer))

    def add_offset(self, offset: int) -> "ComposedLayout":
        return ComposedLayout(self.inner, self.offset + offset, self.outer)

    def composition(self, inner: Layout | int | Tile) -> "ComposedLayout":
        return self.map_outer(lambda outer: layout_algebra.composition(outer, inner))

    def logical_divide(self, tiler: tiling.Tiler) -> "ComposedLayout":
        return self.map_outer(lambda outer: tiling.logical_divide(outer, tiler))

    def zipped_divide(self, tiler: tiling.Tiler) -> "ComposedLayout":
        return self.map_outer(lambda outer: tiling.zipped_divide(outer, tiler))

    def recast(self, old_bits: int, new_bits: int) -> "ComposedLayout":
        if new_bits > old_bits and self.offset * old_bits % new_bits:
            raise LayoutError(f"cannot recast {self}: its offset is not aligned")
        return ComposedLayout(
            self.inner.recast(old_bits, new_bits),
            self.offset * old_bits // new_bits,
            layout_algebra.recast(self.outer, old_bits, new_bits),
        )

    @property
    def cosize(self) -> int:
        """One more than the largest index that is reached."""
        if self.inner.is_identity:
            return self.offset + self.outer.cosize
        if self.size > _ENUMERATED:
            raise LayoutError(f"can't derive meaningful cosize of composed layout: {self}")
        return 1 + max(self(i) for i in range(self.size))

    def simplified(self) -> "ComposedLayout | Layout":
        """Without a swizzle that does nothing."""
        if self.inner.is_identity and self.offset == 0:
            return self.outer
        return self

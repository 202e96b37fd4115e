"""`LinearLayout`: a GF(2)-linear map from named index spaces to the coordinates of a tile.

The coordinate of a point is the XOR of the bases of the bits set in its indices, so
`coord(register, lane, warp) == coord(register) ^ coord(lane) ^ coord(warp)`, dimension by
dimension. Internally a coordinate is one int, its row-major flat index: all sizes are powers of
two, so the flat index is the concatenation of the coordinates' bits and XOR acts on all of them.

After Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using
F2" (2025).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from types import MappingProxyType

from tile_cute import gf2
from tile_cute.errors import LayoutError

Flat = tuple[tuple[str, tuple[int, ...]], ...]

_SPACE_ORDER = {
    name: position
    for position, name in enumerate(
        ("register", "lane", "warp", "block", "offset", "column", "row")
    )
}


def space_key(name: str) -> tuple[int, int, str]:
    """Canonical order of index spaces; a basis is redundant with respect to those before it."""
    return (_SPACE_ORDER.get(name, len(_SPACE_ORDER)), len(name), name)


def is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def log2(value: int) -> int:
    """Exact binary logarithm; LayoutError if there is none."""
    if not is_power_of_two(value):
        raise LayoutError(f"{value} is not a power of two; linear layouts have no other sizes")
    return value.bit_length() - 1


class _Bases(dict[str, tuple[tuple[int, ...], ...]]):
    """A space that does not occur has no bits."""

    def __missing__(self, name: str) -> tuple[tuple[int, ...], ...]:
        return ()


class LinearLayout:
    """Immutable and hashable; spaces without bits are dropped, so equal maps compare equal.

    `bases[space][i]` is the coordinate that bit i of `space` contributes, one int per tile
    dimension; `shape` are the sizes of the dimensions, powers of two. `outs` names the
    dimensions (`dim0`, `dim1`, ... unless given), so that maps between index spaces, such as the
    result of `invert_and_compose`, are layouts too.

    Raises LayoutError for a size that is no power of two and a basis outside the shape.
    """

    def __init__(
        self,
        bases: Mapping[str, Sequence[Sequence[int]]],
        shape: Sequence[int],
        outs: Sequence[str] | None = None,
    ) -> None:
        shape = tuple(shape)
        for size in shape:
            log2(size)
        flat = {
            space: tuple(self._checked(space, shape, vector) for vector in vectors)
            for space, vectors in bases.items()
        }
        self._set(flat, shape, outs)

    @classmethod
    def from_flat(
        cls,
        flat: Mapping[str, Sequence[int]],
        shape: Sequence[int],
        outs: Sequence[str] | None = None,
    ) -> "LinearLayout":
        """The layout whose bases are row-major flat indices of `shape` (trusted, fast)."""
        layout = cls.__new__(cls)
        layout._set({space: tuple(v) for space, v in flat.items()}, tuple(shape), outs)
        return layout

    def _set(
        self,
        flat: Mapping[str, tuple[int, ...]],
        shape: tuple[int, ...],
        outs: Sequence[str] | None,
    ) -> None:
        self.shape = shape
        self.outs = tuple(outs) if outs is not None else tuple(f"dim{i}" for i in range(len(shape)))
        if len(self.outs) != len(shape) or len(set(self.outs)) != len(shape):
            raise LayoutError(f"{len(shape)} dimensions cannot be named {list(self.outs)}")
        spaces = sorted((space for space, v in flat.items() if v), key=space_key)
        self._flat: Flat = tuple((space, flat[space]) for space in spaces)
        self._by_name = dict(self._flat)
        self._hash = hash((self._flat, shape, self.outs))

    @staticmethod
    def _checked(space: str, shape: tuple[int, ...], vector: Sequence[int]) -> int:
        if len(vector) != len(shape):
            raise LayoutError(
                f"basis {list(vector)} of space '{space}' has rank {len(vector)}, "
                f"the shape {list(shape)} has rank {len(shape)}"
            )
        flat = 0
        for value, size in zip(vector, shape, strict=True):
            if not 0 <= value < size:
                raise LayoutError(
                    f"basis {list(vector)} of space '{space}' is outside shape {list(shape)}"
                )
            flat = flat * size + value
        return flat

    # -- structure ---------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearLayout):
            return NotImplemented
        return self is other or (
            self._hash == other._hash
            and self._flat == other._flat
            and self.shape == other.shape
            and self.outs == other.outs
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        from tile_cute.linear.text import print_layout

        return print_layout(self)

    def __repr__(self) -> str:
        return f"LinearLayout.parse({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> "LinearLayout":
        """The inverse of `str`; LayoutError with the place of the mistake otherwise."""
        from tile_cute.linear.text import parse_layout

        return parse_layout(text)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def spaces(self) -> tuple[str, ...]:
        """Names of the spaces that have bits, in canonical order."""
        return tuple(self._by_name)

    @cached_property
    def bases(self) -> Mapping[str, tuple[tuple[int, ...], ...]]:
        """Per space and bit the coordinate it contributes; `()` for a space that has no bits."""
        return MappingProxyType(
            _Bases((space, tuple(map(self.unflatten, flat))) for space, flat in self._flat)
        )

    @property
    def out_bits(self) -> int:
        return self.size.bit_length() - 1

    @property
    def size(self) -> int:
        """Number of elements of the tile."""
        return prod(self.shape)

    def in_bits(self, name: str) -> int:
        return len(self._by_name.get(name, ()))

    def in_size(self, name: str) -> int:
        return 1 << self.in_bits(name)

    @property
    def elements_per_thread(self) -> int:
        return self.in_size("register")

    def flat(self, name: str) -> tuple[int, ...]:
        """The bases of a space as row-major flat indices."""
        return self._by_name.get(name, ())

    def all_flat(self, names: Iterable[str] | None = None) -> list[int]:
        """Bases of several spaces (all, in canonical order, unless given) in one list."""
        spaces = self.spaces if names is None else names
        return [vector for name in spaces for vector in self.flat(name)]

    def unflatten(self, index: int) -> tuple[int, ...]:
        """Coordinates of a row-major flat index."""
        coords = []
        for size in reversed(self.shape):
            coords.append(index & (size - 1))
            index //= size
        return tuple(reversed(coords))

    def flatten(self, coords: Sequence[int]) -> int:
        """Row-major flat index of coordinates."""
        index = 0
        for value, size in zip(coords, self.shape, strict=True):
            index = index * size + value
        return index

    # -- evaluation --------------------------------------------------------------------------

    def apply_flat(self, indices: Mapping[str, int]) -> int:
        """Flat index of the element at these indices; a space left out stands at 0."""
        total = 0
        for name, index in indices.items():
            vectors = self.flat(name)
            if not 0 <= index < 1 << len(vectors):
                raise LayoutError(
                    f"index {index} is outside space '{name}' of size {1 << len(vectors)} in {self}"
                )
            total ^= gf2.combine(vectors, index)
        return total

    def apply(self, indices: Mapping[str, int]) -> tuple[int, ...]:
        """Coordinate of the element at these indices; a space left out stands at 0."""
        return self.unflatten(self.apply_flat(indices))

    def coords(self, name: str) -> list[tuple[int, ...]]:
        """Coordinates along one space, the others at 0: `apply({name: i})` for every i."""
        return [self.unflatten(index) for index in gf2.table(self.flat(name))]

    def coord_bits(self, dim: int) -> dict[str, tuple[int, ...]]:
        """Per space the contribution of each of its bits to coordinate `dim`.

        The coordinate along `dim` is the XOR of the values of all bits that are set.
        """
        return {space: tuple(v[dim] for v in vectors) for space, vectors in self.bases.items()}

    # -- linear algebra ----------------------------------------------------------------------

    @cached_property
    def image_rank(self) -> int:
        return gf2.rank(self.all_flat())

    @property
    def is_surjective(self) -> bool:
        """Every element of the tile is held somewhere."""
        return self.image_rank == self.out_bits

    @property
    def is_injective(self) -> bool:
        """No element is held twice."""
        return self.image_rank == len(self.all_flat())

    @cached_property
    def _free(self) -> dict[str, int]:
        span = gf2.Span()
        masks = {}
        for space, vectors in self._flat:
            masks[space] = sum(1 << i for i, v in enumerate(vectors) if not span.add(v))
        return masks

    def free_mask(self, name: str) -> int:
        """Bits of a space that reach nothing new: their basis is zero or lies in the span of
        lower bits of the space and of the spaces before it (register, lane, warp, block, ...).

        Points with all free bits 0 hold every element exactly once.
        """
        return self._free.get(name, 0)

    def kernel(self) -> tuple[dict[str, int], ...]:
        """Basis of the index differences that lead to the same element."""
        found = []
        for mask in gf2.kernel(self.all_flat()):
            point = {}
            for space, vectors in self._flat:
                point[space] = mask & ((1 << len(vectors)) - 1)
                mask >>= len(vectors)
            found.append({space: index for space, index in point.items() if index})
        return tuple(found)

    def image(self) -> tuple[tuple[int, ...], ...]:
        """Reduced basis of the coordinates that are reached; equal images have equal bases."""
        return tuple(map(self.unflatten, gf2.reduced(self.all_flat())))

    def registers_contiguous_along(self, dim: int) -> int:
        """How many consecutive registers, from any multiple on, step by one along `dim`.

        1 if not even two do. All other bases leave the low bits of `dim` alone, so that each
        run starts at a multiple of its length.
        """
        stride = prod(self.shape[dim + 1 :])
        registers = self.flat("register")
        bits = 0
        while bits < min(len(registers), log2(self.shape[dim])):
            if registers[bits] != stride << bits:
                break
            bits += 1
        mask = 0
        for vector in (
            *registers[bits:],
            *self.all_flat(s for s in self.spaces if s != "register"),
        ):
            mask |= vector
        while bits and mask & (stride * ((1 << bits) - 1)):
            bits -= 1
            mask |= registers[bits]
        return 1 << bits

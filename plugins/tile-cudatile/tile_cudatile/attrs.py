"""Attribute values of CUDA Tile IR that need more than a Python number, string or tuple.

An attribute is one of: `int`, `bool`, `str` (strings, symbols, and enums by their mnemonic),
`tuple` (arrays), `dict` (dictionaries, in file order), or a class of this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tile_cudatile.types import I1, Scalar, Tile, Type


@dataclass(frozen=True)
class Integer:
    """A typed integer; `bits` is its two's complement pattern, zero-extended."""

    type: Scalar
    bits: int

    @property
    def value(self) -> int:
        """The pattern read as a signed number (i1: 0 or 1, as MLIR's booleans are)."""
        width = self.type.width
        if width > 1 and self.bits >> (width - 1):
            return self.bits - (1 << width)
        return self.bits


@dataclass(frozen=True)
class Float:
    """A typed floating-point number by its bit pattern."""

    type: Scalar
    bits: int


@dataclass(frozen=True)
class TypeRef:
    """A type used as an attribute."""

    type: Type


@dataclass(frozen=True)
class Dense:
    """The elements of a constant, row-major, in the raw form that the bytecode stores.

    Every element takes a whole number of bytes (tf32 three, 4-bit formats one), except that i1
    is packed eight to a byte, lowest bit first. One element stands for all (a splat); an i1 splat
    is the byte 00 or FF.
    """

    type: Tile
    data: bytes

    @property
    def is_splat(self) -> bool:
        """Whether the data holds one element for all of the tile."""
        count = element_count(self.type.shape)
        if self.type.element == I1:
            return count == 1 or (len(self.data) == 1 and self.data in (b"\x00", b"\xff"))
        return count == 1 or len(self.data) == storage_bytes(self.type.element)


@dataclass(frozen=True)
class DivBy:
    """`div_by`: groups of `every` elements along `along` start at multiples of `divisor`."""

    divisor: int
    every: int | None = None
    along: int | None = None


@dataclass(frozen=True)
class SameElements:
    """`same_elements`: per dimension, how many neighbours hold equal elements."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Bounded:
    """`bounded`: inclusive signed bounds of every element."""

    lb: int | None = None
    ub: int | None = None


@dataclass(frozen=True)
class MultimemReduction:
    """`multimem_reduction_kind`, self-contained: one of `ops.enums.REDUCTION`. Since 13.5."""

    kind: str


@dataclass(frozen=True)
class Hints:
    """`optimization_hints`: for each target (`sm_90`, .. or `default`) a dictionary of hints."""

    targets: dict[str, Attr]


Predicate: TypeAlias = DivBy | SameElements | Bounded
Attr: TypeAlias = (
    int
    | bool
    | str
    | tuple["Attr", ...]
    | dict[str, "Attr"]
    | Integer
    | Float
    | TypeRef
    | Dense
    | DivBy
    | SameElements
    | Bounded
    | MultimemReduction
    | Hints
)


def element_count(shape: tuple[int, ...]) -> int:
    """The number of elements of a static shape."""
    count = 1
    for extent in shape:
        count *= extent
    return count


def storage_bytes(element: Type) -> int:
    """Bytes that one element of a `Dense` takes; i1, which is packed, counts as one."""
    if not isinstance(element, Scalar):
        raise TypeError(f"constants hold numbers, not {element}")
    return (element.width + 7) // 8


def dense_is_valid(tile: Tile, data: bytes) -> bool:
    """Whether `data` is a splat of, or exactly fills, a constant of type `tile`."""
    count = element_count(tile.shape)
    if tile.element == I1:
        return data in (b"\x00", b"\xff") or len(data) == (count + 7) // 8
    size = storage_bytes(tile.element)
    return len(data) in (size, size * count)

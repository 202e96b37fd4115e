"""Arrays whose tiles a loop loads, one a turn."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cudatile.attrs import Attr, Bounded, DivBy, Hints, Integer
from tile_cudatile.tree import Value
from tile_cudatile.types import I32, TOKEN, PartitionView, Scalar, TensorView, Tile

from tile_fuzz.case import Argument
from tile_fuzz.favoured import HINTS
from tile_fuzz.generator.maker import SCALAR_I32, Maker, count, tile
from tile_fuzz.generator.memory import base, strides_of, tensor

#: Of arrays that tensor maps may describe: bytes, and elements of a line, which are as many.
_ALIGNMENT = 16


@dataclass
class Stream:
    """An array whose tiles a loop loads, one a turn, along the dimension `along`; those of matrices
    that lie `turned` are transposed then.
    """

    view: Value
    type: Tile
    along: int
    turned: bool = False
    hints: Hints | None = None

    def load(self, maker: Maker, turn: Value) -> Value:
        zero = maker.number(0)
        index = tuple(turn if at == self.along else zero for at in range(len(self.type.shape)))
        hints = {} if self.hints is None else {"optimization_hints": self.hints}
        tile = maker.emit(
            "load_view_tko", [self.view, index, None], self.type, TOKEN,
            memory_ordering_semantics="weak", **hints,
        )  # fmt: skip
        return turn_over(maker, tile) if self.turned else tile


def turn_over(maker: Maker, value: Value) -> Value:
    """Rows as columns, of each matrix of a batch."""
    *batch, rows, columns = tile(value).shape
    type_ = Tile((*batch, columns, rows), tile(value).element)
    at = len(batch)
    return maker.emit("permute", [value], type_, permutation=(*range(at), at + 1, at))


def stream(
    maker: Maker,
    type_: Tile,
    along: int,
    turns: int,
    fill: str,
    *,
    plain: bool = False,
    short: int | None = None,
) -> Stream:
    """A new array of a tile for each turn; the last may stick out and is padded with zeros.

    One that is `plain` is as tensor maps have it: dense, and known to be aligned. `short` is by how
    many elements the last one sticks out, where it is not left to chance.
    """
    assert isinstance(type_.element, Scalar)
    shape = list(type_.shape)
    if short is None:
        short = maker.rng.randrange(shape[along]) if maker.chance(0.3) else 0
    if plain:
        short -= short % _ALIGNMENT
    shape[along] = shape[along] * max(turns, 1) - short
    make = _dense if plain else _any
    source = make(maker, type_.element, tuple(shape), fill)
    assert isinstance(source.type, TensorView)
    view = PartitionView(type_.shape, source.type, tuple(range(len(shape))), "zero")
    hints = _hints(maker) if HINTS in maker.settings.favour else None
    return Stream(maker.emit("make_partition_view", [source], view), type_, along, hints=hints)


def _hints(maker: Maker) -> Hints | None:
    """How many turns ahead a load may run, and whether tensor maps may make it."""
    found: dict[str, Attr] = {}
    if maker.chance(0.4):
        found["latency"] = Integer(I32, maker.rng.randint(1, 10))
    if maker.chance(0.3):
        found["allow_tma"] = maker.chance(0.5)
    return Hints({"default": found}) if found else None


def _any(maker: Maker, kind: Scalar, shape: tuple[int, ...], fill: str) -> Value:
    extents = strides_of(maker, shape)
    return tensor(maker, base(maker, kind, extents.size, fill), kind, extents)


def _dense(maker: Maker, kind: Scalar, shape: tuple[int, ...], fill: str) -> Value:
    strides = tuple(count(shape[axis + 1 :]) for axis in range(len(shape)))
    pointer = base(maker, kind, count(shape), fill)
    pointer = maker.emit("assume", [pointer], pointer.type, predicate=DivBy(_ALIGNMENT))
    given: tuple[Value, ...] = ()
    known: tuple[int | None, ...] = shape
    if maker.chance(0.5):  # as front ends pass arrays
        given = tuple(_extent(maker, extent) for extent in shape)
        known = (None,) * len(shape)
    return maker.emit("make_tensor_view", [pointer, given, ()], TensorView(kind, known, strides))


def _extent(maker: Maker, extent: int) -> Value:
    """An argument that is known not to be negative."""
    passed = maker.argument(SCALAR_I32, Argument(I32.name, value=extent))
    return maker.emit("assume", [passed], SCALAR_I32, predicate=Bounded(0, None))

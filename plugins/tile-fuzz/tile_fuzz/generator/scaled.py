"""Operands of products with block scales, as programs bring them: in memory one row or column after
the other, numbers of four bits two to a byte, scales as they are or as `tcgen05` wants them.

All numbers are small, and scales near one, so that sums of f32 are exact in every order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tile_cudatile.tree import Value
from tile_cudatile.types import (
    F4E2M1FN,
    F8E4M3FN,
    F8E5M2,
    F8E5M3FNU,
    F8E8M0FNU,
    F32,
    I8,
    Scalar,
    Tile,
)

from tile_fuzz.generator.maker import Maker, count
from tile_fuzz.generator.streams import Stream, stream, turn_over

#: Scales that elements of four bits may have, and elements along K that share one.
_OF_FOUR_BITS = ((F8E8M0FNU, 32), (F8E8M0FNU, 16), (F8E4M3FN, 16), (F8E5M3FNU, 16))
_OF_EIGHT_BITS = ((F8E8M0FNU, 32),)
#: Rows and columns of scales that lie together for `tcgen05` (PTX ISA, "Scale factor A layout").
_ROWS, _PARTS, _COLUMNS = 32, 4, 4


@dataclass
class _Packed:
    """Numbers of four bits, two to a byte of what `bytes_` loads; turned behind that."""

    bytes_: Stream
    type: Tile
    turned: bool

    def load(self, maker: Maker, turn: Value) -> Value:
        loaded = self.bytes_.load(maker, turn)
        size = count(self.type.shape)
        flat = maker.emit("reshape", [loaded], Tile((size // 2,), I8))
        numbers = maker.emit("unpack", [flat], Tile((size,), self.type.element))
        found = maker.emit("reshape", [numbers], self.type)
        return turn_over(maker, found) if self.turned else found


@dataclass
class _Interleaved:
    """Scales of 128 rows and four blocks together, as cuTile's example has them; of B turned."""

    stream: Stream
    type: Tile
    turned: bool

    def load(self, maker: Maker, turn: Value) -> Value:
        high, wide, *_ = self.stream.type.shape
        parts = (high, wide, _ROWS, _PARTS, _COLUMNS)
        apart = maker.emit("reshape", [self.stream.load(maker, turn)], self._tile(parts))
        order = (0, 3, 2, 1, 4)
        moved = self._tile(tuple(parts[axis] for axis in order))
        found = maker.emit("permute", [apart], moved, permutation=order)
        found = maker.emit("reshape", [found], self.type)
        return turn_over(maker, found) if self.turned else found

    def _tile(self, shape: tuple[int, ...]) -> Tile:
        return Tile(shape, self.type.element)


Operand = Stream | _Packed | _Interleaved


def scaled_operands(maker: Maker, turns: int) -> tuple[Tile, list[Operand]]:
    """The type of the sum; left, right, and the scales of each."""
    rng = maker.rng
    kinds = [kind for kind in (F4E2M1FN, F8E4M3FN, F8E5M2) if maker.may(kind.name)]
    kind = rng.choice(kinds or [F8E4M3FN])
    ways = _OF_FOUR_BITS if kind == F4E2M1FN else _OF_EIGHT_BITS
    scale, block = rng.choice([way for way in ways if maker.may(way[0].name)] or _OF_EIGHT_BITS)
    m, n = rng.choice((64, 128, 128, 128, 256)), rng.choice((8, 16, 32, 64, 128, 128, 256))
    m, n = (n, m) if maker.chance(0.2) else (m, n)
    k = block * rng.choice((1, 2, 4, 4, 8))
    batch = (rng.choice((1, 2)),) if maker.chance(0.15) else ()
    sides = [_Side(maker, (*batch, rows, k), kind, scale, block, turns) for rows in (m, n)]
    operands = [side.numbers(right) for right, side in enumerate(sides)]
    scales = [side.scales(right) for right, side in enumerate(sides)]
    return Tile((*batch, m, n), F32), [*operands, *scales]


class _Side:
    """An operand and its scales: `shape` is [batch,] rows or columns, and K."""

    def __init__(
        self,
        maker: Maker,
        shape: tuple[int, ...],
        kind: Scalar,
        scale: Scalar,
        block: int,
        turns: int,
    ) -> None:
        self.maker, self.shape, self.turns = maker, shape, turns
        self.kind, self.scale, self.block = kind, scale, block
        self.plain = maker.chance(0.8)
        #: Elements along K by which the last tile sticks out.
        self.short = maker.rng.randrange(shape[-1]) if maker.chance(0.3) else 0

    def numbers(self, right: int) -> Operand:
        """The elements, with K last on the left and last but one on the right (`right`)."""
        along_k = self.maker.chance(0.7)  # in memory
        shape = self.shape if along_k else self._across(self.shape)
        turned = along_k == bool(right)
        if self.kind != F4E2M1FN:
            return replace(self._stream(shape, self.kind, along_k, self.short), turned=turned)
        pairs = (*shape[:-1], shape[-1] // 2)
        short = self.short // 2 if along_k else self.short
        held = self._stream(pairs, I8, along_k, short, "bits")
        return _Packed(held, Tile(shape, self.kind), turned)

    def scales(self, right: int) -> Operand:
        """The scales, turned as the elements are; there are some for all elements in memory."""
        maker = self.maker
        *_, rows, k = self.shape
        few = k // self.block
        apart = len(self.shape) == 2 and rows % (_ROWS * _PARTS) == 0 and few % _COLUMNS == 0
        if apart and maker.chance(0.3):
            shape = (rows // _ROWS // _PARTS, few // _COLUMNS, _ROWS, _PARTS * _COLUMNS)
            held = stream(
                maker, Tile(shape, self.scale), 1, self.turns, "positive",
                plain=self.plain, short=0,
            )  # fmt: skip
            return _Interleaved(held, Tile((rows, few), self.scale), bool(right))
        along_k = maker.chance(0.8)
        shape = (*self.shape[:-1], few)
        shape = shape if along_k else self._across(shape)
        held = self._stream(shape, self.scale, along_k, self.short // self.block, "positive")
        return replace(held, turned=along_k == bool(right))

    def _across(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        *batch, rows, columns = shape
        return (*batch, columns, rows)

    def _stream(
        self, shape: tuple[int, ...], kind: Scalar, along_k: bool, short: int, fill: str = "small"
    ) -> Stream:
        along = len(shape) - 1 if along_k else len(shape) - 2
        return stream(
            self.maker, Tile(shape, kind), along, self.turns, fill, plain=self.plain, short=short
        )

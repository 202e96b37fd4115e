"""What loops over tiles of arrays carry: sums of what they load, and of products of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tile_cudatile.ops.constraints import BASE_FLOATS, INTS
from tile_cudatile.tree import Value
from tile_cudatile.types import BF16, F8E4M3FN, F8E5M2, F16, F32, I8, I32, Scalar, Tile

from tile_fuzz.favoured import MATRICES, SCALES
from tile_fuzz.generator.maker import IN_MEMORY, Maker
from tile_fuzz.generator.scaled import scaled_operands
from tile_fuzz.generator.streams import Stream, stream

_INTEGER_STEPS = ("addi", "muli", "xori", "maxi", "mini")
_FLOAT_STEPS = ("addf", "mulf", "maxf")


class Loaded(Protocol):
    """What gives a tile in each turn."""

    def load(self, maker: Maker, turn: Value) -> Value: ...


@dataclass
class Sum:
    """A carried value: what it starts with, what it is made of, and how."""

    start: Value
    streams: Sequence[Loaded]
    following: Callable[[Sequence[Value], Value], Value]  # from tiles and itself to itself


def a_sum(maker: Maker, turns: int) -> Sum:
    """A random one."""
    favour = maker.settings.favour
    if SCALES in favour and maker.chance(0.8):
        return _scaled(maker, turns)
    of_products = 0.8 if MATRICES in favour else 0.4
    return _product(maker, turns) if maker.chance(of_products) else _elementwise(maker, turns)


def _elementwise(maker: Maker, turns: int) -> Sum:
    """Element by element: every turn's result depends on the order of turns, which is fixed."""
    kind = maker.element([e for e in IN_MEMORY if e in (*INTS, *BASE_FLOATS) and e.width > 1])
    type_ = Tile(maker.shape() or (8,), kind)
    tiles_of = stream(maker, type_, maker.rng.randrange(len(type_.shape)), turns, "bits")
    name = maker.rng.choice(_FLOAT_STEPS if kind.is_float else _INTEGER_STEPS)
    attrs: dict[str, str] = {}
    if name in ("addf", "mulf"):
        attrs = {"rounding_mode": "nearest_even"}
    elif name in ("maxi", "mini"):
        attrs = {"signedness": maker.rng.choice(("signed", "unsigned"))}

    def following(tiles: Sequence[Value], before: Value) -> Value:
        return maker.emit(name, [before, tiles[0]], type_, **attrs)

    return Sum(maker.value(type_), (tiles_of,), following)


def _product(maker: Maker, turns: int) -> Sum:
    """A matrix product along K, of small whole numbers, whose sums are exact."""
    large = MATRICES in maker.settings.favour and maker.chance(0.8)
    m, n, k = _large(maker) if large else _small(maker)
    kinds = (F16, F16, BF16, F32, I8, *((F8E4M3FN, F8E5M2, I8) if large else ()))
    kind = maker.rng.choice([e for e in kinds if maker.may(e.name)] or [F32])
    name, target = ("mmai", I32) if kind == I8 else ("mmaf", F32)
    lhs = _matrix(maker, (m, k), kind, 1, turns)
    rhs = _matrix(maker, (k, n), kind, 0, turns)
    type_ = Tile((m, n), target)
    signs = {"signedness_lhs": "signed", "signedness_rhs": "signed"} if kind == I8 else {}

    def following(tiles: Sequence[Value], before: Value) -> Value:
        return maker.emit(name, [*tiles, before], type_, **signs)

    return Sum(maker.constant(type_, 0), (lhs, rhs), following)


def _scaled(maker: Maker, turns: int) -> Sum:
    """A product along K of blocks with scales."""
    type_, operands = scaled_operands(maker, turns)

    def following(tiles: Sequence[Value], before: Value) -> Value:
        lhs, rhs, *scales = tiles
        return maker.emit("mmaf_scaled", [lhs, rhs, before, *scales], type_)

    return Sum(maker.constant(type_, maker.rng.choice((0, 0, 1))), operands, following)


def _small(maker: Maker) -> tuple[int, int, int]:
    m, n, k = (1 << maker.rng.randint(3, 6) for _ in range(3))
    while max(m * k, k * n, m * n) > max(maker.settings.elements, 64):
        m, n, k = (max(extent // 2, 1) for extent in (m, n, k))
    return m, n, k


def _large(maker: Maker) -> tuple[int, int, int]:
    """At least 64 rows or columns, as wgmma and tcgen05 have, however small other tiles are."""
    rows, columns, k = (1 << maker.rng.randint(*ends) for ends in ((6, 7), (4, 7), (4, 6)))
    return (columns, rows, k) if maker.chance(0.2) else (rows, columns, k)


def _matrix(maker: Maker, shape: tuple[int, int], kind: Scalar, along: int, turns: int) -> Stream:
    """The tiles of an operand of a product, which at times lie turned where products are large."""
    if MATRICES not in maker.settings.favour or maker.chance(0.6):
        return stream(maker, Tile(shape, kind), along, turns, "small")
    turned = stream(maker, Tile(shape[::-1], kind), 1 - along, turns, "small")
    return replace(turned, turned=True)

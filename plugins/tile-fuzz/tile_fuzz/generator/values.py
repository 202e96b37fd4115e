"""New values of a wanted type, when none is in scope or another one is wanted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tile_cudatile.tree import Value
from tile_cudatile.types import F8E8M0FNU, I4, I8, I32, Scalar, Tile
from tile_sim.fills import bits, small

from tile_fuzz.generator.elementwise import convert
from tile_fuzz.generator.maker import IN_MEMORY, Maker, count
from tile_fuzz.generator.memory import load_input
from tile_fuzz.generator.movement import spread

_CASTS = ("ftof", "itof", "ftoi", "exti", "trunci", "bitcast")
_DENSE = 64  # elements of the largest constant that is no splat


def fresh(maker: Maker, type_: Tile) -> Value:
    """A new exact value."""
    ways: list[Callable[[Maker, Tile], Value | None]] = [_converted, _stretched]
    if isinstance(type_.element, Scalar) and type_.element in IN_MEMORY:
        ways += [_loaded, _loaded]
    maker.rng.shuffle(ways)
    if maker.chance(0.25):
        ways.insert(0, constant)
    for way in (*ways, constant):
        found = way(maker, type_)
        if found is not None:
            return maker.keep(found)
    raise AssertionError("a constant can always be made")


def constant(maker: Maker, type_: Tile) -> Value:
    """A splat, or a small constant of different numbers."""
    kind = type_.element
    assert isinstance(kind, Scalar)
    if kind == I4:
        made = convert(maker, "trunci", constant(maker, Tile(type_.shape, I8)), type_)
        assert made is not None
        return made
    rng = np.random.default_rng(maker.rng.getrandbits(32))
    size = count(type_.shape)
    if kind not in IN_MEMORY or kind.name.startswith("fnv"):
        low = 0 if kind.is_float else -8
        values = rng.integers(low, 5, size)
    else:
        values = bits(rng, kind, size)
        if kind.is_float and kind != F8E8M0FNU:
            with np.errstate(invalid="ignore"):  # signalling NaNs
                values = np.where(np.isnan(values.astype(np.float64)), values.dtype.type(1), values)
    if size > _DENSE or maker.chance(0.5):
        return maker.constant(type_, values.reshape(-1)[0])
    return maker.constant(type_, values.reshape(type_.shape))


def _loaded(maker: Maker, type_: Tile) -> Value | None:
    return load_input(maker, type_)


def _converted(maker: Maker, type_: Tile) -> Value | None:
    """Another value of the same shape in another format."""
    found = maker.pick(
        lambda item: (
            item.exact
            and isinstance(item.value.type, Tile)
            and item.value.type.shape == type_.shape
            and isinstance(item.value.type.element, Scalar)
            and item.value.type != type_
        )
    )
    if found is None:
        return None
    for name in maker.rng.sample(_CASTS, len(_CASTS)):
        made = convert(maker, name, found.value, type_)
        if made is not None:
            return made
    return None


def _stretched(maker: Maker, type_: Tile) -> Value | None:
    """A scalar in every element."""
    if not type_.shape:
        return None
    found = maker.pick(lambda item: item.exact and item.value.type == Tile((), type_.element))
    return None if found is None else spread(maker, found.value, type_.shape)


def whole(maker: Maker, type_: Tile) -> Value:
    """Small whole numbers, whose sums and products are exact in every order."""
    kind = type_.element
    assert isinstance(kind, Scalar)
    if kind in IN_MEMORY and maker.chance(0.7):
        return load_input(maker, type_, fill="small")
    if not kind.is_float:
        return maker.value(type_)
    source = Tile(type_.shape, I8)
    bits_ = maker.emit("andi", [maker.value(source), maker.constant(source, 3)], source)
    if kind == F8E8M0FNU:
        return maker.constant(type_, 2)
    made = convert(maker, "itof", bits_, type_)
    if made is not None:
        return made
    rng = np.random.default_rng(maker.rng.getrandbits(32))
    return maker.constant(type_, float(small(rng, kind, 1)[0]) if kind in IN_MEMORY else 1)


def index_below(maker: Maker, limit: int, kind: Scalar = I32) -> Value:
    """A scalar index below `limit`: a constant, or made from values in scope."""
    if limit == 1 or maker.chance(0.4):
        return maker.number(maker.rng.randrange(limit), kind)
    scalar = Tile((), kind)
    source = maker.value(scalar)
    if limit & (limit - 1) == 0:
        return maker.emit("andi", [source, maker.number(limit - 1, kind)], scalar)
    return maker.emit("remi", [source, maker.number(limit, kind)], scalar, signedness="unsigned")

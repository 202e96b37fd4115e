"""Numbers of rows and columns of f32 tiles: folds, and what is done with them."""

from __future__ import annotations

from collections.abc import Sequence

from tile_cudatile.tree import Value
from tile_cudatile.types import F32, I1, Tile

from tile_fuzz.generator.aggregates import number
from tile_fuzz.generator.maker import Maker, tile

#: Where a fold begins.
_IDENTITIES = {"maxf": -float("inf"), "minf": float("inf"), "addf": 0.0}
_ROUNDED = ("addf", "subf", "mulf")


def combine(maker: Maker, name: str, left: Value, right: Value) -> Value:
    """An operation of two tiles of one type."""
    rounding = {"rounding_mode": "nearest_even"} if name in _ROUNDED else {}
    return maker.emit(name, [left, right], left.type, **rounding)


def limited(maker: Maker, value: Value, low: float, high: float) -> Value:
    """The value, but at least `low` and at most `high`."""
    type_ = tile(value)
    raised = combine(maker, "maxf", value, maker.constant(type_, low))
    return combine(maker, "minf", raised, maker.constant(type_, high))


def exp2(maker: Maker, value: Value) -> Value:
    """Two to the power of whole numbers, which every implementation gives to the bit."""
    return maker.emit("exp2", [value], value.type)


def compare(maker: Maker, predicate: str, value: Value, with_: float) -> Value:
    """Which elements are so, of a number."""
    type_ = tile(value)
    return maker.emit(
        "cmpf", [value, maker.constant(type_, with_)], Tile(type_.shape, I1),
        comparison_predicate=predicate, comparison_ordering="ordered",
    )  # fmt: skip


def fold(maker: Maker, value: Value, axis: int, name: str) -> Value:
    """The largest number along an axis, the least, or their sum, which stays, with extent 1."""
    shape = tile(value).shape

    def build(*pair: Value) -> tuple[str, Sequence[Value]]:
        return "yield", [combine(maker, name, *pair)]

    body = maker.region([Tile((), F32)] * 2, build)
    folded = maker.emit(
        "reduce", [(value,)], Tile(shape[:axis] + shape[axis + 1 :], F32), regions=(body,),
        dim=axis, identities=(number(F32, _IDENTITIES[name]),),
    )  # fmt: skip
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    return maker.emit("reshape", [folded], Tile(kept, F32))


def stretch(maker: Maker, value: Value, type_: Tile) -> Value:
    """A number of each row or column, or one of all, in every element of a tile."""
    return maker.emit("broadcast", [value], type_)

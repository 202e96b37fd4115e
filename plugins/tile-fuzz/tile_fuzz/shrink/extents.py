"""Smaller tiles: an extent is halved wherever it occurs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_cudatile.attrs import Dense, element_count, storage_bytes
from tile_cudatile.tree import Op
from tile_cudatile.types import I1, GatherScatterView, PartitionView, StridedView, Tile, Type

from tile_fuzz.case import Case
from tile_fuzz.shrink.copying import numbered
from tile_fuzz.shrink.edits import Edit


def halved(extent: int, axis: int | None = None) -> Edit:
    """Tiles have half the extent wherever they had `extent`, along `axis` or along all."""

    def dims(shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(
            d // 2 if d == extent and axis in (None, at) else d for at, d in enumerate(shape)
        )

    def edit(case: Case) -> bool:
        changed = False
        for entry in case.module.entries:
            values = list(entry.args)
            for op in entry.body.walk():
                values.extend(op.results)
                values.extend(a for r in op.regions for b in r.blocks for a in b.args)
                _shorten(op, dims)
            for value in values:
                made = _type(value.type, dims)
                changed |= made != value.type
                value.type = made
        return changed

    return edit


def _type(type_: Type, dims: Any) -> Type:
    if isinstance(type_, Tile):
        return Tile(dims(type_.shape), type_.element)
    if isinstance(type_, (PartitionView, StridedView, GatherScatterView)):
        return replace(type_, tile_shape=dims(type_.tile_shape))
    return type_


def _shorten(op: Op, dims: Any) -> None:
    """Constants keep their first elements."""
    data = op.attrs.get("value")
    if not isinstance(data, Dense):
        return
    shape = dims(data.type.shape)
    made = Tile(shape, data.type.element)
    if data.is_splat or data.type.element == I1:
        first = data.data[:1] if data.type.element == I1 else data.data
        op.attrs["value"] = Dense(made, b"\xff" if first[:1] == b"\xff" else first)
        if data.type.element == I1:
            op.attrs["value"] = Dense(made, b"\xff" if first[0] & 1 else b"\x00")
        return
    size = element_count(shape) * storage_bytes(data.type.element)
    op.attrs["value"] = Dense(made, data.data[:size])


def extents(case: Case) -> list[int]:
    """The extents of tiles that can be halved, largest first."""
    found = {
        extent
        for op in numbered(case)
        for result in op.results
        if isinstance(result.type, Tile)
        for extent in result.type.shape
    }
    return sorted((e for e in found if e > 1), reverse=True)

"""Accesses to memory that wait for what another block of the cluster may have done.

An access comes after those that its token waits for. Where these are the own block's, as parts of
one grid of tiles are, it does anyway; before others the blocks of the cluster meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_core.mlir import ir
from tile_tileas.analysis.tokens import TokenOrder
from tile_tileas.analysis.views import maker, tiled_view
from tile_tileas.dialect.fields import operand_of

_LOADS = ("nv_tileaa.load", "nv_tileaa.tiled_load")
_STORES = ("nv_tileaa.store", "nv_tileaa.tiled_store")


def meetings(ops: Sequence[ir.OpView], axes: Mapping[ir.Value, int]) -> list[ir.OpView]:
    """The accesses among `ops` before which blocks have to meet; `axes` are the cuts."""
    order = TokenOrder((*_LOADS, *_STORES))
    found: list[ir.OpView] = []
    for op in ops:
        if op.operation.name not in (*_LOADS, *_STORES):
            continue
        token = operand_of(op, "token")
        if token is None:
            continue
        before = [maker(result) for result in order.before(token)]
        if any(_waits(one, op, axes) for one in before):
            found.append(op)
    return found


def _waits(before: ir.OpView | ir.Operation, op: ir.OpView, axes: Mapping[ir.Value, int]) -> bool:
    """Whether `op` may have to wait for another block's `before`."""
    first = before.opview if isinstance(before, ir.Operation) else before
    if first.operation.name in _LOADS and op.operation.name in _LOADS:
        return False
    if all(one.operation.name in _STORES and not _is_cut(one, axes) for one in (first, op)):
        return False  # one block makes both
    return not _same_part(first, op, axes)


def _is_cut(op: ir.OpView, axes: Mapping[ir.Value, int]) -> bool:
    return any(value in axes for value in (*op.operands, *op.results))


def _same_part(first: ir.OpView, op: ir.OpView, axes: Mapping[ir.Value, int]) -> bool:
    """Whether both are of one grid of tiles, cut along one axis: parts of blocks never meet."""
    if not first.operation.name.startswith("nv_tileaa.tiled"):
        return False
    if not op.operation.name.startswith("nv_tileaa.tiled"):
        return False
    cuts = [axes.get(_tile_of(one)) for one in (first, op)]
    if cuts[0] is None or cuts[0] != cuts[1]:
        return False
    left, right = tiled_view(first.view), tiled_view(op.view)
    same_memory = maker(first.view).operands[0] == maker(op.view).operands[0]
    return same_memory and (left.tile, left.dim_map, left.steps) == (
        right.tile, right.dim_map, right.steps
    )  # fmt: skip


def _tile_of(op: ir.OpView) -> ir.Value:
    return op.results[0] if op.operation.name in _LOADS else op.value

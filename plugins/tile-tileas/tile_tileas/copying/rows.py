"""Tiles that one thread can copy by runs of bytes (PTX ISA, "cp.async.bulk")."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from tile_tileaa.dialect.hints import allows_tma

from tile_core.mlir import ir
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.axis import element_bytes
from tile_tileas.analysis.tokens import TokenOrder, is_weak
from tile_tileas.analysis.views import TiledView, tiled_view
from tile_tileas.dialect.fields import operand_of
from tile_tileas.storage import storage_bits
from tile_tileas.tma.refusals import GRAIN, follows_writes

#: First compute capability with bulk copies, times 10 (PTX ISA, "cp.async.bulk").
SINCE = 90
#: Runs of one tile; more are better made by all threads.
MOST_RUNS = 16
_BYTE = 8


@dataclass(frozen=True)
class Runs:
    """A tile as runs of memory.

    Attributes:
        extents: of one run along each axis of the tile, in elements.
        origins: the first element of each run, in order of memory.
        bytes: of one run.
    """

    extents: tuple[int, ...]
    origins: tuple[tuple[int, ...], ...]
    bytes: int


def runs_of(view: TiledView, order: tuple[int, ...]) -> Runs:
    """The longest runs that lie in one piece, with `order` the tile's axes by their steps."""
    memref, extents, length = view.memref, [1] * len(view.tile), 1
    for axis in order:
        extent, stride = view.tile[axis], memref.strides[view.dim_map[axis]]
        if extent > 1:
            if stride != length:
                break
            extents[axis] = extent
            length *= extent
    places = [range(0, whole, own) for whole, own in zip(view.tile, extents, strict=True)]
    turned = product(*(places[axis] for axis in reversed(order)))
    back = {axis: at for at, axis in enumerate(reversed(order))}
    origins = tuple(tuple(one[back[axis]] for axis in range(len(extents))) for one in turned)
    size = prod(extents) * storage_bits(memref.element) // _BYTE
    return Runs(tuple(extents), origins, size)


def refusal(op: ir.OpView, plan: AccessPlan, order: TokenOrder) -> str | None:
    """Why no bulk copies bring the tile of a `tiled_load`; None if they may.

    `plan` says that each vector is aligned, and which axes may reach past the end.
    """
    if not allows_tma(op):
        return "the hint allow_tma is false"
    if not is_weak(op) or "volatile" in op.attributes:
        return "the access is ordered"
    token = operand_of(op, "token")
    if token is not None and follows_writes(token, order):
        return "the tile is read after the kernel has written memory"
    view = tiled_view(op.view)
    if storage_bits(view.memref.element) % _BYTE:
        return "elements have less than a byte"
    if plan.checked:
        axes = ", ".join(map(str, plan.checked))
        return f"the tile may reach past the end along axis {axes}, and bulk copies fill nothing in"
    if plan.vector * element_bytes(view.memref.element) < GRAIN:
        return f"runs are not known to start at a multiple of {GRAIN} bytes"
    runs = runs_of(view, plan.order)
    if runs.bytes % GRAIN:
        return f"runs have {runs.bytes} bytes, which is no multiple of {GRAIN}"
    if len(runs.origins) > MOST_RUNS:
        return f"the tile is made of {len(runs.origins)} runs, and up to {MOST_RUNS} are copied so"
    return None

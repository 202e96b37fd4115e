"""Which operations read and write shared memory by the asynchronous proxy (PTX ISA, "Proxies")."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.analysis.tokens import BULK_STORES
from tile_tileas.dialect.launched import CANCEL
from tile_tileas.dot_plan import family_of
from tile_tileas.mma.families import WARPGROUP

#: Copies by the copy engine, and what they do to shared memory.
_READS = ("nv_tileas.async_copy", "nv_tileas.umma", "nv_tileas.umma_scaled", *BULK_STORES)
_WRITES = (
    "nv_tileas.async_copy", "nv_tileas.async_gather_tma_load", "nv_tileas.async_tiled_tma_load",
    CANCEL,
)  # fmt: skip


def reads_by_async_proxy(op: ir.OpView) -> bool:
    """Whether an operation reads its buffers by the asynchronous proxy."""
    name = op.operation.name
    return name in _READS or (name == "nv_tileas.dot" and family_of(op) == WARPGROUP)


def writes_by_async_proxy(op: ir.OpView) -> bool:
    """Whether an operation writes its buffers by the asynchronous proxy."""
    return op.operation.name in _WRITES


def is_bulk_store(op: ir.OpView) -> bool:
    """Whether an operation begins a store of shared memory by the asynchronous proxy, which a bulk
    group completes.
    """
    return op.operation.name in BULK_STORES

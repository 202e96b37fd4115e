"""The nv_tileaa dialect; importing this package declares every operation."""

from tile_tileaa.dialect import atomics, dot, folds, host, math, memory, multimem, shape, system
from tile_tileaa.dialect.base import (
    MemRefType,
    MemTokenType,
    NvTileAA,
    PtrType,
    TiledViewType,
    mem_token,
    ptr,
)

__all__ = [
    "MemRefType",
    "MemTokenType",
    "NvTileAA",
    "PtrType",
    "TiledViewType",
    "atomics",
    "dot",
    "folds",
    "host",
    "load",
    "math",
    "mem_token",
    "memory",
    "multimem",
    "ptr",
    "shape",
    "system",
]


def load() -> None:
    """Declare the dialect in the current context."""
    NvTileAA.load()

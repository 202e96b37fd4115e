"""The nv_tileaa dialect; importing this package declares every operation."""

from tile_tileaa.dialect import (
    accesses,
    dot,
    extended,
    folds,
    host,
    math,
    memory,
    shape,
    system,
)
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
    "accesses",
    "dot",
    "extended",
    "folds",
    "host",
    "load",
    "math",
    "mem_token",
    "memory",
    "ptr",
    "shape",
    "system",
]


def load() -> None:
    """Declare the dialect in the current context."""
    NvTileAA.load()

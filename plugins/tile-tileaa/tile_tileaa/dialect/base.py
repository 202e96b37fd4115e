"""The nv_tileaa dialect: neutral tiles, explicit memory tokens, no layouts yet.

Tiles are builtin tensors; a rank-0 tile is its bare element type. Operation contracts follow the
Tile IR specification, "nv_tileaa operation roster".
"""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_core.dialect import Dialect, Type
from tile_core.mlir import ir


class NvTileAA(Dialect, name="nv_tileaa"):
    """Neutral tile operations."""


class PtrType(Type, dialect=NvTileAA, name="ptr"):
    """A pointer to `pointee` in LLVM address space `space` (1 = global)."""

    pointee: Any
    space: Any


class MemTokenType(Type, dialect=NvTileAA, name="mem_token"):
    """An ordering edge between memory operations; it has no runtime value."""


class MemRefType(Type, dialect=NvTileAA, name="memref"):
    """A strided view of global memory: element, sizes, strides (elements; INT64_MIN = dynamic)."""

    element: Any
    shape: Any
    strides: Any


class TiledViewType(Type, dialect=NvTileAA, name="tiled_view"):
    """A grid of tiles over a memref: memref, tile shape, dim map, padding mnemonic or "none"."""

    source: Any
    tile: Any
    dim_map: Any
    padding: Any


def ptr(pointee: ir.Type, space: int = 1) -> ir.Type:
    """`!nv_tileaa.ptr<pointee, space>`."""
    return PtrType.get(pointee, ir.IntegerAttr.get(ir.IntegerType.get_signless(32), space))


def mem_token() -> ir.Type:
    """`!nv_tileaa.mem_token`."""
    return MemTokenType.get()

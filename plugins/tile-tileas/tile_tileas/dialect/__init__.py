"""The nv_tileas dialect; importing this package declares every operation."""

from tile_tileas.dialect import dot, memory, tile
from tile_tileas.dialect.base import (
    LayoutAttr,
    NvTileAS,
    distributed,
    layout_attr,
    layout_in,
    layout_of,
)

__all__ = [
    "LayoutAttr",
    "NvTileAS",
    "distributed",
    "dot",
    "layout_attr",
    "layout_in",
    "layout_of",
    "load",
    "memory",
    "tile",
]


def load() -> None:
    """Declare the dialect in the current context."""
    NvTileAS.load()

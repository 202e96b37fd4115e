"""The nv_tileas dialect; importing this package declares every operation."""

from tile_tileas.dialect import (
    agents,
    barriers,
    cluster,
    copies,
    dot,
    exchange,
    launched,
    memory,
    pipelines,
    staging,
    tensor,
    tile,
    tma,
)
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
    "agents",
    "barriers",
    "cluster",
    "copies",
    "distributed",
    "dot",
    "exchange",
    "launched",
    "layout_attr",
    "layout_in",
    "layout_of",
    "load",
    "memory",
    "pipelines",
    "staging",
    "tensor",
    "tile",
    "tma",
]


def load() -> None:
    """Declare the dialect in the current context."""
    NvTileAS.load()

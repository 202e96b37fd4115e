"""`first-legal`: one element at a time, spread over all threads; what -O0 uses."""

from __future__ import annotations

from typing import ClassVar

from tile_tileas.layouts import Assignment, TileGraph
from tile_tileas.strategies.propagation import Propagation
from tile_tileas.strategies.spread import spread


class FirstLegalStrategy:
    """The first layout that works, from the first tile on; no look at memory."""

    name: ClassVar[str] = "first-legal"

    def assign(self, graph: TileGraph) -> Assignment:
        spreading = Propagation(graph)
        return spreading.finish(
            lambda shape: spread(shape, graph.num_warps, tuple(reversed(range(len(shape)))), 1)
        )

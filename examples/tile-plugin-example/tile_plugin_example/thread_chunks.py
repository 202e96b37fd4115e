"""`thread-chunks`: every thread holds one contiguous chunk of a tile."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from tile_cute.linear import LinearLayout
from tile_tileas.layouts import Assignment, TileGraph
from tile_tileas.strategies.propagation import Propagation
from tile_tileas.strategies.spread import spread

LANES = 32


class ThreadChunks:
    """Each thread takes as much of the last axis as is its share; neighbours follow.

    Good for work along the last axis within a thread, bad for coalescing: an example.
    """

    name: ClassVar[str] = "thread-chunks"

    def assign(self, graph: TileGraph) -> Assignment:
        def chunks(shape: tuple[int, ...]) -> LinearLayout:
            share = max(1, prod(shape) // (LANES * graph.num_warps))
            last_first = list(reversed(range(len(shape))))
            return spread(shape, graph.num_warps, last_first, share)

        return Propagation(graph).finish(chunks)

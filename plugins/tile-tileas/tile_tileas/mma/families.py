"""Kinds of instructions that multiply, by name: what plans say, without the plans of any."""

from __future__ import annotations

TENSOR = "tcgen05"
WARPGROUP = "wgmma"
WARP = "mma.sync"
FMA = "fma"

#: In the order in which products prefer them.
FAMILIES: tuple[str, ...] = (TENSOR, WARPGROUP, WARP, FMA)

"""The instructions: each module registers decoders for a family."""

from __future__ import annotations

from importlib import import_module

_FAMILIES = (
    "integer",
    "carry",
    "bits",
    "logic",
    "floating",
    "half",
    "approximate",
    "compare",
    "convert",
    "convert_small",
    "move",
    "loadstore",
    "atomic",
    "warp",
    "barrier",
    "system",
    "mbarriers",
    "cpasync",
    "matrixmove",
    "mma",
    "wmma",
    "launchcontrol",
    "sparse",
    "wgmma",
    "tcgen05",
    "tcgen05_copy",
    "tcgen05_mma",
    "cluster",
    "proxy",
    "bulk",
    "tensor",
    "remote",
)


def load_all() -> None:
    """Import every family; the second call costs nothing."""
    for family in _FAMILIES:
        import_module(f"tile_sim.isa.{family}")

"""What tile-sim adds to tilec; hooks return lazy references."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.hookspecs import SPEC_VERSION, Lazy, hookimpl

TILE_SPEC_VERSION = SPEC_VERSION


@hookimpl
def tile_cli_commands() -> Iterable[Lazy]:
    """`tilec run`, `tilec check` and `tilec compare`."""
    return (
        Lazy("run", "tile_sim.cli:run", "run a kernel on the CPU, with no GPU"),
        Lazy("check", "tile_sim.cli:check", "run a kernel on the CPU and look for races"),
        Lazy("compare", "tile_sim.peer.cli:compare", "run the code of two compilers side by side"),
    )

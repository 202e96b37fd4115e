"""What tile-fuzz adds to tilec; hooks return lazy references."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.hookspecs import SPEC_VERSION, Lazy, hookimpl

TILE_SPEC_VERSION = SPEC_VERSION


@hookimpl
def tile_cli_commands() -> Iterable[Lazy]:
    """`tilec fuzz`, `tilec reduce` and `tilec bisect`."""
    return (
        Lazy("fuzz", "tile_fuzz.cli:fuzz", "compile and run random programs, compare the results"),
        Lazy("reduce", "tile_fuzz.cli:reduce", "make a failing program small"),
        Lazy("bisect", "tile_fuzz.cli:bisect", "name the pass after which results differ"),
    )

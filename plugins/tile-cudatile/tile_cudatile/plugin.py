"""What this package adds to the compiler."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.hookspecs import Lazy, LazyFrontend, hookimpl

TILE_SPEC_VERSION = 1


@hookimpl
def tile_dialects() -> Iterable[Lazy]:
    """The input language."""
    return (Lazy("cuda_tile", "tile_cudatile.dialect:load", "CUDA Tile IR 13.1 to 13.5"),)


@hookimpl
def tile_frontends() -> Iterable[LazyFrontend]:
    """TileIR bytecode."""
    return (
        LazyFrontend(
            "tileir-bytecode",
            "tile_cudatile.frontend:read",
            "TileIR bytecode, as cuTile Python writes it",
            magic=b"\x7fTileIR\x00",
        ),
    )


@hookimpl
def tile_cli_commands() -> Iterable[Lazy]:
    """`tilec dis` and `tilec as`."""
    return (
        Lazy("dis", "tile_cudatile.cli:dis", "print TileIR bytecode as assembly"),
        Lazy("as", "tile_cudatile.cli:as_", "write TileIR bytecode from assembly"),
    )

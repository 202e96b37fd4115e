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
            empty=Lazy("empty", "tile_cudatile.bytecode.empty:is_empty"),
        ),
        LazyFrontend(
            "tileir-text",
            "tile_cudatile.frontend:read_text",
            "CUDA Tile IR in its own syntax, as `tilec dis` prints it",
            words=("cuda_tile.module", "entry", "global"),
        ),
    )


@hookimpl
def tile_text_checks() -> Iterable[Lazy]:
    """The rules of the language, for programs in MLIR's syntax."""
    return (Lazy("cuda_tile", "tile_cudatile.frontend:check", "the rules of CUDA Tile IR"),)


@hookimpl
def tile_cli_commands() -> Iterable[Lazy]:
    """`tilec dis` and `tilec as`."""
    return (
        Lazy("dis", "tile_cudatile.cli:dis", "print TileIR bytecode as assembly"),
        Lazy("as", "tile_cudatile.cli:as_", "write TileIR bytecode from assembly"),
    )


@hookimpl
def tile_passes() -> Iterable[Lazy]:
    """What can be done on the input language."""
    home = "tile_cudatile.passes"
    return (
        Lazy("cuda-tile-canonicalize", f"{home}:Canonicalize", "folds and patterns"),
        Lazy("cuda-tile-simplify", f"{home}:Simplify", "simpler integer expressions"),
        Lazy("cuda-tile-fuse-fma", f"{home}:FuseFMA", "fuse products and sums"),
        Lazy("cuda-tile-loop-split", f"{home}:LoopSplit", "split loops where a condition turns"),
        Lazy("cuda-tile-loop-join", f"{home}:LoopJoin", "join loops that a condition split"),
        Lazy("cuda-tile-derive-counters", f"{home}:DeriveCounters", "numbers counted by an index"),
        Lazy("cuda-tile-skip-masks", f"{home}:SkipMasks", "masks where tiles need them"),
        Lazy(
            "cuda-tile-synthesize-debug-info-scopes",
            f"{home}:SynthesizeDebugInfoScopes",
            "scopes for programs with positions only",
        ),
    )

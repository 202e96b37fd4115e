"""What tile-tileaa brings: the nv_tileaa dialect and the way into it from cuda_tile."""

from collections.abc import Iterable

from tile_core.hookspecs import SPEC_VERSION, Lazy, hookimpl

TILE_SPEC_VERSION = SPEC_VERSION


@hookimpl
def tile_dialects() -> Iterable[Lazy]:
    return (Lazy("nv_tileaa", "tile_tileaa.dialect:load", "neutral tiles, explicit tokens"),)


@hookimpl
def tile_passes() -> Iterable[Lazy]:
    return (
        Lazy(
            "convert-cudatile-to-tileaa",
            "tile_tileaa.passes.convert_cudatile:ConvertCudaTileToTileAA",
            "cuda_tile to nv_tileaa, arith, math and scf",
        ),
        Lazy(
            "tileaa-canonicalize",
            "tile_tileaa.passes.canonicalize:Canonicalize",
            "local rewrites of nv_tileaa",
        ),
    )

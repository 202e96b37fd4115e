"""What tile-cute brings: cute, cute_nvgpu and cutlass, two passes, and `tilec layout`."""

from collections.abc import Iterable

from tile_core.hookspecs import SPEC_VERSION, Lazy, hookimpl

TILE_SPEC_VERSION = SPEC_VERSION


@hookimpl
def tile_dialects() -> Iterable[Lazy]:
    return (
        Lazy("cute", "tile_cute.dialect:load", "layouts and tensors over them"),
        Lazy("cute_nvgpu", "tile_cute.dialect:load_nvgpu", "NVIDIA's copy and MMA instructions"),
        Lazy("cutlass", "tile_cute.cutlass.dialect:load", "pipes, barriers, tile schedulers"),
    )


@hookimpl
def tile_passes() -> Iterable[Lazy]:
    return (
        Lazy(
            "cute-fold-layouts",
            "tile_cute.passes.fold_layouts:FoldLayouts",
            "static results of layout arithmetic",
        ),
        Lazy(
            "cute-desugar",
            "tile_cute.passes.desugar:Desugar",
            "short forms of tuples, layouts, views and prints, spelt out",
        ),
    )


@hookimpl
def tile_cli_commands() -> Iterable[Lazy]:
    return (
        Lazy(
            "layout", "tile_cute.cli.layout:layout", "draw a layout, an atom's fragments, a swizzle"
        ),
    )

"""What this package registers: names and where their objects live, nothing else is imported."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.hookspecs import Lazy, hookimpl

TILE_SPEC_VERSION = 1


@hookimpl
def tile_schedulers() -> Iterable[Lazy]:
    return [
        Lazy(
            "latest-start",
            "tile_plugin_example.latest_start:LatestStart",
            "every operation as late as its users allow",
        )
    ]


@hookimpl
def tile_layout_strategies() -> Iterable[Lazy]:
    return [
        Lazy(
            "thread-chunks",
            "tile_plugin_example.thread_chunks:ThreadChunks",
            "one contiguous chunk of a tile per thread",
        )
    ]


@hookimpl
def tile_passes() -> Iterable[Lazy]:
    return [
        Lazy(
            "example-limit-registers",
            "tile_plugin_example.limit_registers:LimitRegisters",
            "an upper bound for the registers of a thread",
        )
    ]


@hookimpl
def tile_pipelines() -> Iterable[Lazy]:
    return [Lazy("example", "tile_plugin_example:example.toml", "a level with all of this")]

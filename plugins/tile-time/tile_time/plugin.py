"""What tile-time adds to tilec; hooks return lazy references."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.hookspecs import SPEC_VERSION, Lazy, hookimpl

TILE_SPEC_VERSION = SPEC_VERSION


@hookimpl
def tile_cli_commands() -> Iterable[Lazy]:
    """`tilec time`, `tilec gpu-report`."""
    return (
        Lazy("time", "tile_time.cli:time", "how long a kernel takes on a GPU, modelled"),
        Lazy("gpu-report", "tile_time.kit.cli:gpu_report", "what a GPU kit found on a GPU"),
    )


@hookimpl
def tile_checks() -> Iterable[Lazy]:
    """What the model needs of NVIDIA's tools."""
    return (Lazy("time", "tile_time.tools:check", "nvdisasm, for times"),)


@hookimpl
def tile_gpu_checks() -> Iterable[Lazy]:
    """Launches on the GPU that is there."""
    return (Lazy("launches", "tile_time.device_checks:check", "marked kernels and tensor maps"),)


@hookimpl
def tile_views() -> Iterable[Lazy]:
    return (Lazy("time", "tile_time.views:predicted", "the predicted time of a launch"),)

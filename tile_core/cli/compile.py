"""`tilec compile`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click

from tile_core.cli.arguments import pass_settings_of, pipeline_options, settings_of
from tile_core.cli.observe import observe_options, observers
from tile_core.cli.output import STDIO, Output, read_bytes

#: File name endings by kind of stage.
_SUFFIXES = {"cubin": ".cubin", "ptx": ".ptx", "llvm": ".ll"}


@click.command("compile")
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", metavar="FILE", help="Output file; '-' is standard output.")
@pipeline_options
@click.option(
    "--emit",
    default="cubin",
    show_default=True,
    metavar="tileir|mlir|mlir:PASS|llvm|ptx|cubin",
    help="What to make.",
)
@click.option("--stop-after", metavar="STAGE", help="Segment, pass or emitter to end with.")
@click.option("--start-at", metavar="STAGE", help="Segment, pass or emitter to begin with.")
@click.option("--lineinfo", is_flag=True, help="Line numbers in the code.")
@click.option("-g", "--device-debug", is_flag=True, help="Full debug information; needs -O0.")
@click.option("--ptxas", type=click.Path(path_type=Path), metavar="FILE", help="The ptxas to use.")
@click.option(
    "--libdevice",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The libdevice (bitcode of NVIDIA's math library) to use.",
)
@click.option("--no-cache", is_flag=True, help="Neither look into the artifact cache nor fill it.")
@observe_options
@click.pass_obj
def compile_(
    app: Any,
    source: str,
    output: str | None,
    gpu_name: str,
    opt_level: int | None,
    pipeline: str | None,
    settings: tuple[str, ...],
    pass_settings: tuple[str, ...],
    scheduler: str | None,
    layout_strategy: str | None,
    emit: str,
    stop_after: str | None,
    start_at: str | None,
    lineinfo: bool,
    device_debug: bool,
    ptxas: Path | None,
    libdevice: Path | None,
    no_cache: bool,
    **observing: Any,
) -> None:
    """Compile INPUT (TileIR bytecode or textual MLIR) for a GPU."""
    from tile_core.cache import Cache
    from tile_core.cached import compile_cached

    data = read_bytes(source)
    watch = observers(observing)
    options: dict[str, Any] = settings_of(settings, scheduler, layout_strategy)
    flags = {"lineinfo": lineinfo, "device-debug": device_debug}
    options |= {name: True for name, given in flags.items() if given}

    tools = {"ptxas": ptxas, "libdevice": libdevice}

    def work() -> Any:
        return compile_cached(
            data,
            gpu_name,
            None if no_cache or watch.passes_are_watched else Cache.of_environment(),
            opt_level=opt_level,
            pipeline=pipeline,
            options=options,
            pass_options=pass_settings_of(pass_settings),
            emit=emit,
            stop_after=stop_after,
            start_at=start_at,
            instrumentations=watch.instrumentations,
            registry=app.registry,
            verify=watch.verify,
            toolchain={name: path for name, path in tools.items() if path is not None},
            name="<stdin>" if source == STDIO else source,
            keep_stages=False,
            on_stage=watch.on_stage,
        )

    path = _default_output(source, emit, stop_after) if output is None else output
    _compile_to(path, work, watch)


def _compile_to(path: str, work: Callable[[], Any], watch: Any) -> None:
    with Output(path) as file:
        artifact = work()
        data = artifact.output
        watch.report(artifact)
        file.commit(data)


def _default_output(source: str, emit: str, stop_after: str | None) -> str:
    """Cubins go beside where one stands; text goes to standard output."""
    if emit != "cubin" or stop_after not in (None, "cubin") or source == STDIO:
        return STDIO
    return Path(source).with_suffix(_SUFFIXES["cubin"]).name

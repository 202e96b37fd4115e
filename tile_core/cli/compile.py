"""`tilec compile`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click

from tile_core.cli.arguments import pass_settings_of, pipeline_options, settings_of
from tile_core.cli.crash import explained
from tile_core.cli.observe import observe_options, observers
from tile_core.cli.output import STDIO, Output, read_bytes
from tile_core.cli.progress import Progress
from tile_core.diagnostics import ExitCode, InputError, TileError, UsageError

#: File name endings by kind of stage.
_SUFFIXES = {"cubin": ".cubin", "ptx": ".ptx", "llvm": ".ll", "sass": ".sass", "obj": ".o"}
#: Of them, those that are not for the screen.
_BINARY = ("cubin", "obj")


@click.command("compile")
@click.argument("sources", metavar="INPUT...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="FILE|FOLDER",
    help="Output file, '-' for standard output; of several outputs, the folder.",
)
@pipeline_options
@click.option(
    "--emit",
    default="cubin",
    show_default=True,
    metavar="tileir|mlir|mlir:PASS|llvm|ptx|cubin|sass|obj",
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
@click.option("--ptxas-options", metavar="TEXT", help="Further arguments for ptxas.")
@click.option("-j", "--jobs", type=click.IntRange(1), help="Processes [default: one a core].")
@click.option("--json", "as_json", is_flag=True, help="Print what became of each input as JSON.")
@click.option("--no-cache", is_flag=True, help="Neither look into the artifact cache nor fill it.")
@observe_options
@click.pass_obj
def compile_(
    app: Any,
    sources: tuple[str, ...],
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
    ptxas_options: str | None,
    jobs: int | None,
    as_json: bool,
    no_cache: bool,
    **observing: Any,
) -> int:
    """Compile each INPUT (TileIR bytecode or textual MLIR) for a GPU.

    Several inputs, or several GPUs (--gpu-name sm_80,sm_90), are compiled in parallel; those that
    fail do not keep the others from being compiled. So are several gpu.modules of one input, each
    for the target that it carries.
    """
    watch = observers(observing)
    options: dict[str, Any] = settings_of(settings, scheduler, layout_strategy)
    flags = {"lineinfo": lineinfo, "device-debug": device_debug}
    options |= {name: True for name, given in flags.items() if given}

    tools = {"ptxas": ptxas, "libdevice": libdevice}
    arguments: dict[str, Any] = {
        "opt_level": opt_level,
        "pipeline": pipeline,
        "options": options,
        "pass_options": _pass_options(pass_settings, ptxas_options),
        "emit": emit,
        "stop_after": stop_after,
        "start_at": start_at,
        "verify": watch.verify,
        "toolchain": {name: path for name, path in tools.items() if path is not None},
    }
    targets = [name for name in gpu_name.split(",") if name] or [gpu_name]
    data = read_bytes(sources[0]) if len(sources) == len(targets) == 1 else b""
    parts = _parts(data, targets[0], app)
    if len(parts) > 1:
        if watch.passes_are_watched or watch.remarks:
            raise UsageError(
                "passes of several gpu.modules cannot be watched at once",
                hint="compile a program with one of them",
            )
        from tile_core.cli.batch import compile_parts

        return compile_parts(
            sources[0], parts, arguments, folder=output, suffix=_suffix(emit, stop_after),
            workers=jobs, as_json=as_json, use_cache=not no_cache, disabled=app.disabled,
        )  # fmt: skip
    targets = [parts[0][1]] if parts else targets
    several = max(len(sources), len(targets)) > 1
    if several or jobs is not None or as_json:
        if watch.passes_are_watched or watch.remarks:
            raise UsageError(
                "passes of several compilations cannot be watched at once",
                hint="compile one input for one GPU",
            )
        from tile_core.cli.batch import compile_many

        return compile_many(
            sources, targets, arguments,
            folder=output, suffix=_suffix(emit, stop_after), workers=jobs, as_json=as_json,
            use_cache=not no_cache, disabled=app.disabled,
        )  # fmt: skip
    use_cache = not (no_cache or watch.passes_are_watched)
    _compile_one(sources[0], data, targets[0], output, arguments, watch, app, use_cache)
    return ExitCode.OK


def _parts(data: bytes, target: str, app: Any) -> list[tuple[Any, str]]:
    """The gpu.modules of a program in MLIR's text, each with its target; empty for other input."""
    from tile_core.parts import chosen, may_have_parts, parts_of

    if not may_have_parts(data):
        return []
    context = click.get_current_context()
    source = context.get_parameter_source("gpu_name") if context else None
    given = source is not None and source.name != "DEFAULT"
    try:
        found = parts_of(data, app.registry)
    except InputError:
        return []  # said again, and in full, where the program is compiled
    return [(part, chosen(part, target, given=given)) for part in found]


def _compile_one(
    source: str,
    data: bytes,
    target: str,
    output: str | None,
    arguments: dict[str, Any],
    watch: Any,
    app: Any,
    use_cache: bool,
) -> None:
    from tile_core.cache import Cache
    from tile_core.cached import compile_cached

    def work(more: tuple[Any, ...] = (), on_stage: Any = watch.on_stage) -> Any:
        return compile_cached(
            data,
            target,
            Cache.of_environment() if use_cache else None,
            **arguments,
            instrumentations=(*watch.instrumentations, *more),
            registry=app.registry,
            name="<stdin>" if source == STDIO else source,
            keep_stages=False,
            on_stage=on_stage,
        )

    def explained_work() -> Any:
        try:
            return work()
        except TileError as error:
            cause = error.__cause__
            raise explained(error, lambda more, kept: work((more,), kept), data) from cause

    path = output
    if path is None:
        path = _default_output(source, arguments["emit"], arguments["stop_after"])
    _compile_to(path, explained_work, watch)


def _pass_options(settings: tuple[str, ...], ptxas_options: str | None) -> dict[str, Any]:
    """What `-D` says, and `--ptxas-options`, which is an option of the emitter of cubins."""
    found = pass_settings_of(settings)
    if ptxas_options is not None:
        found["cubin.ptxas-options"] = ptxas_options
    return found


def _suffix(emit: str, stop_after: str | None) -> str:
    return _SUFFIXES.get(stop_after or emit, ".mlir")


def _is_mlir(stage: str) -> bool:
    return stage in ("tileir", "mlir") or stage.startswith("mlir:")


def _compile_to(path: str, work: Callable[[], Any], watch: Any) -> None:
    with Output(path) as file:
        with Progress("compiling"):
            artifact = work()
        data = artifact.output
        if watch.pretty and isinstance(data, str) and _is_mlir(artifact.emit):
            from tile_core.pretty import pretty

            data = pretty(data)
        watch.report(artifact)
        file.commit(data)


def _default_output(source: str, emit: str, stop_after: str | None) -> str:
    """Cubins and objects go beside where one stands; text goes to standard output."""
    if emit not in _BINARY or stop_after not in (None, emit) or source == STDIO:
        return STDIO
    return Path(source).with_suffix(_SUFFIXES[emit]).name

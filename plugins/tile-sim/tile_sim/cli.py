"""`tilec run` and `tilec check`: a kernel on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from tile_core.cli.arguments import pass_settings_of, pipeline_options, settings_of
from tile_core.cli.output import read_bytes
from tile_core.diagnostics import ExitCode, SourceLocation, TileError, UsageError

if TYPE_CHECKING:
    import numpy as np

    from tile_sim.machine.launch import LaunchReport
    from tile_sim.module import Module

F = TypeVar("F", bound=Callable[..., Any])
#: Kinds of `SimError` that are the caller's doing, not the kernel's.
_USAGE = ("argument", "launch", "tensormap")
_SHOWN = 8


def _launch_options(command: F) -> F:
    options = (
        click.argument("source", metavar="INPUT"),
        click.option("--entry", metavar="NAME", help="The kernel, if there are several."),
        click.option("--grid", required=True, metavar="X,Y,Z", help="CTAs of the launch."),
        click.option("--block", metavar="X,Y,Z", help="Threads of a CTA, if not in the kernel."),
        click.option("--cluster", metavar="X,Y,Z", help="CTAs of a cluster."),
        click.option("--shared", default=0, metavar="BYTES", help="Dynamic shared memory."),
        click.option("--arg", "args", multiple=True, metavar="SPEC",
                     help="f32=1.5, f32[128,64]=random or @file.npy, in order."),
        click.option("--schedule", type=click.Choice(["late", "early", "random"]), default="late",
                     show_default=True, help="When asynchronous work completes."),
        click.option("--seed", default=0, show_default=True, help="For random data and schedules."),
        pipeline_options,
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command("run")
@_launch_options
@click.option("--expect", multiple=True, metavar="N=FILE.npy", help="What argument N has to be.")
@click.option("--rtol", default=1e-3, show_default=True, help="Relative tolerance of --expect.")
@click.option("--save", multiple=True, metavar="N=FILE.npy", help="Write argument N to a file.")
@click.option("--stats", is_flag=True, help="Print how many instructions were executed.")
@click.pass_obj
def run(
    app: Any, expect: tuple[str, ...], rtol: float, save: tuple[str, ...], stats: bool, **given: Any
) -> int:
    """Run a kernel (PTX, TileIR bytecode or MLIR) in the simulator and print its arrays."""
    values, report = _launch(app, given, check=False)
    click.echo(report.text, nl=False)
    _show(values)
    _save(values, save)
    if stats:
        click.echo(f"warp instructions: {report.warp_instructions}")
        click.echo(f"thread instructions: {report.thread_instructions}")
    return _compare(values, expect, rtol)


@click.command("check")
@_launch_options
@click.pass_obj
def check(app: Any, **given: Any) -> int:
    """Run a kernel in the simulator and report races, missing fences and wrong accesses."""
    _, report = _launch(app, given, check=True)
    for finding in report.findings:
        click.echo(str(finding))
    count = len(report.findings)
    click.echo(f"{count} finding{'' if count == 1 else 's'}" if count else "no findings")
    return ExitCode.COMPILE if count else ExitCode.OK


def _launch(
    app: Any, given: dict[str, Any], check: bool
) -> tuple[list[np.ndarray | np.generic], LaunchReport]:
    """Compile what is not PTX, run the kernel; the arguments and the report."""
    import numpy as np

    from tile_sim.arguments import parse_argument, parse_extent
    from tile_sim.errors import SimError

    ptx, name = _ptx(app, given)
    extent = lambda text: parse_extent(text) if text else None  # noqa: E731
    try:
        module = _module(ptx)
        rng = np.random.default_rng(given["seed"])
        values = [parse_argument(text, rng) for text in given["args"]]
        report = module.launch(
            _entry(module, given["entry"]), parse_extent(given["grid"]), extent(given["block"]),
            values, shared_bytes=given["shared"], cluster=extent(given["cluster"]),
            schedule=given["schedule"], seed=given["seed"], check=check,
        )  # fmt: skip
    except SimError as error:
        raise _as_tile_error(error, name) from None
    return values, report


def _module(ptx: str) -> Module:
    from tile_sim.module import Module

    return Module(ptx)


def _ptx(app: Any, given: dict[str, Any]) -> tuple[str, str]:
    """The PTX text of the input, and what to call it in messages."""
    data = read_bytes(given["source"])
    text = data[:4096].decode("utf-8", "replace")
    if any(line.lstrip().startswith(".version") for line in text.splitlines()):
        return data.decode("utf-8", "replace"), given["source"]
    from tile_core.api import compile as compile_program

    artifact = compile_program(
        data,
        given["gpu_name"],
        opt_level=given["opt_level"],
        pipeline=given["pipeline"],
        options=settings_of(given["settings"], given["scheduler"], given["layout_strategy"]),
        pass_options=pass_settings_of(given["pass_settings"]),
        emit="ptx",
        registry=app.registry,
        name=given["source"],
        keep_stages=False,
    )
    output = artifact.output
    return output.decode() if isinstance(output, bytes) else output, f"{given['source']} (ptx)"


def _entry(module: Module, name: str | None) -> str:
    if name is not None:
        return name
    if len(module.entries) != 1:
        known = ", ".join(module.entries) or "none"
        raise UsageError("--entry has to say which kernel to run", hint=f"there are: {known}")
    return module.entries[0]


def _as_tile_error(error: Any, name: str) -> TileError:
    head, *notes = f"{error.kind}: {error.message}".split("\n")
    if error.kind in _USAGE and error.where is None:
        return UsageError(head)
    where = None
    if error.where is not None:
        where = SourceLocation(name, error.where.line, error.where.column)
        if error.where.source:
            notes.append(f"source: {error.where.source}")
    return TileError(head, where=where, notes=tuple(n.strip() for n in notes))


# --- results ------------------------------------------------------------------------------------


def _show(values: list[Any]) -> None:
    import numpy as np

    for i, value in enumerate(values):
        if isinstance(value, np.ndarray):
            flat = value.reshape(-1)
            head = ", ".join(str(v) for v in flat[:_SHOWN])
            more = ", ..." if flat.size > _SHOWN else ""
            shape = ",".join(str(n) for n in value.shape)
            click.echo(f"argument {i}: {value.dtype}[{shape}] = [{head}{more}]")


def _numbered(text: str, values: list[Any], flag: str) -> tuple[int, str]:
    number, sign, path = text.partition("=")
    if not sign or not number.isdigit() or int(number) >= len(values):
        raise UsageError(f"{flag} '{text}' is not N=FILE.npy with N an argument")
    return int(number), path


def _save(values: list[Any], wanted: tuple[str, ...]) -> None:
    import numpy as np

    for text in wanted:
        number, path = _numbered(text, values, "--save")
        try:
            np.save(path, values[number])
        except OSError as error:
            raise UsageError(f"cannot write '{path}': {error.strerror}") from None


def _compare(values: list[Any], expected: tuple[str, ...], rtol: float) -> int:
    """Exit code: whether every `--expect` holds."""
    import numpy as np

    from tile_sim.arguments import parse_argument
    from tile_sim.errors import SimError

    wrong = 0
    for text in expected:
        number, path = _numbered(text, values, "--expect")
        try:
            wanted = np.asarray(parse_argument(f"@{path}", np.random.default_rng(0)))
        except SimError as error:
            raise _as_tile_error(error, path) from None
        got = np.asarray(values[number])
        if got.shape != wanted.shape:
            click.echo(f"argument {number}: shape {got.shape}, expected {wanted.shape}")
            wrong += 1
            continue
        a, b = got.astype(np.float64), wanted.astype(np.float64)
        close = np.isclose(a, b, rtol=rtol, atol=rtol, equal_nan=True)
        bad = int((~close).sum())
        click.echo(f"argument {number}: {'as expected' if not bad else f'{bad} elements differ'}")
        wrong += bool(bad)
    return ExitCode.COMPILE if wrong else ExitCode.OK

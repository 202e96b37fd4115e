"""`tilec time`: how long a kernel takes on a GPU, by the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from tile_core.cli.arguments import assignments, completing, pass_settings_of, settings_of
from tile_core.cli.output import read_bytes
from tile_core.cli.progress import Progress
from tile_core.diagnostics import ExitCode, UsageError

if TYPE_CHECKING:
    from tile_core.machines import Machine
    from tile_time.api import Program
    from tile_time.result import Result
    from tile_time.tune import Subject

_TRACE_CLK = 60_000.0


@click.command("time")
@click.argument("source", metavar="INPUT")
@click.argument("script_args", nargs=-1, metavar="[-- SCRIPT ARGS]")
@click.option(
    "--gpu",
    default="h100",
    show_default=True,
    shell_complete=completing("machine"),
    help="h100, b200, a100, ...",
)
@click.option("--cutile", is_flag=True, help="INPUT is a cuTile program in Python.")
@click.option("--entry", metavar="NAME", help="The kernel, if there are several.")
@click.option("--grid", metavar="X,Y,Z", help="CTAs of the launch.")
@click.option("--block", metavar="X,Y,Z", help="Threads of a CTA, if not in the kernel.")
@click.option("--cluster", metavar="X,Y,Z", help="CTAs of a cluster.")
@click.option("--shared", default=0, metavar="BYTES", help="Dynamic shared memory.")
@click.option(
    "--arg",
    "args",
    multiple=True,
    metavar="SPEC",
    help="f32=1.5, f32[128,64]=random or @file.npy, in order.",
)
@click.option(
    "--with-shape", is_flag=True, help="Pass arrays as cuTile does: address, shape, strides."
)
@click.option("--warm-l2", is_flag=True, help="Inputs that fit are in L2 at the start.")
@click.option(
    "--machine",
    "numbers",
    multiple=True,
    metavar="NUMBER=VALUE",
    help="Change a number of the machine file: clock.boost=1755.",
)
@click.option(
    "--with",
    "peers",
    multiple=True,
    type=click.Choice(["tileiras"]),
    help="Also the code that NVIDIA's compiler makes of the same bytecode.",
)
@click.option(
    "--tune", is_flag=True, help="Try a few pipeline options by the model, and take the fastest."
)
@click.option(
    "--tuned", metavar="FILE.toml", help="Tune, and write the options as a pipeline to a file."
)
@click.option("--json", "json_file", metavar="FILE", help="Write the result to a file (- stdout).")
@click.option("--chrome-trace", metavar="FILE", help="Write what one SM did, for chrome://tracing.")
@click.option("-O", "--opt-level", type=int, metavar="LEVEL", help="Optimization level, 0 to 3.")
@click.option(
    "--pipeline",
    metavar="NAME|FILE.toml",
    shell_complete=completing("pipeline"),
    help="A pipeline instead of the level's.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="OPTION=VALUE", help="Set a pipeline option."
)
@click.option(
    "-D",
    "pass_settings",
    multiple=True,
    metavar="PASS.OPTION=VALUE",
    help="Set an option of a pass or emitter.",
)
@click.pass_obj
def time(app: Any, **given: Any) -> int:  # fmt: skip
    """Model how long a kernel (TileIR bytecode, MLIR or PTX) takes on a GPU, and what binds it.

    One cluster of CTAs is run in the simulator; ptxas' code for it is then played on a model of
    one SM. No GPU is used, and the time of a GPU is what the numbers of its machine file give.
    """
    from tile_sim.cli import is_script

    machine = _machine(app, given["gpu"], given["numbers"])
    work = _cutile if is_script(given) else _kernels
    with Progress("running and timing"):
        results = work(app, machine, given)
    for name, result in results:
        click.echo(f"{name}: {result.text}" if len(results) > 1 else result.text, nl=False)
    _write(given["json_file"], {name: result.json for name, result in results})
    if given["chrome_trace"]:
        from tile_time.chrome import chrome_trace

        _write(given["chrome_trace"], chrome_trace(results))
    return ExitCode.OK


def timed(app: Any, launch: Mapping[str, Any]) -> list[tuple[str, Result]]:
    """The kernels of an input and their times; `launch` holds options of the command, or some."""
    rest = {
        "block": None, "cluster": None, "shared": 0, "script_args": (), "peers": (),
        "warm_l2": False, "numbers": (), "chrome_trace": None, "tune": False, "tuned": None,
    }  # fmt: skip
    given = {**rest, **launch}
    return _kernels(app, _machine(app, given["gpu"], ()), given)


def _machine(app: Any, name: str, numbers: tuple[str, ...]) -> Machine:
    from tile_core.diagnostics import nearest
    from tile_core.machines import find_machine, machines_of

    machine = find_machine(name, machines_of(app.registry))
    for path, text in assignments(numbers, "--machine").items():
        key = path.replace("-", "_")
        try:
            value = float(text)
        except ValueError:
            raise UsageError(f"--machine {path}={text}: {text!r} is not a number") from None
        if key not in machine.sources or not 0 < value < 1e18:
            close = nearest(key, list(machine.sources))
            hint = f"did you mean '{close}'?" if close else None
            what = "has to be positive" if key in machine.sources else "is no number of a machine"
            raise UsageError(f"--machine: '{path}' {what}", hint=hint)
        machine = machine.with_number(key, value)
    return machine


def _inputs(app: Any, machine: Machine, given: dict[str, Any]) -> list[Program]:
    """The PTX of the input, and of the peers that are asked for."""
    from tile_time.api import of_cubin, program_of

    data = read_bytes(given["source"])
    found = [program_of(data, machine, app.registry, given["source"], **_chosen(given))]
    if found[0].name != "tilec":  # nothing was compiled
        for flag, asked in (("--with tileiras", given["peers"]), ("--tune", given["tune"])):
            if asked:
                raise UsageError(f"{flag} needs TileIR bytecode, the input is PTX or a cubin")
    if "tileiras" in given["peers"]:
        from tile_sim.peer import tileiras

        found.append(of_cubin("tileiras", tileiras.find().compile(data, machine.target).data))
    return found


def _chosen(given: dict[str, Any]) -> dict[str, Any]:
    """What the command line says of the compiler."""
    return {
        "opt_level": given["opt_level"], "pipeline": given["pipeline"],
        "options": settings_of(given["settings"], None, None),
        "pass_options": pass_settings_of(given["pass_settings"]),
    }  # fmt: skip


def _kernels(app: Any, machine: Machine, given: dict[str, Any]) -> list[tuple[str, Result]]:
    from tile_sim.arguments import parse_arguments, parse_extent, with_shape
    from tile_sim.cli import as_tile_error
    from tile_sim.errors import SimError

    from tile_time.model import load_kernel, time_kernel

    if given["grid"] is None:
        raise UsageError("--grid X,Y,Z is needed: the number of CTAs")
    if given["script_args"]:
        raise UsageError(f"'{given['script_args'][0]}': arguments of a kernel are given by --arg")
    found: list[tuple[str, Result]] = []
    try:
        if given["tune"] or given["tuned"]:
            given = _tuned(app, machine, given)
        inputs = _inputs(app, machine, given)
    except SimError as error:
        raise as_tile_error(error, given["source"]) from None
    for one in inputs:
        try:
            values = parse_arguments(given["args"])
            flat = with_shape(values) if given["with_shape"] else values
            block, cluster = (
                parse_extent(given[key]) if given[key] else None for key in ("block", "cluster")
            )
            kernel = load_kernel(one.ptx, machine, given["entry"], one.hidden)
            result = time_kernel(
                kernel, parse_extent(given["grid"]), block, flat, shared_bytes=given["shared"],
                cluster=cluster, warm=given["warm_l2"],
                trace_clk=_traced(given),
            )  # fmt: skip
        except SimError as error:
            raise as_tile_error(error, one.name) from None
        found.append((one.name, result))
    return found


def _tuned(app: Any, machine: Machine, given: dict[str, Any]) -> dict[str, Any]:
    """The options of the command with those that the model finds best for a kernel."""
    from tile_sim.arguments import parse_arguments, parse_extent, with_shape

    from tile_time.tuned import Kernel

    if given["block"] or given["cluster"] or given["shared"]:
        raise UsageError("--tune takes kernels that say themselves how many threads they have")
    data = read_bytes(given["source"])
    _inputs(app, machine, {**given, "tune": True})  # which says what cannot be tuned

    def arguments() -> list[Any]:
        values = parse_arguments(given["args"])
        return with_shape(values) if given["with_shape"] else values

    kernel = Kernel(
        data, machine, parse_extent(given["grid"]), arguments, given["entry"], app.registry,
        given["warm_l2"], _chosen(given),
    )  # fmt: skip
    return _searched(kernel, machine, given)


def _tuned_script(machine: Machine, given: dict[str, Any]) -> dict[str, Any]:
    """The same for all launches of a cuTile program, which have them in common."""
    from tile_time.tuned import Script

    command = ["time", "--cutile", f"--gpu={given['gpu']}"]
    command += ["--warm-l2"] if given["warm_l2"] else []
    command += [f"--machine={number}" for number in given["numbers"]]
    command += [] if given["opt_level"] is None else [f"--opt-level={given['opt_level']}"]
    command += [] if given["pipeline"] is None else [f"--pipeline={given['pipeline']}"]
    command += [f"--set={one}" for one in given["settings"]]
    command += [f"-D{one}" for one in given["pass_settings"]]
    return _searched(
        Script(command, [given["source"], "--", *given["script_args"]]), machine, given
    )


def _searched(subject: Subject, machine: Machine, given: dict[str, Any]) -> dict[str, Any]:
    """Search, tell what was found, and write it where that is asked for."""
    from tile_core.cache import Cache
    from tile_time.tune import Search, pipeline_file

    tuning = Search(subject, settings_of(given["settings"], None, None)).run(Cache.of_environment())
    click.echo(tuning.text, nl=False)
    if given["tuned"]:
        level = 3 if given["opt_level"] is None else given["opt_level"]
        base = given["pipeline"] or f"O{level}"
        _write_text(given["tuned"], pipeline_file(tuning, base, machine))
    more = tuple(f"{name}={value}" for name, value in tuning.best.options.items())
    return {**given, "settings": (*given["settings"], *more)}


def _cutile(app: Any, machine: Machine, given: dict[str, Any]) -> list[tuple[str, Result]]:
    from tile_time.programs import time_program

    one = ("entry", "grid", "block", "cluster", "shared", "args", "with_shape")
    for name in one:
        if given[name]:
            flag = name.rstrip("s").replace("_", "-")
            raise UsageError(f"--{flag} is for one kernel; with --cutile the program launches")
    if given["peers"]:
        raise UsageError(
            "--with tileiras is for one kernel",
            hint="for a program: TILE_SIM_COMPILER=tileiras tilec time --cutile ...",
        )
    if given["tune"] or given["tuned"]:
        given = _tuned_script(machine, given)
    found, ended = time_program(machine, given, _traced(given))
    # What such a program says of its own results would be taken for those of the kernels.
    unchanged = "launches are timed and not run: the program's arrays are as it filled them"
    click.echo(f"note: {ended or unchanged}", err=True)
    return found


def _traced(given: dict[str, Any]) -> float:
    """Cycles of which a trace is wanted."""
    return _TRACE_CLK if given["chrome_trace"] else 0.0


def _write_text(path: str, text: str) -> None:
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None


def _write(path: str | None, what: Any) -> None:
    if path is None:
        return
    text = json.dumps(what, indent=1) + "\n"
    if path == "-":
        click.echo(text, nl=False)
        return
    _write_text(path, text)

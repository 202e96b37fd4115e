"""`tilec run` and `tilec check`: a kernel on the CPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from tile_core.cli.arguments import pass_settings_of, pipeline_options
from tile_core.cli.observe import observe_options
from tile_core.cli.output import read_bytes
from tile_core.cli.progress import Progress
from tile_core.diagnostics import ExitCode, SourceLocation, TileError, UsageError

if TYPE_CHECKING:
    from tile_sim.machine.launch import LaunchReport
    from tile_sim.machine.monitor import Finding
    from tile_sim.module import Module

F = TypeVar("F", bound=Callable[..., Any])
#: Kinds of `SimError` that are the caller's doing, not the kernel's.
_USAGE = ("argument", "launch", "tensormap")
_SHOWN = 8


def _launch_options(command: F) -> F:
    options = (
        click.argument("source", metavar="INPUT"),
        click.argument("script_args", nargs=-1, metavar="[-- SCRIPT ARGS]"),
        click.option("--cutile", is_flag=True, help="INPUT is a cuTile program in Python."),
        click.option("--entry", metavar="NAME", help="The kernel, if there are several."),
        click.option("--grid", metavar="X,Y,Z", help="CTAs of the launch."),
        click.option("--block", metavar="X,Y,Z", help="Threads of a CTA, if not in the kernel."),
        click.option("--cluster", metavar="X,Y,Z", help="CTAs of a cluster."),
        click.option("--shared", default=0, metavar="BYTES", help="Dynamic shared memory."),
        click.option("--arg", "args", multiple=True, metavar="SPEC",
                     help="f32=1.5, f32[128,64]=random or @file.npy, in order."),
        click.option("--with-shape", is_flag=True, help="Pass arrays as cuTile does: address, "
                     "shape, strides."),
        click.option("--schedule", type=click.Choice(["late", "early", "random"]), default="late",
                     show_default=True, help="When asynchronous work completes."),
        click.option("--seed", default=0, show_default=True, help="For random data and schedules."),
        click.option("--max-steps", type=click.IntRange(min=1), metavar="N",
                     help="End a launch that executes more than N basic blocks, as one does that "
                     "waits for what nobody writes, and say what waits where; so does Ctrl-C."),
        click.option("--emit", metavar="tileir|mlir|mlir:SEGMENT|llvm|ptx",
                     help="Print that stage of each kernel that is compiled, to standard error."),
        pipeline_options,
        observe_options,
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command("run")
@_launch_options
@click.option("--expect", multiple=True, metavar="N=FILE.npy", help="What argument N has to be.")
@click.option("--reference", is_flag=True, help="Compare with the reference evaluator (bytecode).")
@click.option("--rtol", default=1e-3, show_default=True, help="Tolerance of comparisons.")
@click.option("--save", multiple=True, metavar="N=FILE.npy", help="Write argument N to a file.")
@click.option("--stats", is_flag=True, help="Print what was executed: instructions, sectors, ...")
@click.option("--stats-json", metavar="FILE", help="Write the same to a file.")
@click.option("--json", "as_json", is_flag=True, help="Print what came out as JSON.")
@click.pass_obj
def run(
    app: Any,
    as_json: bool,
    expect: tuple[str, ...],
    reference: bool,
    rtol: float,
    save: tuple[str, ...],
    stats: bool,
    stats_json: str | None,
    **given: Any,
) -> int:
    """Run a kernel (PTX, TileIR bytecode or MLIR) in the simulator and print its arrays.

    With --cutile, or for a file NAME.py, run a cuTile program: its launches take CPU arrays.
    """
    if is_script(given):
        _only_kernels(expect=expect, reference=reference, save=save)
        return _run_script(given, stats, stats_json)
    counted = stats or stats_json is not None
    with Progress("running"):
        done = _launch(app, given, check=False, stats=counted, reference=reference)
    if as_json:
        return _print_json(done, expect, rtol)
    _show_launch(done)
    click.echo(done.report.text, nl=False)
    _show(done.values)
    _save(done.values, save)
    _show_stats([done.report], stats, stats_json)
    return _compare(done, expect, rtol)


@click.command("check")
@_launch_options
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_obj
def check(app: Any, as_json: bool, **given: Any) -> int:
    """Run a kernel in the simulator and report races, missing fences and wrong accesses."""
    with Progress("checking"):
        if is_script(given):
            reports = [launch.report for launch in _script(given, check=True)]
        else:
            done = _launch(app, given, check=True)
            reports = [done.report]
            if not as_json:
                _show_launch(done)
    findings = [finding for report in reports for finding in report.findings]
    if as_json:
        records = [_finding_record(finding) for finding in findings]
        click.echo(json.dumps(records, indent=1))
    else:
        _show_findings(findings)
    return ExitCode.COMPILE if findings else ExitCode.OK


def _show_findings(findings: list[Finding]) -> None:
    from tile_sim.findings import by_line

    lines = by_line(findings)
    for line in lines:
        click.echo(str(line))
    instructions = sum(line.instructions for line in lines)
    text = f"{len(lines)} finding{'' if len(lines) == 1 else 's'}" if lines else "no findings"
    if instructions > len(lines):
        text += f", of {instructions} instructions (--json lists them)"
    click.echo(text)


def _finding_record(finding: Finding) -> dict[str, Any]:
    other = None if finding.other is None else str(finding.other)
    return {"kind": finding.kind, "message": finding.message, "where": str(finding.where),
            "other": other, "count": finding.count}  # fmt: skip


# --- cuTile programs ----------------------------------------------------------------------------


def is_script(given: dict[str, Any]) -> bool:
    """Whether the input is a cuTile program: by the option, or by its name."""
    return given["cutile"] or given["source"].endswith(".py")


def _only_kernels(**options: Any) -> None:
    for name, value in options.items():
        if value:
            raise UsageError(f"--{name} compares one kernel and does not go with --cutile")


def _script(given: dict[str, Any], **launch: Any) -> list[Any]:
    from tile_sim.errors import SimError
    from tile_sim.script import run_script

    for name in ("entry", "grid", "block", "cluster", "shared", "args", "with_shape"):
        if given[name]:
            flag = name.rstrip("s").replace("_", "-")
            raise UsageError(f"--{flag} is for one kernel; with --cutile the program launches")
    try:
        return run_script(given, given["script_args"], **launch)
    except SimError as error:
        raise as_tile_error(error, f"{given['source']} (ptx)") from None


def _run_script(given: dict[str, Any], stats: bool, stats_json: str | None) -> int:
    from tile_sim.script import show_launches

    launches = _script(given, stats=stats or stats_json is not None)
    show_launches(launches, given["gpu_name"])
    _show_stats([launch.report for launch in launches], stats, stats_json)
    return ExitCode.OK


# --- one kernel ---------------------------------------------------------------------------------


@dataclass
class _Done:
    """A finished launch; `expected` are the values by the reference evaluator, if asked for."""

    values: list[Any]
    report: LaunchReport
    expected: list[Any] | None = None
    name: str = ""


def _launch(
    app: Any, given: dict[str, Any], check: bool, stats: bool = False, reference: bool = False
) -> _Done:
    """Compile what is not PTX, run the kernel."""
    from tile_sim.arguments import names_of, parse_arguments, parse_extent, with_shape
    from tile_sim.errors import SimError

    if given["grid"] is None:
        raise UsageError("--grid X,Y,Z is needed: the number of CTAs")
    if given["script_args"]:
        raise UsageError(f"'{given['script_args'][0]}': arguments of a kernel are given by --arg")
    source = _ptx(app, given)
    name = source.name
    extent = lambda text: parse_extent(text) if text else None  # noqa: E731
    try:
        module = _module(source.ptx)
        values = parse_arguments(given["args"], given["seed"])
        flat = with_shape(values) if given["with_shape"] else values
        entry, grid = _entry(module, given["entry"]), parse_extent(given["grid"])
        expected = _expected(source, entry, grid, values, flat, given) if reference else None
        report = module.launch(
            entry, grid, extent(given["block"]), flat,
            shared_bytes=given["shared"], cluster=extent(given["cluster"]),
            schedule=given["schedule"], seed=given["seed"], check=check, stats=stats,
            max_steps=given["max_steps"], names=names_of(values, given["with_shape"]),
        )  # fmt: skip
    except SimError as error:
        raise as_tile_error(error, name) from None
    return _Done(values, report, expected, name)


def _expected(
    source: _Input, entry: str, grid: Any, values: list[Any], flat: list[Any], given: Any
) -> list[Any]:
    """The values after the kernel, by the reference evaluator."""
    from tile_sim.reference import reference_values

    if source.program is None:
        raise UsageError("--reference needs TileIR bytecode, the input is PTX")
    after = reference_values(source.program, entry, grid, flat, given["source"], source.ftz)
    by_id = {id(one): result for one, result in zip(flat, after, strict=True)}
    return [by_id[id(value)] for value in values]


def _show_launch(done: _Done) -> None:
    name, report = done.name, done.report
    grid, block = ("x".join(str(n) for n in extent) for extent in (report.grid, report.block))
    click.echo(f"ran {report.entry} of {name}: grid {grid}, block {block}")


def _show_stats(reports: list[LaunchReport], shown: bool, path: str | None) -> None:
    costs = [report.cost for report in reports if report.cost is not None]
    for cost in costs if shown else ():
        click.echo(cost.text, nl=False)
    if path is not None:
        text = json.dumps([cost.json for cost in costs], indent=1) + "\n"
        try:
            Path(path).write_text(text)
        except OSError as error:
            raise UsageError(f"cannot write '{path}': {error.strerror}") from None


def _module(ptx: str) -> Module:
    from tile_sim.module import Module

    return Module(ptx)


@dataclass(frozen=True)
class _Input:
    """PTX text, what to call it in messages, and the program that it was compiled from, if any."""

    ptx: str
    name: str
    program: bytes | None = None
    ftz: bool = False  # the pipeline's option


def _ptx(app: Any, given: dict[str, Any]) -> _Input:
    data = read_bytes(given["source"])
    text = data[:4096].decode("utf-8", "replace")
    if any(line.lstrip().startswith(".version") for line in text.splitlines()):
        return _Input(data.decode("utf-8", "replace"), given["source"])
    from tile_core.api import compile as compile_program
    from tile_sim.script import options_of
    from tile_sim.watch import Watch

    watch = Watch(given).of(given["source"])
    artifact = compile_program(
        data,
        given["gpu_name"],
        opt_level=given["opt_level"],
        pipeline=given["pipeline"],
        options=options_of(given),
        pass_options=pass_settings_of(given["pass_settings"]),
        emit="ptx",
        registry=app.registry,
        name=given["source"],
        keep_stages=given["emit"] is not None,
        instrumentations=watch.observers.instrumentations,
        verify=watch.observers.verify,
        on_stage=watch.observers.on_stage,
    )
    watch.report(artifact)
    output = artifact.output
    text = output.decode() if isinstance(output, bytes) else output
    name = f"{given['source']} (ptx for {_target(text)})"
    return _Input(text, name, data, bool(artifact.options.get("ftz", False)))


def _target(ptx: str) -> str:
    """The `.target` of PTX text."""
    for line in ptx.splitlines():
        if line.startswith(".target"):
            return line.split()[1].rstrip(",")
    return "an unknown target"


def _entry(module: Module, name: str | None) -> str:
    if name is not None:
        return name
    if len(module.entries) != 1:
        known = ", ".join(module.entries) or "none"
        raise UsageError("--entry has to say which kernel to run", hint=f"there are: {known}")
    return module.entries[0]


def as_tile_error(error: Any, name: str) -> TileError:
    """A simulator's error in tilec's form; `name` is what the PTX is called."""
    head, *notes = f"{error.kind}: {error.message}".split("\n")
    if error.kind in _USAGE and error.where is None:
        return UsageError(head)
    if error.block is not None:
        kernel = f" of '{error.entry}'" if error.entry else ""
        head += f", in tile block {error.block}{kernel}"
    where = None
    if error.where is not None:
        where = in_ptx = SourceLocation(name, error.where.line, error.where.column)
        source = source_place(error.where.source)
        if source is not None:
            where = source
            notes.append(f"the instruction is {in_ptx}")
    return TileError(head, where=where, notes=tuple(n.strip() for n in notes))


def source_place(text: str | None) -> SourceLocation | None:
    """A place as `.loc` gives it, "file:line:column"."""
    file, _, rest = (text or "").rpartition(":")
    file, _, line = file.rpartition(":")
    if not file or not line.isdigit() or not rest.isdigit():
        return None
    return SourceLocation(file, int(line), int(rest))


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


def _print_json(done: _Done, expected: tuple[str, ...], rtol: float) -> int:
    """What `run` prints, as data; elements beyond the first are in `--save`."""
    import numpy as np

    report, said = done.report, []
    code = _compare(done, expected, rtol, said.append)
    arrays = [
        {"argument": i, "type": value.dtype.name, "shape": list(value.shape),
         "first": [str(v) for v in value.reshape(-1)[:_SHOWN]]}
        for i, value in enumerate(done.values) if isinstance(value, np.ndarray)
    ]  # fmt: skip
    record = {"kernel": report.entry, "grid": report.grid, "block": report.block,
              "printed": report.text, "arrays": arrays, "compared": said}  # fmt: skip
    click.echo(json.dumps(record, indent=1))
    return code


def _compare(
    done: _Done, expected: tuple[str, ...], rtol: float, say: Callable[[str], Any] = click.echo
) -> int:
    """Exit code: whether every `--expect`, and the reference evaluator, agree."""
    import numpy as np

    from tile_sim.arguments import parse_argument
    from tile_sim.errors import SimError
    from tile_sim.reference import difference

    wrong = 0
    for text in expected:
        number, path = _numbered(text, done.values, "--expect")
        try:
            wanted = np.asarray(parse_argument(f"@{path}"))
        except SimError as error:
            raise as_tile_error(error, path) from None
        bad, sentence = difference(done.values[number], wanted, rtol)
        say(f"argument {number}: {sentence}")
        wrong += bad
    for number, wanted in enumerate(done.expected or ()):
        if isinstance(wanted, np.ndarray):
            bad, sentence = difference(done.values[number], wanted, rtol)
            sentence = "equal to the reference evaluator's" if not bad else sentence
            say(f"argument {number}: {sentence}")
            wrong += bad
    return ExitCode.COMPILE if wrong else ExitCode.OK

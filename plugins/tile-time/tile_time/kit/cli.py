"""`tilec gpu-report`: what a GPU kit found, beside the model; the machine file learns from it."""

from __future__ import annotations

from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from tile_core.cli.arguments import completing
from tile_core.cli.as_json import json_option, print_json
from tile_core.cli.progress import Progress
from tile_core.diagnostics import ExitCode, UsageError

if TYPE_CHECKING:
    from tile_core.machines import Machine
    from tile_time.kit.report import Report


@click.command("gpu-report")
@click.argument("results", metavar="RESULTS.json", type=click.Path(path_type=Path))
@click.option(
    "--gpu",
    metavar="NAME",
    shell_complete=completing("machine"),
    help="The machine to compare with; default: by its name.",
)
@click.option(
    "--kit", type=click.Path(path_type=Path), metavar="FOLDER",
    help="The kit that was run: its launches are timed by the model, too.",
)  # fmt: skip
@click.option(
    "--document", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the report there; default: docs/hardware.md, where there is one.",
)  # fmt: skip
@click.option(
    "--machine-file", type=click.Path(path_type=Path), metavar="FILE",
    help="The file whose values are updated; default: the machine's own.",
)  # fmt: skip
@json_option
@click.option("--dry-run", is_flag=True, help="Print the report and write nothing.")
@click.pass_obj
def gpu_report(app: Any, results: Path, **given: Any) -> int:
    """Compare the results of a GPU kit with the model, and update the machine file's numbers.

    Numbers that differ by more than 2 % become measured ones, with date and device. Results of a
    simulated driver change no machine file unless one is named.
    """
    from tile_time.kit.report import as_markdown, compare_numbers, compare_times, read_results

    report = read_results(results)
    machine = _machine(app, report, given["gpu"])
    compare_numbers(report, machine)
    with Progress("timing the kit's launches"):
        compare_times(report, machine, given["kit"])
    text = as_markdown(report, machine)
    if given["as_json"]:
        print_json(asdict(report))
    else:
        click.echo(text, nl=False)
    if not given["dry_run"]:
        _update(report, machine, given["machine_file"])
        _document(text, given["document"])
    return ExitCode.OK


def _machine(app: Any, report: Report, name: str | None) -> Machine:
    """By name, else the one whose target is the results' and whose SMs are as many."""
    from tile_core.machines import find_machine, machine_for, machines_of

    machines = machines_of(app.registry)
    if name is not None:
        return find_machine(name, machines)
    called = report.device["name"].lower()
    own = [m for m in machines.values() if m.target == report.target]
    for machine in own:
        if any(alias.split("-")[0] in called for alias in (machine.name, *machine.aliases)):
            return machine
    return own[0] if own else machine_for(report.target, machines)


def _update(report: Report, machine: Machine, file: Path | None) -> None:
    from tile_time.kit.measured import with_measured
    from tile_time.kit.report import differing

    numbers = differing(report)
    if file is None and report.simulated:
        click.echo("note: a simulated driver: no machine file is changed", err=True)
        return
    path = file or Path(str(resources.files("tile_core.machines"))) / f"{machine.name}.toml"
    try:
        text = path.read_text()
        if numbers:
            path.write_text(with_measured(text, numbers, report.source))
    except OSError as error:
        raise UsageError(
            f"cannot update '{path}': {error.strerror}", hint="name a copy by --machine-file"
        ) from None
    click.echo(f"{path}: {len(numbers)} of {len(report.numbers)} numbers updated", err=True)


def _document(text: str, path: Path | None) -> None:
    if path is None:
        path = Path("docs/hardware.md")
        if not path.parent.is_dir():
            return
    try:
        path.write_text(text)
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None
    click.echo(f"{path} written", err=True)

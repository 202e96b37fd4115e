"""`tilec activate` and `tilec deactivate`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import rich_click as click

from tile_core.diagnostics import ExitCode
from tile_dropin import activation

_python = click.option(
    "--python", metavar="FILE", help="Interpreter of the environment [default: this one]."
)
_project = click.option(
    "--project", type=click.Path(path_type=Path), metavar="FOLDER",
    help="Only for shells that source FOLDER/.tilec/activate.sh.",
)  # fmt: skip


@click.command("activate")
@_python
@_project
@click.option("--status", is_flag=True, help="Change nothing; say which tileiras is called.")
@click.option("--json", "as_json", is_flag=True, help="Print what is active as JSON.")
def activate(python: str | None, project: Path | None, status: bool, as_json: bool) -> int:
    """Make cuTile and other clients call this tileiras, where they would call NVIDIA's.

    NVIDIA's wheel is left as it is. TILEC_ACTIVE=0 switches an activated environment back for one
    process.
    """
    environment = activation.Environment.of(python)
    if project is not None and not status:
        script = activation.activate_project(project)
        click.echo(json.dumps({"script": str(script)}) if as_json else f"now say: . {script}")
        return ExitCode.OK
    if not status:
        click.echo(f"wrote {activation.activate(environment)}", err=as_json)
    return _show(environment, as_json)


@click.command("deactivate")
@_python
@_project
@click.option("--json", "as_json", is_flag=True, help="Print what was removed as JSON.")
def deactivate(python: str | None, project: Path | None, as_json: bool) -> int:
    """Undo `tilec activate`."""
    environment = activation.Environment.of(python)
    if project is not None:
        removed = activation.deactivate_project(project)
    else:
        removed = activation.deactivate(environment)
    if as_json:
        click.echo(json.dumps({"removed": [str(path) for path in removed]}))
        return ExitCode.OK
    for path in removed:
        click.echo(f"removed {path}")
    if not removed:
        click.echo("nothing was active")
    return ExitCode.OK if project is not None else _show(environment, as_json=False)


def _show(environment: activation.Environment, as_json: bool) -> int:
    choices = activation.active(environment)
    if as_json:
        click.echo(json.dumps([asdict(choice) for choice in choices], indent=1))
        return ExitCode.OK
    width = max(len(choice.client) for choice in choices)
    for choice in choices:
        whose = "tilec" if choice.ours else "other" if choice.path else "-"
        text = f"{choice.client:{width}}  {whose:5}  {choice.path or ''} {choice.note}"
        click.echo(text.rstrip())
    return ExitCode.OK

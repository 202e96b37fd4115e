"""`tilec doctor`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import rich_click as click

from tile_core.cli.progress import Progress
from tile_core.diagnostics import ExitCode

if TYPE_CHECKING:
    from tile_core.doctor import Finding


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--gpu",
    is_flag=True,
    help="Launch kernels on the GPU that is here, and keep as your default what works on it.",
)
@click.option("--forget", is_flag=True, help="Remove the defaults that --gpu has kept.")
@click.option("--no-keep", is_flag=True, help="With --gpu: change no defaults.")
@click.option(
    "--driver",
    metavar="MODULE",
    default="cuda.bindings.driver",
    show_default=True,
    help="With --gpu: what calls the CUDA driver; tile_sim.bindings is the simulator.",
)
@click.pass_obj
def doctor(app: Any, as_json: bool, gpu: bool, forget: bool, no_keep: bool, driver: str) -> int:
    """Say what is installed, what is missing, and how to get it."""
    from tile_core import defaults

    if forget:
        removed = defaults.forget()
        click.echo(f"{'removed' if removed else 'there is no'} {defaults.path()}", err=as_json)
        if not gpu:
            return ExitCode.OK
    if gpu:
        return _on_gpu(app, as_json, driver, keep=not no_keep)
    from tile_core.doctor import findings

    found = findings(app.lenient_registry)
    _print(found, [asdict(f) for f in found] if as_json else None)
    return _code(found)


def _on_gpu(app: Any, as_json: bool, driver: str, *, keep: bool) -> int:
    from tile_core import defaults
    from tile_core.doctor import ask_gpu

    with Progress("asking the GPU"):
        answer = ask_gpu(app.registry, driver)
    kept = defaults.keep(answer.instead, answer.about) if keep and answer.settled else None
    _print(answer.findings, asdict(answer) | {"kept": kept and str(kept)} if as_json else None)
    if not as_json and kept is not None:
        said = f"kept in {kept}" if answer.instead else "the pipelines' own values stand"
        click.echo(f"     {said}")
    return _code(answer.findings)


def _code(found: Sequence[Finding]) -> int:
    return ExitCode.OK if all(f.ok or not f.needed for f in found) else ExitCode.CONFIGURATION


def _print(found: Sequence[Finding], as_json: Any) -> None:
    """The findings as lines, or what stands for them in JSON."""
    if as_json is not None:
        click.echo(json.dumps(as_json, indent=1))
        return
    width = max(len(f.what) for f in found)
    for f in found:
        state = "ok  " if f.ok else "FAIL" if f.needed else "none"
        click.echo(f"{state} {f.what:{width}}  {f.detail}")
        if f.hint and not f.ok:
            click.echo(f"     {'':{width}}  {f.hint}")

"""`tilec doctor`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import rich_click as click

from tile_core.diagnostics import ExitCode


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def doctor(app: Any, as_json: bool) -> int:
    """Say what is installed, what is missing, and how to get it."""
    from tile_core.doctor import findings

    found = findings(app.lenient_registry)
    if as_json:
        click.echo(json.dumps([asdict(f) for f in found], indent=1))
    else:
        width = max(len(f.what) for f in found)
        for f in found:
            state = "ok  " if f.ok else "FAIL" if f.needed else "none"
            click.echo(f"{state} {f.what:{width}}  {f.detail}")
            if f.hint and not f.ok:
                click.echo(f"     {'':{width}}  {f.hint}")
    return ExitCode.OK if all(f.ok or not f.needed for f in found) else ExitCode.CONFIGURATION

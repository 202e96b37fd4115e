"""`tilec run --cutile script.py`: a cuTile program as it is, in the simulator."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from tile_core.cli.arguments import pass_settings_of, settings_of
from tile_core.diagnostics import TileError, UsageError
from tile_sim.awaited import when_imported
from tile_sim.errors import SimError
from tile_sim.script_errors import error_of_script
from tile_sim.watch import Watch


def options_of(given: dict[str, Any]) -> dict[str, str]:
    """Pipeline options of a run: findings shall name the source, unless a pipeline cannot."""
    found = settings_of(given["settings"], given["scheduler"], given["layout_strategy"])
    return {"lineinfo": "true", **found} if given["pipeline"] is None else found


def run_script(given: dict[str, Any], arguments: Sequence[str], **launch: Any) -> list[Any]:
    """Run a script as `python script.py arguments`; its launches.

    `given` holds the pipeline options of the command line; `launch` are options of each launch.
    """
    script = given["source"]
    if not Path(script).is_file():
        raise UsageError(f"cannot read '{script}': no such file")
    try:
        from tile_sim import cutile
    except ImportError as error:
        raise UsageError(f"--cutile: {error}") from None
    settings = cutile.settings
    settings.arch, settings.opt_level = given["gpu_name"], given["opt_level"]
    settings.pipeline = given["pipeline"]
    settings.options = options_of(given)
    settings.pass_options = pass_settings_of(given["pass_settings"])
    settings.launch = {"schedule": given["schedule"], "seed": given["seed"], **launch}
    settings.launch["max_steps"] = given.get("max_steps")
    settings.watch = Watch(given) if "dump_dir" in given else None
    when_imported("torch", _torch_on_cpu)
    argv, path = sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    first = len(cutile.launches)
    try:
        runpy.run_path(script, run_name="__main__")
    except (SimError, TileError):
        raise
    except Exception as error:
        if isinstance(error.__cause__, TileError):  # cuTile's own name for what we raised
            raise error.__cause__ from None
        raise error_of_script(script, error) from error
    finally:
        sys.argv, sys.path[:] = argv, path
    return cutile.launches[first:]


def _torch_on_cpu() -> None:
    """torch's CUDA devices, streams and events are the simulator's."""
    from tile_sim.cutile import settings, torch_cuda

    torch_cuda.install(settings.capability)


def show_launches(launches: Sequence[Any], arch: str) -> None:
    """One line for each launch."""
    for number, launch in enumerate(launches):
        grid = "x".join(str(n) for n in launch.grid)
        click.echo(f"launch {number}: {launch.kernel.symbol} for {arch}, grid {grid}", err=True)

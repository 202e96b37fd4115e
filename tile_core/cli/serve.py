"""`tilec serve`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import rich_click as click

from tile_core.cli.as_json import json_option, print_json
from tile_core.diagnostics import ConfigurationError, ExitCode, UsageError

#: Seconds that `--stop` waits for a server to finish its jobs.
_PATIENCE = 30.0


@click.command("serve")
@click.option("--idle", type=float, help="Leave after so many seconds without a request.")
@click.option("--jobs", type=int, help="Workers at once [default: one for each core].")
@click.option("--memory", type=int, metavar="MIB", help="Address space of a worker.")
@click.option("--status", is_flag=True, help="Say whether a server runs, and where.")
@click.option("--stop", is_flag=True, help="Stop the server that runs.")
@json_option
def serve(
    idle: float | None, jobs: int | None, memory: int | None, status: bool, stop: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Keep the compiler in memory for `tilec compile` and `tileiras`.

    Runs until it is stopped or idle; listens on a Unix socket that only this user can reach.
    """
    from dataclasses import replace

    from tile_core.server import client
    from tile_core.server.supervisor import Settings
    from tile_core.server.supervisor import serve as listen

    try:
        path = client.address()
    except client.Unavailable as error:
        raise ConfigurationError(
            str(error), hint=f"set {client.FOLDER} to another folder"
        ) from None
    running = _running(path)
    if as_json and not (status or stop):
        raise UsageError("--json goes with --status or --stop")
    if status or stop:
        return _stop(path, running, as_json) if stop else _say(path, running, as_json)
    if running:
        raise ConfigurationError(
            f"a server is running already, as process {running}", hint="tilec serve --stop"
        )
    settings = Settings.of_environment()
    chosen = {"idle": idle, "jobs": jobs, "memory": None if memory is None else memory << 20}
    click.echo(f"listening on {path}.socket", err=True)
    return listen(replace(settings, **{k: v for k, v in chosen.items() if v is not None}))


def _running(path: str) -> int | None:
    """The process that holds the lock, if any."""
    import fcntl

    try:
        with open(f"{path}.lock", "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return int(lock.read() or b"0")
    except (OSError, ValueError):
        pass
    return None


def _say(path: str, running: int | None, as_json: bool) -> int:
    if as_json:
        print_json({"process": running, "socket": f"{path}.socket" if running else None})
        return ExitCode.OK if running else ExitCode.USAGE
    click.echo(f"process {running} on {path}.socket" if running else "no server is running")
    return ExitCode.OK if running else ExitCode.USAGE


def _stop(path: str, running: int | None, as_json: bool) -> int:
    if not running:
        return _say(path, running, as_json)
    os.kill(running, signal.SIGTERM)
    end = time.monotonic() + _PATIENCE
    while Path(f"/proc/{running}").exists() and _running(path) == running:
        if time.monotonic() > end:
            raise ConfigurationError(f"process {running} has not stopped in {_PATIENCE:g} s")
        time.sleep(0.02)
    if as_json:
        print_json({"stopped": running})
    else:
        click.echo("stopped")
    return ExitCode.OK

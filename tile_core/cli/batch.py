"""`tilec compile` with several programs, several GPUs, or both."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import rich_click as click

from tile_core.batch import Job, Outcome, compile_batch
from tile_core.cli.output import STDIO, read_bytes, write_file
from tile_core.cli.progress import Progress
from tile_core.diagnostics import ConfigurationError, ExitCode, TileError, UsageError
from tile_core.parts import Part


def compile_many(
    sources: Sequence[str],
    targets: Sequence[str],
    arguments: dict[str, Any],
    *,
    folder: str | None,
    suffix: str,
    workers: int | None,
    as_json: bool,
    use_cache: bool,
    disabled: tuple[str, ...],
) -> int:
    """Compile every source for every target; a table, or JSON, of what became of them.

    Args:
        folder: where the outputs go; the current one when None.
        suffix: of the outputs' names.
        workers: processes; None is one for each core.

    Raises:
        UsageError: two outputs would have one name, or the input is standard input.
    """
    if STDIO in sources:
        raise UsageError("standard input cannot be one of several inputs")
    names = _outputs(sources, targets, _made(folder), suffix)
    jobs = [
        Job(source, read_bytes(source), target, arguments, use_cache, disabled)
        for source in sources
        for target in targets
    ]
    return compile_jobs(jobs, names, workers=workers, as_json=as_json)


def compile_parts(
    source: str,
    parts: Sequence[tuple[Part, str]],
    arguments: dict[str, Any],
    *,
    folder: str | None,
    suffix: str,
    workers: int | None,
    as_json: bool,
    use_cache: bool,
    disabled: tuple[str, ...],
) -> int:
    """Compile each `gpu.module` of `source` for its target; outputs have the modules' names.

    Raises:
        UsageError: two modules have one name.
    """
    stem = "stdin" if source == STDIO else Path(source).stem
    jobs, names = [], {}
    for part, target in parts:
        job = Job(f"{source}@{part.name}", part.program, target, arguments, use_cache, disabled)
        path = str(_made(folder) / f"{stem}.{part.name}{suffix}")
        if path in names.values():
            raise UsageError(f"'{source}' has two gpu.modules @{part.name}")
        jobs.append(job)
        names[job.name, target] = path
    return compile_jobs(jobs, names, workers=workers, as_json=as_json)


def compile_jobs(
    jobs: Sequence[Job], names: dict[tuple[str, str], str], *, workers: int | None, as_json: bool
) -> int:
    """Do all of `jobs`, in processes; `names` are the outputs by (name, target)."""
    count = min(workers or len(os.sched_getaffinity(0)), len(jobs))
    # A fork of a process with MLIR in it would share its locks.
    context = multiprocessing.get_context("spawn")
    done: list[tuple[Outcome, str]] = []
    with (
        ProcessPoolExecutor(count, mp_context=context) as executor,
        Progress("compiling", len(jobs)) as bar,
    ):
        for outcome in compile_batch(jobs, executor):
            done.append((_written(outcome, names), names[outcome.name, outcome.target]))
            bar.advance()
    order = {(job.name, job.target): number for number, job in enumerate(jobs)}
    done.sort(key=lambda d: order[d[0].name, d[0].target])
    _print(done, as_json)
    codes = [d.error.exit_code for d, _ in done if d.error is not None]
    return max(codes, default=ExitCode.OK)


def _made(folder: str | None) -> Path:
    """The folder of the outputs, which is made where there is none.

    Raises:
        ConfigurationError: it cannot be.
    """
    path = Path(folder or ".")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot make the folder '{path}': {error.strerror}") from error
    return path


def _outputs(
    sources: Sequence[str], targets: Sequence[str], folder: Path, suffix: str
) -> dict[tuple[str, str], str]:
    """The output of each (source, target); the GPU is in the name where there are several."""
    found: dict[tuple[str, str], str] = {}
    for source in sources:
        for target in targets:
            middle = f".{target}" if len(targets) > 1 else ""
            path = str(folder / f"{Path(source).stem}{middle}{suffix}")
            if path in found.values():
                raise UsageError(
                    f"two outputs would be called '{path}'",
                    hint="give the inputs different names, or compile them one by one",
                )
            found[source, target] = path
    return found


def _written(outcome: Outcome, names: dict[tuple[str, str], str]) -> Outcome:
    if outcome.output is None:
        return outcome
    try:
        write_file(names[outcome.name, outcome.target], outcome.output)
    except ConfigurationError as error:
        return Outcome(outcome.name, outcome.target, outcome.seconds, error=error)
    return outcome


def _print(done: Sequence[tuple[Outcome, str]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([_record(outcome, path) for outcome, path in done], indent=1))
        return
    width = max(len(outcome.name) for outcome, _ in done)
    for outcome, path in done:
        how = "cached" if outcome.cached else f"{outcome.seconds * 1e3:.0f} ms"
        state = path if outcome.error is None else f"error: {outcome.error.message}"
        click.echo(f"{outcome.name:{width}}  {outcome.target:7} {how:>8}  {state}")
    failed = [outcome for outcome, _ in done if outcome.error is not None]
    for outcome in failed:
        assert isinstance(outcome.error, TileError)
        click.echo(f"\n{outcome.name} for {outcome.target}:\n{outcome.error.render()}", err=True)
    click.echo(f"{len(done) - len(failed)} compiled, {len(failed)} failed")


def _record(outcome: Outcome, path: str) -> dict[str, Any]:
    error = outcome.error
    return {
        "input": outcome.name,
        "target": outcome.target,
        "output": path if error is None else None,
        "seconds": round(outcome.seconds, 6),
        "cached": outcome.cached,
        "code": int(ExitCode.OK if error is None else error.exit_code),
        "error": None if error is None else error.render(),
    }

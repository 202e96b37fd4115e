"""Many compilations at once, over any `concurrent.futures.Executor`.

    from concurrent.futures import ProcessPoolExecutor
    from tile_core.batch import Job, compile_batch

    jobs = [Job(path, Path(path).read_bytes(), gpu) for path in paths for gpu in ("sm_80", "sm_90")]
    with ProcessPoolExecutor() as executor:
        for outcome in compile_batch(jobs, executor):
            print(outcome.name, outcome.target, outcome.error or len(outcome.output))

A Dask cluster is `client.get_executor()`. Jobs and outcomes carry bytes and not paths, so that the
machine that compiles need not see the files.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, field
from typing import Any

from tile_core.diagnostics import CompileError, TileError


@dataclass(frozen=True)
class Job:
    """One compilation: what messages call it, the program, a target, arguments of `compile`."""

    name: str
    program: bytes
    target: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    use_cache: bool = True
    disabled: tuple[str, ...] = ()  # plugins to do without


@dataclass(frozen=True)
class Outcome:
    """What became of a job; `output` is None when there is an `error`. Seconds are wall time."""

    name: str
    target: str
    seconds: float
    output: bytes | str | None = None
    error: TileError | None = None
    cached: bool = False


def run_job(job: Job) -> Outcome:
    """Do one job here; whatever goes wrong is in the outcome."""
    from tile_core.cache import Cache
    from tile_core.cached import compile_cached
    from tile_core.registry import default_registry

    start = time.perf_counter()
    try:
        cache = Cache.of_environment() if job.use_cache else None
        registry = default_registry(frozenset(job.disabled))
        arguments = {
            "name": job.name, "keep_stages": False, "registry": registry, **job.arguments,
        }  # fmt: skip
        made = compile_cached(job.program, job.target, cache, **arguments)
        output, error, cached = made.output, None, made.from_cache
    except TileError as failed:
        output, error, cached = None, failed, False
    return Outcome(job.name, job.target, time.perf_counter() - start, output, error, cached)


def compile_batch(jobs: Iterable[Job], executor: Executor) -> Iterator[Outcome]:
    """The outcomes of `jobs`, as they come.

    A worker that dies takes only the jobs along that it had; they fail with `CompileError`.
    """
    running = {executor.submit(run_job, job): job for job in jobs}
    for future in as_completed(running):
        job = running[future]
        try:
            yield future.result()
        except Exception as error:  # of the executor: a process that died, a lost connection
            reason = f"{type(error).__name__}: {error}"
            lost = CompileError(f"the compilation was lost: {reason}")
            yield Outcome(job.name, job.target, 0.0, error=lost)

"""A suite under several pipelines: a test whose programs all become the same code runs once."""

from __future__ import annotations

import hashlib
import queue
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tile_core.diagnostics import TileError
from tile_core.registry import Registry
from tile_fuzz.oracle import Failure, Setting
from tile_fuzz.together import Together
from tile_fuzz.workers import Source, Worker

Record = dict[str, Any]
#: A program, by the hash of its bytecode, and what it is compiled for.
Program = tuple[str, str]
#: A digest of a program's code by pipeline; None where it does not compile.
Codes = dict[str, str | None]


class SameCode:
    """Which tests need not run again under another pipeline.

    `folder` has the programs as `tile_sim.suite.runner.Plan.bytecode` keeps them, `pipelines` are
    names or files. A program is compiled with all of them at once, by one of `jobs` processes,
    which have registries of the `source`; one that ends its process does not compile.
    """

    def __init__(
        self, folder: Path, pipelines: Sequence[str], source: Source, jobs: int = 1
    ) -> None:
        self._folder, self._pipelines = folder, pipelines
        self._source, self._jobs = source, jobs
        self._codes: dict[Program, Codes] = {}

    def known(self, results: Mapping[str, Sequence[Record]], pipeline: str) -> dict[str, Record]:
        """Records under `pipeline` of tests that need not run, by their ids.

        `results` has the records under earlier pipelines. What a test compiled and ran is looked
        at: where each program has the code of one earlier pipeline, the test has its outcome, and
        says so in `as`. A test that failed runs again, as does one whose program does not compile:
        what it would have compiled or run besides is not known.
        """
        self._compile(
            program
            for records in results.values()
            for record in records
            if record["outcome"] != "failed"
            for program in _programs(record)
        )
        found: dict[str, Record] = {}
        for earlier, records in results.items():
            for record in records:
                if record["id"] not in found and self._same(record, earlier, pipeline):
                    more = {"as": record.get("as", earlier), "seconds": 0.0}
                    found[record["id"]] = {**record, **more}
        return found

    def _same(self, record: Record, first: str, second: str) -> bool:
        if record["outcome"] == "failed":
            return False
        codes = [self._codes[program] for program in _programs(record)]
        return all(of[first] is not None and of[first] == of[second] for of in codes)

    def _compile(self, programs: Iterable[Program]) -> None:
        """Find the codes of programs that are not known yet."""
        wanted = [one for one in dict.fromkeys(programs) if one not in self._codes]
        idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        workers = [Worker(self._source) for _ in range(min(self._jobs, len(wanted)))]
        for worker in workers:
            idle.put(worker)

        def codes(program: Program) -> Codes:
            name, arch = program
            source = (self._folder / f"{name}.tileirbc").read_bytes()
            worker = idle.get()
            try:
                found = worker.ask(codes_of, source, arch, tuple(self._pipelines))
            finally:
                idle.put(worker)
            return dict.fromkeys(self._pipelines) if isinstance(found, Failure) else found

        try:
            with ThreadPoolExecutor(max(1, len(workers))) as pool:
                self._codes.update(zip(wanted, pool.map(codes, wanted), strict=True))
        finally:
            for worker in workers:
                worker.close()


def codes_of(registry: Registry, source: bytes, arch: str, pipelines: Sequence[str]) -> Codes:
    """The codes of a program; what a process is asked for."""
    settings = {pipeline: Setting(arch, pipeline=pipeline) for pipeline in pipelines}
    together = Together(source, list(settings.values()), registry)
    return {pipeline: _digest(together, setting) for pipeline, setting in settings.items()}


def _programs(record: Record) -> Iterable[Program]:
    """Hash and target of what a test compiled, and of what it ran that another had compiled."""
    noted = [*record["kernels"], *record.get("ran", ())]
    return dict.fromkeys((program[0], program[1]) for program in noted)


def _digest(together: Together, setting: Setting) -> str | None:
    try:
        return hashlib.sha256(together.ptx(setting).encode()).hexdigest()
    except TileError:
        return None

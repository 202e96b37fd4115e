"""A whole suite for one architecture, spread over processes that may die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tile_core.rehearsal import VARIABLE
from tile_sim.suite.causes import COLLECTION, CRASH, TIMEOUT, normalised

_PYTEST = (
    "-p", "tile_sim.suite.plugin", "-p", "no:cacheprovider", "-q", "--tb=no",
    "--continue-on-collection-errors",
    "-o", "python_files=test_*.py", "-o", "python_functions=test_*",
)  # fmt: skip
# Programs that tests start as processes of their own find the simulator through this module.
_SITE = "import tile_sim.suite.process\n"


#: How pytest ends for an error of its own or of a plugin, as for want of memory that earlier tests
#: still hold: that says nothing about the test that ran.
_INTERNAL_ERROR = 3

#: The tests of a suite, and a record for each file whose tests cannot be had.
Collected = tuple[list[str], list[dict[str, Any]]]


@dataclass(frozen=True)
class Plan:
    """What to run. `timeout` is in seconds for one test, `memory` in GiB for one process.

    With `check`, races and other findings of the simulator are failures, too. `compiler` makes the
    code that runs ("tilec" or "tileiras"), under one of the simulator's schedules. Of the suite's
    tests those run whose number is `first` more than a multiple of `every`: the `every` values of
    `first` are the whole suite in parts. `pipeline` is a name or file, in place of the level that
    cuTile asks for. `known` has records of tests that need not run, by their ids.
    """

    suite: Path
    arch: str
    jobs: int = 1
    timeout: float = 60.0
    memory: float = 6.0
    select: str | None = None
    every: int = 1
    only: frozenset[str] | None = None
    cache: Path | None = None
    bytecode: Path | None = None
    check: bool = False
    compiler: str = "tilec"
    schedule: str = "late"
    first: int = 0
    pipeline: str | None = None
    known: Mapping[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class _Shard:
    """The tests of one process, and how far it is."""

    number: int
    waiting: list[str]
    report: Path
    process: subprocess.Popen[bytes] | None = None
    lines: int = 0
    running: str | None = None
    since: float = 0.0
    done: dict[str, dict[str, Any]] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)  # run once more, since pytest itself failed

    @property
    def rest(self) -> list[str]:
        return [test for test in self.waiting if test not in self.done]


class Run:
    """One run of a suite.

    `results` has a record for each test, in the suite's order, then one for each file whose tests
    cannot be had, of kind `COLLECTION`. `collected` is what an earlier run of the same suite and
    architecture found there.
    """

    def __init__(self, plan: Plan, collected: Collected | None = None) -> None:
        self.plan = plan
        self.collected = collected
        self.results: list[dict[str, Any]] = []

    def run(self) -> list[dict[str, Any]]:
        """Run all tests. Raises RuntimeError where the suite cannot even be collected."""
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            (work / "site").mkdir()
            (work / "site" / "sitecustomize.py").write_text(_SITE)
            self.collected = self.collected or self._collect(work)
            names, broken = self.collected
            tests = names[self.plan.first :: self.plan.every]
            if self.plan.only is not None:
                tests = [test for test in tests if test in self.plan.only]
            known = {test: self.plan.known[test] for test in tests if test in self.plan.known}
            rest = [test for test in tests if test not in known]
            shards = [
                _Shard(i, rest[i :: self.plan.jobs], work / f"results{i}.jsonl")
                for i in range(self.plan.jobs)
            ]
            self._supervise([shard for shard in shards if shard.waiting], work)
        found = known | {test: record for shard in shards for test, record in shard.done.items()}
        self.results = [found[test] for test in tests if test in found] + broken
        return self.results

    # --- processes --------------------------------------------------------------------------

    def _environment(self, work: Path) -> dict[str, str]:
        path = os.pathsep.join(p for p in (str(work / "site"), os.environ.get("PYTHONPATH")) if p)
        own = {"TILE_SIM_ARCH": self.plan.arch, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        if self.plan.cache is not None:
            own["TILE_SIM_CACHE"] = str(self.plan.cache)
        own[VARIABLE] = "off"  # a process that a test ends is told from the others here
        own["TILE_SIM_COMPILER"], own["TILE_SIM_SCHEDULE"] = self.plan.compiler, self.plan.schedule
        if self.plan.check:
            own["TILE_SIM_CHECK"] = "1"
        if self.plan.pipeline is not None:
            own["TILE_SIM_PIPELINE"] = self.plan.pipeline
        if self.plan.bytecode is not None:
            own["TILE_SIM_BYTECODE"] = str(self.plan.bytecode)
        return {**os.environ, **own}

    def _command(self, *options: str) -> list[str]:
        select = ["-k", self.plan.select] if self.plan.select else []
        return [sys.executable, "-m", "pytest", *_PYTEST, *select, *options, str(self.plan.suite)]

    def _collect(self, work: Path) -> Collected:
        names, broken = work / "tests.txt", work / "broken.jsonl"
        # In one word each: pytest looks for the root of the suite, at which names of tests begin,
        # above every file that stands among its arguments.
        options = (f"--tile-list={names}", f"--tile-broken={broken}")
        done = subprocess.run(
            self._command(*options), env=self._environment(work),
            cwd=self.plan.suite, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not names.is_file():
            said = (done.stdout + done.stderr)[-3000:]
            raise RuntimeError(f"the suite in {self.plan.suite} cannot be collected:\n{said}")
        lines = broken.read_text().splitlines() if broken.is_file() else []
        return names.read_text().splitlines(), [_uncollected(*json.loads(line)) for line in lines]

    def _start(self, shard: _Shard, work: Path) -> None:
        only = work / f"only{shard.number}.txt"
        only.write_text("\n".join(shard.rest))
        options = [f"--tile-only={only}", f"--tile-report={shard.report}"]
        options += [f"--tile-timeout={self.plan.timeout}", f"--tile-memory={self.plan.memory}"]
        notes = {"TILE_SIM_NOTES": str(work / f"notes{shard.number}.jsonl")}
        with (work / f"log{shard.number}.txt").open("ab") as log:
            shard.process = subprocess.Popen(
                self._command(*options), env={**self._environment(work), **notes},
                cwd=self.plan.suite, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        shard.running, shard.since = None, time.monotonic()

    def _supervise(self, shards: list[_Shard], work: Path) -> None:
        for shard in shards:
            self._start(shard, work)
        try:
            while any(shard.process is not None for shard in shards):
                time.sleep(0.5)
                for shard in shards:
                    if shard.process is not None:
                        self._look_after(shard, work)
        finally:
            for shard in shards:
                if shard.process is not None:
                    shard.process.kill()

    def _look_after(self, shard: _Shard, work: Path) -> None:
        """Read what is new; end what hangs; start again what died with tests left."""
        assert shard.process is not None
        ended = shard.process.poll() is not None
        _read(shard)
        if not ended:
            # The process itself ends a test after its time; this is for one that cannot.
            if shard.running and time.monotonic() - shard.since > 2 * self.plan.timeout + 30:
                _blame(shard, TIMEOUT, "did not end when told to")
                shard.process.kill()
                shard.process.wait()
                self._start(shard, work)
            return
        if shard.running is not None:
            _ended(shard, shard.process.returncode, _said(shard, work))
        elif shard.rest and not shard.lines:
            raise RuntimeError(f"no test was run:\n{_said(shard, work)}")
        shard.process = None
        if shard.rest:
            shard.lines = _line_count(shard.report)
            self._start(shard, work)


def _uncollected(file: str, text: str, detail: str) -> dict[str, Any]:
    """A record for a file whose tests cannot be had."""
    return {
        "id": file, "outcome": "failed", "compiled": 0, "launched": 0, "kernels": [],
        "seconds": 0.0,
        "cause": {"kind": COLLECTION, "text": normalised(text)[:200], "detail": detail[-1500:]},
    }  # fmt: skip


def _line_count(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.is_file() else 0


def _read(shard: _Shard) -> None:
    if not shard.report.is_file():
        return
    text = shard.report.read_text()
    lines = text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
    for line in lines[shard.lines :]:
        record = json.loads(line)
        if record["outcome"] == "started":
            shard.running, shard.since = record["id"], time.monotonic()
        else:
            shard.done[record["id"]] = record
            shard.running = None
    shard.lines = len(lines)


def _ended(shard: _Shard, status: int, said: str) -> None:
    """Blame the test that ran for the end of its process, unless it shall have a second chance in a
    new one.
    """
    assert shard.running is not None
    if status == _INTERNAL_ERROR and shard.running not in shard.again:
        shard.again.add(shard.running)
        print(f"{shard.running} runs again: pytest failed.\n{said}", file=sys.stderr, flush=True)
        shard.running = None
    else:
        _blame(shard, CRASH, f"the process ended with status {status}", said)


def _said(shard: _Shard, work: Path) -> str:
    """The last that its processes printed; pytest says there why it ends with status 3."""
    return (work / f"log{shard.number}.txt").read_text(errors="replace")[-3000:]


def _blame(shard: _Shard, kind: str, text: str, detail: str = "") -> None:
    """A record for a test that ended its process."""
    assert shard.running is not None
    shard.done[shard.running] = {
        "id": shard.running, "outcome": "failed", "compiled": 1, "launched": 0, "kernels": [],
        "seconds": time.monotonic() - shard.since,
        "cause": {"kind": kind, "text": text, "detail": detail},
    }  # fmt: skip
    shard.running = None

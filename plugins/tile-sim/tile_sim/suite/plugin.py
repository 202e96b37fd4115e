"""A pytest plugin: tests of cuTile programs, on the simulated device of one architecture.

    TILE_SIM_ARCH=sm_90 pytest -p tile_sim.suite.plugin --tile-report results.jsonl tests/

Importing it puts the simulator behind cuTile and torch: before the suite's own conftest, which
already asks for the device. The report has a line when a test starts and one when it has ended.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tile_sim.suite import process

process.leave_alone()

from tile_sim import cutile  # noqa: E402
from tile_sim.suite import notes  # noqa: E402
from tile_sim.suite.causes import Cause, TestTimeout, cause_of  # noqa: E402

if find_spec("torch") is not None:  # a suite may do without
    from tile_sim.cutile import torch_cuda

    torch_cuda.install(cutile.settings.capability)


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("tile")
    group.addoption("--tile-report", help="JSON lines: one for each test")
    group.addoption("--tile-timeout", type=float, default=60.0, help="seconds for one test")
    group.addoption("--tile-memory", type=float, help="GiB that the process may use")
    group.addoption("--tile-only", help="file with the node ids to run")
    group.addoption("--tile-list", help="write the node ids there and run nothing")
    group.addoption("--tile-broken", help="JSON lines: one for each file without tests to be had")


def pytest_configure(config: Any) -> None:
    cutile.settings.cache = os.environ.get("TILE_SIM_CACHE")
    cutile.settings.strict = "TILE_SIM_CHECK" in os.environ
    cutile.settings.launch = {"schedule": os.environ.get("TILE_SIM_SCHEDULE", "late")}
    _limit_memory(config.getoption("--tile-memory"))
    config.pluginmanager.register(_Watcher(config), "tile-suite-watcher")


def _limit_memory(gigabytes: float | None) -> None:
    if gigabytes is not None:
        limit = int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))


class _Watcher:
    """Follows each test from its start to its end."""

    def __init__(self, config: Any) -> None:
        path = config.getoption("--tile-report")
        self.config = config
        self.report = None if path is None else Path(path)
        self.timeout = config.getoption("--tile-timeout")
        self.only, self.list = config.getoption("--tile-only"), config.getoption("--tile-list")
        self.record: dict[str, Any] = {}
        self.session = cutile._SESSION
        self.others = notes.FromFile()
        notes.follow(self.session, self.note)

    def write(self, line: dict[str, Any]) -> None:
        if self.report is not None:
            with self.report.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    # --- which tests ------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        if self.list is not None:
            Path(self.list).write_text("\n".join(item.nodeid for item in items))
            items.clear()
        elif self.only is not None:
            wanted = set(Path(self.only).read_text().splitlines())
            items[:] = [item for item in items if item.nodeid in wanted]

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be imported costs its tests, which nobody can count, and no others."""
        path = self.config.getoption("--tile-broken")
        if report.failed and path is not None:
            said = [line for line in str(report.longrepr).splitlines() if line.startswith("E ")]
            text = " ".join(said[-1].split()[1:]) if said else "cannot be collected"
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps([report.nodeid, text, str(report.longrepr)]) + "\n")

    # --- one test ---------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Iterator[None]:
        self.record = {
            "id": item.nodeid, "outcome": "passed", "compiled": 0, "launched": 0,
            "kernels": [], "ran": [], "cause": None,
        }  # fmt: skip
        self.write({"id": item.nodeid, "outcome": "started"})
        start = time.perf_counter()
        result = yield
        self.record["seconds"] = round(time.perf_counter() - start, 3)
        for note in self.others():
            self.note(note)
        self.write(self.record)
        cutile.launches.clear()
        self.session.compiler.made.clear()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        def expired(signum: int, frame: Any) -> None:
            raise TestTimeout(f"more than {self.timeout:g} s")

        before = signal.signal(signal.SIGALRM, expired)
        signal.setitimer(signal.ITIMER_REAL, self.timeout)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        report = yield
        if report.skipped and hasattr(report, "wasxfail"):
            self.record["outcome"] = "xfailed"
        elif report.skipped:
            self.record["outcome"] = "skipped"
            self.record["cause"] = vars(Cause("skip", str(call.excinfo.value)[:200]))
        elif report.failed and self.record["outcome"] != "failed":
            self.record["outcome"] = "failed"
            error = call.excinfo.value if call.excinfo else RuntimeError(str(report.longrepr))
            self.record["cause"] = vars(cause_of(error))
        return report

    def note(self, note: Any) -> None:
        """Something was compiled or launched, perhaps before the first test."""
        if note[0] == notes.LAUNCH:
            self.record["launched"] = self.record.get("launched", 0) + 1
            ran = self.record.setdefault("ran", [])
            ran += [program for program in note[1:] if program not in ran]
        else:
            self.record.setdefault("kernels", []).append(note)
            self.record["compiled"] = self.record.get("compiled", 0) + 1

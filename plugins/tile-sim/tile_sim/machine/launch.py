"""One launch: arguments to parameter bytes, waves of CTAs, the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.counters import Counters, instructions_of
from tile_sim.machine.memory import Buffer, GlobalMemory
from tile_sim.machine.monitor import Finding, Monitor
from tile_sim.machine.parameters import Argument, HiddenFilled, Parameters, RawParameters
from tile_sim.machine.scheduler import Scheduler
from tile_sim.machine.trace import Trace
from tile_sim.machine.wave import Apportioned, Backlog, Dim, Settings, Shape, Wave
from tile_sim.program.layout import PARAM_WINDOW
from tile_sim.program.program import Program
from tile_sim.report import CostReport, make_report

SCHEDULES = ("late", "early", "random")
_MAX_BLOCK = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65535, 65535)


@dataclass
class LaunchReport:
    """What a launch did.

    `output` holds the texts of printf in order; `block_counts[b]` is (warps, threads) that
    entered block b; `findings` are the reports of check mode, `cost` the counters of `stats`.
    """

    entry: str
    grid: Dim
    block: Dim
    waves: int = 0
    output: list[str] = field(default_factory=list)
    block_counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    warp_instructions: int = 0
    thread_instructions: int = 0
    findings: list[Finding] = field(default_factory=list)
    cost: CostReport | None = None

    @property
    def text(self) -> str:
        return "".join(self.output)


class Launcher:
    """Runs one kernel once."""

    def __init__(
        self, memory: GlobalMemory, program: Program, schedule: str, seed: int, check: Any
    ) -> None:
        if schedule not in SCHEDULES:
            known = ", ".join(SCHEDULES)
            raise SimError("launch", f"unknown schedule {schedule!r}; there are: {known}")
        self.memory = memory
        self.program = program
        self.schedule = schedule
        self.seed = seed
        self.check = check
        self.check_uninitialised = True
        self.max_steps: int | None = None
        self.counters: Counters | None = None
        self.hidden: HiddenFilled | None = None
        self.strict = True
        self.trace: Trace | None = None
        self.clusters: Sequence[int] | None = None
        self.followers: Sequence[Sequence[int]] | None = None
        self.skipped: frozenset[str] = frozenset()
        self.names: Sequence[str] | None = None

    def run(
        self,
        grid: Dim,
        block: Dim | None,
        args: Sequence[Argument] | RawParameters,
        shared_bytes: int,
        cluster: Dim | None,
        wave_threads: int,
    ) -> LaunchReport:
        shape = self._shape(grid, block, cluster, shared_bytes)
        report = LaunchReport(self.program.entry.name, shape.grid, shape.block)
        report.block_counts = np.zeros((len(self.program.blocks), 2), np.int64)
        parameters = Parameters(self.memory, self.program, self.hidden, self.names)
        try:
            raw = isinstance(args, RawParameters)
            data = parameters.raw(args) if raw else parameters.packed(args)
            window = Buffer("parameters", PARAM_WINDOW, data, writable=False)
            self.memory.insert(window)
            parameters.placed.append(window)
            self._waves(shape, report, wave_threads)
        except SimError as error:
            error.printed, error.entry = report.text, report.entry
            raise
        finally:
            parameters.release()
        parameters.write_back()
        self._sum_up(report)
        if self.counters is not None:
            found = self.counters.finish(report.block_counts)
            report.cost = make_report(self.program, found)
        return report

    # --- waves ------------------------------------------------------------------------------

    def _waves(self, shape: Shape, report: LaunchReport, wave_threads: int) -> None:
        size = shape.cluster_size
        if self.check:
            wave_threads = min(wave_threads, Monitor.wave_threads)
        clusters = max(1, wave_threads // (shape.warps_per_cta * 32 * size))
        backlog = self._backlog(shape.cta_coordinates().reshape(-1, size, 3))
        settings = Settings(self.schedule, self.seed, self.check_uninitialised)
        settings.max_steps = self.max_steps
        settings.strict = self.strict
        settings.monitor = self._monitor(report)
        settings.counters = self.counters
        settings.trace = self.trace
        settings.skipped = self.skipped
        with np.errstate(all="ignore"):
            while backlog.first < backlog.stop:
                first = backlog.first
                part = backlog.launch(clusters)
                wave = Wave(self.program, shape, self.memory, part, settings, report.output, first)
                wave.backlog = backlog
                self._run(wave, report)

    def _backlog(self, whole: np.ndarray) -> Backlog:
        """What is launched of `[clusters, CTAs, 3]`, and what may be taken over."""
        size = whole.shape[1]
        started = whole if self.clusters is None else whole[list(self.clusters)]
        if self.followers is None:
            return Backlog(started.reshape(-1, 3), size)
        followers = [whole[list(own), 0] for own in self.followers]
        return Apportioned(started.reshape(-1, 3), size, followers)

    def _run(self, wave: Wave, report: LaunchReport) -> None:
        monitor = wave.monitor
        if monitor is not None:
            monitor.begin(wave)
        Scheduler(wave, report.block_counts).run()
        if monitor is not None:
            monitor.end(wave)
        report.waves += 1

    def _monitor(self, report: LaunchReport) -> Monitor | None:
        if not self.check:
            return None
        monitor = Monitor()
        report.findings = monitor.findings
        return monitor

    def _sum_up(self, report: LaunchReport) -> None:
        for block in self.program.blocks:
            warps, threads = (int(n) for n in report.block_counts[block.number])
            length = sum(1 for _ in instructions_of(block))
            report.warp_instructions += warps * length
            report.thread_instructions += threads * length

    # --- shape ------------------------------------------------------------------------------

    def _shape(self, grid: Dim, block: Dim | None, cluster: Dim | None, dynamic: int) -> Shape:
        directives = self.program.entry.directives
        required = directives.get("reqntid")
        if block is None:
            if required is None:
                raise SimError("launch", "no block size given, and the kernel has no .reqntid")
            block = _dim(required, "block")
        block, grid = _dim(block, "block"), _dim(grid, "grid")
        if required is not None and block != _dim(required, "block"):
            raise SimError("launch", f"block {block} is not the required {_dim(required, 'block')}")
        self._check_limits(grid, block)
        wanted = directives.get("reqnctapercluster")
        if cluster is None and wanted is not None:
            cluster = _dim(wanted, "cluster")
        explicit = cluster is not None
        cluster = _dim(cluster or (1, 1, 1), "cluster")
        if wanted is not None and cluster != _dim(wanted, "cluster"):
            raise SimError("launch", f"cluster {cluster} is not the required {wanted}")
        if "blocksareclusters" in directives:  # a launch counts clusters (PTX ISA, 9.0)
            x, y, z = (g * c for g, c in zip(grid, cluster, strict=True))
            grid = (x, y, z)
            self._check_limits(grid, block)
        if any(g % c for g, c in zip(grid, cluster, strict=True)):
            raise SimError("launch", f"grid {grid} is not a multiple of the cluster {cluster}")
        if dynamic < 0:
            raise SimError("launch", f"negative dynamic shared memory: {dynamic}")
        return Shape(grid, block, cluster, explicit, dynamic)

    def _check_limits(self, grid: Dim, block: Dim) -> None:
        threads = block[0] * block[1] * block[2]
        most = self.program.entry.directives.get("maxntid")
        if any(b > m for b, m in zip(block, _MAX_BLOCK, strict=True)) or threads > 1024:
            raise SimError("launch", f"block {block} is too large (at most 1024 threads)")
        if most is not None and threads > int(np.prod(most)):
            raise SimError("launch", f"block {block} is larger than .maxntid {most}")
        if any(g > m for g, m in zip(grid, _MAX_GRID, strict=True)):
            raise SimError("launch", f"grid {grid} is too large (at most {_MAX_GRID})")


def _dim(values: Sequence[int], what: str) -> Dim:
    numbers = [int(v) for v in values]
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise SimError("launch", f"{what} {tuple(values)} needs one to three positive extents")
    numbers += [1] * (3 - len(numbers))
    return numbers[0], numbers[1], numbers[2]

"""One launch: arguments to parameter bytes, waves of CTAs, the report."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.memory import Buffer, GlobalMemory
from tile_sim.machine.monitor import Finding, Monitor
from tile_sim.machine.scheduler import Scheduler
from tile_sim.machine.tensormap import TensorMap
from tile_sim.machine.wave import Backlog, Dim, Settings, Shape, Wave
from tile_sim.program.layout import PARAM_WINDOW, size_of
from tile_sim.program.program import Program
from tile_sim.program.types import TYPES
from tile_sim.ptx.syntax import Variable

Argument = np.ndarray | np.generic | int | float | bytes | TensorMap
SCHEDULES = ("late", "early", "random")
_MAX_BLOCK = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65535, 65535)


@dataclass
class LaunchReport:
    """What a launch did.

    `output` holds the texts of printf in order; `block_counts[b]` is (warps, threads) that
    entered block b; `findings` are the reports of check mode.
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
        self._placed: list[Buffer] = []
        self._copies: list[tuple[np.ndarray, np.ndarray]] = []
        self._known: dict[tuple[int, int], Buffer] = {}

    def run(
        self,
        grid: Dim,
        block: Dim | None,
        args: Sequence[Argument],
        shared_bytes: int,
        cluster: Dim | None,
        wave_threads: int,
    ) -> LaunchReport:
        shape = self._shape(grid, block, cluster, shared_bytes)
        report = LaunchReport(self.program.entry.name, shape.grid, shape.block)
        report.block_counts = np.zeros((len(self.program.blocks), 2), np.int64)
        try:
            params = self._parameters(args)
            self._register(Buffer("parameters", PARAM_WINDOW, params, writable=False))
            self._waves(shape, report, wave_threads)
        finally:
            for buffer in self._placed:
                self.memory.remove(buffer)
        for original, copy in self._copies:
            original[...] = copy
        self._sum_up(report)
        return report

    def _register(self, buffer: Buffer) -> None:
        self.memory.insert(buffer)
        self._placed.append(buffer)

    # --- waves ------------------------------------------------------------------------------

    def _waves(self, shape: Shape, report: LaunchReport, wave_threads: int) -> None:
        coordinates = shape.cta_coordinates()
        size = shape.cluster_size
        if self.check:
            wave_threads = min(wave_threads, Monitor.wave_threads)
        clusters = max(1, wave_threads // (shape.warps_per_cta * 32 * size))
        backlog = Backlog(coordinates, size)
        settings = Settings(self.schedule, self.seed, self.check_uninitialised)
        settings.max_steps = self.max_steps
        settings.monitor = self._monitor(report)
        with np.errstate(all="ignore"):
            while backlog.first < backlog.stop:
                first = backlog.first
                part = backlog.launch(clusters)
                wave = Wave(self.program, shape, self.memory, part, settings, report.output, first)
                wave.backlog = backlog
                self._run(wave, report)

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
            length = len(block.code) + (block.end_instr is not None and block.sync is None)
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

    # --- parameters -------------------------------------------------------------------------

    def _parameters(self, args: Sequence[Argument]) -> np.ndarray:
        """The parameter bytes, laid out as the kernel declares them."""
        program = self.program
        params = program.entry.params
        if len(args) != len(params):
            raise SimError(
                "launch",
                f"kernel {program.entry.name!r} takes {len(params)} arguments, got {len(args)}",
            )
        raw = np.zeros(max(program.param_size, 1), np.uint8)
        for i, (param, value) in enumerate(zip(params, args, strict=True)):
            data = self._pack(i, param, value)
            start = program.param_offsets[i]
            raw[start : start + len(data)] = np.frombuffer(data, np.uint8)
        return raw

    def _pack(self, i: int, param: Variable, value: Argument) -> bytes:
        size = size_of(param)
        if isinstance(value, TensorMap):
            data = value.encode(self._tensor_address(i, value))
            return data if param.shape else struct.pack("<Q", self._place_map(i, data))
        what = f"argument {i} ({param.name}, .{param.type})"
        if param.shape:
            return _by_value(what, value, size)
        if isinstance(value, np.ndarray) and value.ndim == 0 and param.type not in ("u64", "b64"):
            value = value[()]
        if isinstance(value, np.ndarray):
            if size != 8:
                raise SimError("launch", f"{what} is no pointer, got an array")
            return struct.pack("<Q", self._address(i, value))
        if isinstance(value, bytes):
            return _by_value(what, value, size)
        return _scalar(what, param.type, size, value)

    def _tensor_address(self, i: int, tensor: TensorMap) -> int:
        is_array = isinstance(tensor.array, np.ndarray)
        return self._address(i, tensor.array) if is_array else int(tensor.array)

    def _place_map(self, i: int, data: bytes) -> int:
        """A map passed by pointer lies in a buffer of its own."""
        raw = np.frombuffer(data, np.uint8).copy()
        buffer = self.memory.place(f"tensor map {i}", raw)
        self._placed.append(buffer)
        return buffer.base

    def _address(self, i: int, array: np.ndarray) -> int:
        """Register an array, in place where it is contiguous, and give its address."""
        key = (array.__array_interface__["data"][0], array.nbytes)
        if key in self._known and array.nbytes and array.flags.c_contiguous:
            return self._known[key].base
        if array.flags.c_contiguous:
            flat = array.reshape(-1).view(np.uint8)
        else:
            copy = np.ascontiguousarray(array)
            self._copies.append((array, copy))
            flat = copy.reshape(-1).view(np.uint8)
        buffer = self.memory.place(f"argument {i}", flat, array.flags.writeable)
        self._placed.append(buffer)
        self._known[key] = buffer
        return buffer.base


def _dim(values: Sequence[int], what: str) -> Dim:
    numbers = [int(v) for v in values]
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise SimError("launch", f"{what} {tuple(values)} needs one to three positive extents")
    numbers += [1] * (3 - len(numbers))
    return numbers[0], numbers[1], numbers[2]


def _by_value(what: str, value: Argument, size: int) -> bytes:
    data = value.tobytes() if isinstance(value, np.ndarray | np.generic) else value
    if not isinstance(data, bytes):
        raise SimError("launch", f"{what} needs {size} bytes, got {type(value).__name__}")
    if len(data) != size:
        raise SimError("launch", f"{what} needs {size} bytes, got {len(data)}")
    return data


def _scalar(what: str, name: str, size: int, value: Any) -> bytes:
    type_ = TYPES[name]
    if isinstance(value, np.generic):
        if value.dtype.itemsize == size:
            return value.tobytes()
        value = value.item()
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, float):
        if type_.dtype.kind == "f" or name.startswith("b"):
            return np.array(value, f"f{size}" if size >= 2 else "f2").tobytes()[:size]
        raise SimError("launch", f"{what} is an integer, got {value!r}")
    if not isinstance(value, int):
        raise SimError("launch", f"{what}: cannot pass {type(value).__name__}")
    if type_.dtype.kind == "f":
        return np.array(value, type_.dtype).tobytes()
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise SimError("launch", f"{what}: {value} does not fit {size} bytes")
    return (value % (1 << (8 * size))).to_bytes(size, "little")

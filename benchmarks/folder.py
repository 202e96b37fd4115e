"""Compile time of every bytecode file of a folder, in one warm process, beside tileiras.

`compile_time.py --folder DIR` runs it. tileiras, and our own whole process, are measured on every
n-th file only, since each is a process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SLOWEST = 10
_SLOW_PARTS = 3


@dataclass(frozen=True)
class File:
    """Milliseconds of one file; `parts` are those of passes and emitters, the longest first."""

    name: str
    warm: float
    parts: tuple[tuple[str, float], ...] = ()
    error: str = ""


@dataclass
class Run:
    """What a whole folder took."""

    files: list[File] = field(default_factory=list)
    # Bytes after every tenth part of the files: of this process, and of LLVM's worker.
    resident: list[int] = field(default_factory=list)
    worker: list[int] = field(default_factory=list)
    seconds: float = 0.0
    processor: float = 0.0  # seconds of all processes: this one, LLVM's worker, ptxas
    #: Whole processes, ours and tileiras', by file: (ms, ms of processors).
    cold: dict[str, tuple[float, float]] = field(default_factory=dict)
    tileiras: dict[str, tuple[float, float]] = field(default_factory=dict)


def measure(folder: Path, target: str, level: int, sample: int, peer: Path | None) -> Run:
    """Compile every file of `folder` once, in order of their names."""
    import tile_core

    paths = sorted(folder.glob("*.tileirbc"))
    run = Run()
    _compile(tile_core, paths[0], target, level)  # imports, the worker, caches of the toolchain
    start = time.perf_counter()
    for number, path in enumerate(paths):
        run.files.append(_compile(tile_core, path, target, level))
        if number * 10 // len(paths) != (number + 1) * 10 // len(paths):
            run.resident.append(_resident("self"))
            run.worker.append(sum(_resident(child) for child in _children()))
            _progress(run, time.perf_counter() - start)
    run.seconds = time.perf_counter() - start
    run.processor = _processor_seconds()
    good = [path for path, file in zip(paths, run.files, strict=True) if not file.error]
    for path in good[:: max(1, len(good) // sample)] if sample else []:
        _processes(path, target, level, peer, run)
    return run


def _progress(run: Run, seconds: float) -> None:
    failed = sum(bool(file.error) for file in run.files)
    print(f"{len(run.files)} files in {seconds:.0f} s, {failed} failed, "
          f"{run.resident[-1] >> 20} and {run.worker[-1] >> 20} MiB",
          file=sys.stderr, flush=True)  # fmt: skip


def _compile(tile_core: Any, path: Path, target: str, level: int) -> File:
    source = path.read_bytes()
    begin = time.perf_counter()
    try:
        made = tile_core.compile(source, target, opt_level=level, keep_stages=False)
    except tile_core.diagnostics.TileError as error:
        first = str(error).splitlines()[0]
        return File(path.stem, (time.perf_counter() - begin) * 1e3, error=first)
    wall = (time.perf_counter() - begin) * 1e3
    parts: dict[str, float] = {}
    for name, part in _leaves(made.timings):
        parts[name] = parts.get(name, 0.0) + part * 1e3
    longest = sorted(parts.items(), key=lambda item: -item[1])
    return File(path.stem, wall, tuple(longest[:_SLOW_PARTS]))


def _processor_seconds() -> float:
    """Of this process and of its children, which have to be done."""
    from tile_nvptx.emit.pool import POOL

    POOL.shutdown()
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _leaves(span: Any) -> Iterator[tuple[str, float]]:
    if not span.children:
        yield span.name, span.wall
    for child in span.children:
        yield from _leaves(child)


def _resident(process: str) -> int:
    """Bytes of memory of a process."""
    return int(Path("/proc", process, "statm").read_text().split()[1]) * _PAGE


def _children() -> list[str]:
    """The processes of this one that go on between two files: LLVM's worker."""
    lists = Path("/proc/self/task").glob("*/children")
    return [child for text in lists for child in text.read_text().split()]


def _processes(path: Path, target: str, level: int, peer: Path | None, run: Run) -> None:
    from compile_time import TILEC

    with tempfile.TemporaryDirectory() as folder:
        flags = ["--gpu-name", target, f"-O{level}", "-o", str(Path(folder, "out.cubin"))]
        for command, times in (
            ([*TILEC, "compile"], run.cold),
            ([str(peer)] if peer else [], run.tileiras),
        ):
            if command:
                begin, used = time.perf_counter(), _children_seconds()
                done = subprocess.run([*command, str(path), *flags], capture_output=True)
                wall, used = time.perf_counter() - begin, _children_seconds() - used
                if done.returncode == 0:
                    times[path.stem] = wall * 1e3, used * 1e3


def _children_seconds() -> float:
    used = os.times()
    return used.children_user + used.children_system


def show(run: Run) -> None:
    """Print what was measured."""
    good = [file for file in run.files if not file.error]
    warm = [file.warm for file in good]
    print(f"{len(run.files)} files in {run.seconds:.0f} s ({run.processor:.0f} s of processors), "
          f"{len(good)} compiled")  # fmt: skip
    cuts = quantiles(warm, n=100) if len(warm) > 1 else warm * 99
    print(f"warm: median {median(warm):.0f} ms, 90 % {cuts[89]:.0f}, 99 % {cuts[98]:.0f}, "
          f"most {max(warm):.0f}")  # fmt: skip
    for what, sizes in (("resident memory", run.resident), ("that of LLVM's worker", run.worker)):
        mib = [f"{size >> 20}" for size in sizes]
        print(f"{what} after each tenth, MiB: {' '.join(mib)}")
    _show_ratios(run)
    print(f"\nthe {_SLOWEST} slowest")
    for file in sorted(good, key=lambda f: -f.warm)[:_SLOWEST]:
        parts = ", ".join(f"{name} {ms:.0f}" for name, ms in file.parts)
        print(f"{file.warm:7.0f} ms  {file.name}: {parts}")
    errors = Counter(file.error for file in run.files if file.error)
    for text, count in errors.most_common():
        print(f"{count:5} x {text}")


def _show_ratios(run: Run) -> None:
    warm = {file.name: file.warm for file in run.files}
    _show_ratio("warm", {n: (warm[n], times[0]) for n, times in run.tileiras.items()})
    for at, what in ((0, "cold"), (1, "cold, time of processors")):
        both = {n: (run.cold[n][at], t[at]) for n, t in run.tileiras.items() if n in run.cold}
        _show_ratio(what, both)


def _show_ratio(what: str, times: dict[str, tuple[float, float]]) -> None:
    """Medians of (ours, tileiras')."""
    if times:
        ratio = median(ours / theirs for ours, theirs in times.values())
        ours, theirs = (median(pair[at] for pair in times.values()) for at in (0, 1))
        print(f"{what} / tileiras: median {ratio:.2f} over {len(times)} files "
              f"(medians {ours:.0f} and {theirs:.0f} ms)")  # fmt: skip


def write(run: Run, path: Path, target: str, level: int) -> None:
    """The numbers as JSON."""
    document = {"unit": "ms", "gpu": target, "opt_level": level, **asdict(run)}
    path.write_text(json.dumps(document, indent=1) + "\n")

"""What a warm compilation spends, in time of processors: by process and by pass, beside tileiras.

    python benchmarks/budget.py examples/bytecode --gpu-name sm_90 --runs 3

Every bytecode file of the folders is compiled once to warm up, then `--runs` times, in turns with
whole processes of NVIDIA's `tileiras` where it is installed. Other work on the machine stretches
time of processors less than waiting; the least of the runs is taken. By pass, only what this
process does is known. Python's collector of cycles is set as in the compile server's workers, which
are what users wait for.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from peer import find_tool

import tile_core
from tile_core import own_process
from tile_core.diagnostics import TileError

_ROWS = 30


@dataclass(frozen=True)
class Spent:
    """Milliseconds of processors: of this process, LLVM's worker, ptxas, and all of tileiras."""

    name: str
    own: float
    worker: float
    ptxas: float
    theirs: float | None

    @property
    def total(self) -> float:
        return self.own + self.worker + self.ptxas

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.total / self.theirs


def main() -> None:
    """Measure and print."""
    as_worker()
    options = _arguments()
    peer = options.tileiras or find_tool("tileiras")
    files = [file for folder in options.folder for file in sorted(folder.glob("*.tileirbc"))]
    found: list[Spent] = []
    passes: dict[str, float] = defaultdict(float)
    for file in files[:: options.every]:
        try:
            one = measure(file, options.gpu_name, options.opt_level, options.runs, peer, passes)
        except TileError as error:
            print(f"{file.stem}: left out: {error.message}", file=sys.stderr)
            continue
        found.append(one)
        _print(one)
    _summary(found)
    _passes(passes, len(found) * options.runs)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--gpu-name", default="sm_90")
    parser.add_argument("-O", "--opt-level", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--every", type=int, default=1, help="only each n-th file")
    parser.add_argument("--tileiras", type=Path, help="the tileiras to compare with")
    return parser.parse_args()


def as_worker() -> None:
    """Make this process what a worker of the compile server is; modules are loaded after it."""
    own_process.claim(serves=True)
    own_process.loading()


# --- measuring -----------------------------------------------------------------------------------


def measure(
    file: Path,
    target: str,
    level: int,
    runs: int,
    peer: Path | None,
    passes: dict[str, float] | None = None,
) -> Spent:
    """The least of `runs` compilations; what our passes took is added to `passes`."""
    source = file.read_bytes()
    by_pass: dict[str, float] = defaultdict(float) if passes is None else passes

    def once(passes: dict[str, float]) -> tuple[float, float, float]:
        before = _spent()
        made = tile_core.compile(source, target, opt_level=level, keep_stages=False)
        for name, milliseconds in _own(made.timings):
            passes[name] += milliseconds
        own, worker, tools = (now - then for now, then in zip(_spent(), before, strict=True))
        return own, worker, tools

    once(defaultdict(float))  # loads what it needs
    ours: list[tuple[float, float, float]] = []
    theirs: list[float | None] = []
    for _ in range(runs):
        ours.append(once(by_pass))
        if peer is not None:
            theirs.append(_process(peer, file, target, level))
    own, worker, ptxas = (min(part) for part in zip(*ours, strict=True))
    known = [one for one in theirs if one is not None]
    return Spent(file.stem, own, worker, ptxas, min(known, default=None))


def _spent() -> tuple[float, float, float]:
    """Milliseconds of this process, of its children that live, and of those that ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    lists = Path("/proc/self/task").glob("*/children")
    alive = [child for text in lists for child in text.read_text().split()]
    threads = (at for child in alive for at in Path("/proc", child, "task").glob("*/schedstat"))
    nanoseconds = sum(int(at.read_text().split()[0]) for at in threads)
    return time.process_time() * 1e3, nanoseconds / 1e6, (ended.ru_utime + ended.ru_stime) * 1e3


def _process(peer: Path, file: Path, target: str, level: int) -> float | None:
    """Milliseconds of a whole process of tileiras; None if it refuses the program."""
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder, "out.cubin"))
        command = [str(peer), str(file), "--gpu-name", target, f"-O{level}", "-o", output]
        before = _spent()[2]
        done = subprocess.run(command, capture_output=True, check=False)
        return None if done.returncode else _spent()[2] - before


def _own(span: Any) -> Iterator[tuple[str, float]]:
    """Each span and what it spent beside its parts; a segment's own is its verification."""
    name = f"{span.name}, verified" if span.kind == "segment" else span.name
    yield name, (span.cpu - sum(child.cpu for child in span.children)) * 1e3
    for child in span.children:
        yield from _own(child)


# --- printing ------------------------------------------------------------------------------------


def _print(one: Spent) -> None:
    theirs = "" if one.theirs is None else f" tileiras {one.theirs:7.1f} ratio {one.ratio:5.2f}"
    print(f"{one.name:28} own {one.own:7.1f} LLVM {one.worker:7.1f} ptxas {one.ptxas:7.1f} "
          f"all {one.total:7.1f}{theirs}", flush=True)  # fmt: skip


def _summary(found: list[Spent]) -> None:
    if not found:
        sys.exit("no file was compiled")
    print(
        f"\n{len(found)} files, means: own {_mean([f.own for f in found]):.1f} ms, LLVM "
        f"{_mean([f.worker for f in found]):.1f}, ptxas {_mean([f.ptxas for f in found]):.1f}"
    )
    ratios = [one.ratio for one in found if one.ratio is not None]
    if len(ratios) < 2:
        return
    tenths = quantiles(ratios, n=10)
    both = [(one.total, one.theirs) for one in found if one.theirs is not None]
    whole = sum(ours for ours, _ in both) / sum(theirs for _, theirs in both)
    print(
        f"to tileiras, {len(ratios)} files: median {median(ratios):.2f}, {tenths[0]:.2f} to "
        f"{tenths[-1]:.2f} from the 10th to the 90th percentile, of the sums {whole:.2f}"
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _passes(passes: dict[str, float], count: int) -> None:
    whole = sum(passes.values())
    print(f"\nthis process, {whole / count:.1f} ms a compilation")
    longest = sorted(passes.items(), key=lambda item: -item[1])
    for name, milliseconds in longest[:_ROWS]:
        print(f"{milliseconds / count:7.2f} ms {milliseconds / whole:6.1%}  {name}")


if __name__ == "__main__":
    main()

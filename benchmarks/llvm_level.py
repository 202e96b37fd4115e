"""What passes over the llvm dialect find to do in the code that the compiler makes.

`python benchmarks/llvm_level.py [--target sm_90]` compiles every example at -O3 to the llvm dialect
and runs each pass over it; a row per pass: what it counted over all examples, and its time. A pass
that finds nothing is worth nothing there, and is in no level.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import tile_core
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "bytecode"
PASSES = ("nv-inline-must", "ipmsp", "dead-sync-elim", "printf-lowering", "kernel-info")


def measure(name: str, texts: list[str], target: str) -> tuple[Counter[str], float]:
    """What a pass counted over all programs, and its seconds a program."""
    counted: Counter[str] = Counter()
    seconds = 0.0
    for text in texts:
        start = time.perf_counter()
        optimize(text, 0, OptJob(default_registry(), Selection(target=target)))
        between = time.perf_counter()
        done = optimize(text, 0, OptJob(default_registry(), Selection(passes=name, target=target)))
        seconds += (time.perf_counter() - between) - (between - start)
        for (_, statistic), amount in done.artifact.statistics.items():
            counted[statistic] += amount
    return counted, max(0.0, seconds) / len(texts)


def main() -> None:
    """A table of all passes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="sm_90")
    target = parser.parse_args().target
    texts = [
        str(tile_core.compile(path.read_bytes(), target, opt_level=3, emit="mlir").stage("mlir"))
        for path in sorted(EXAMPLES.glob("*.tileirbc"))
    ]
    barriers = sum(text.count("nvvm.barrier") for text in texts)
    print(f"{len(texts)} examples, {barriers} barriers")
    for name in PASSES:
        counted, seconds = measure(name, texts, target)
        found = ", ".join(f"{what} {n}" for what, n in sorted(counted.items())) or "nothing"
        print(f"{name:16} {found:24} {seconds * 1e3:5.1f} ms a program")


if __name__ == "__main__":
    main()

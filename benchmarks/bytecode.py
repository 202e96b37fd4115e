"""How long TileIR bytecode takes to read, write, print, parse and turn into MLIR.

    python benchmarks/bytecode.py

One line per step and program: the median of a few runs in milliseconds, microseconds per operation
and MB/s, and the limit that holds for a typical kernel. Exits with 1 if a limit is passed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tile_cudatile import (
    from_mlir,
    parse_text,
    print_text,
    read_bytecode,
    to_mlir,
    verify,
    write_bytecode,
)
from tile_cudatile.locations import UNKNOWN
from tile_cudatile.tree import Module

from tile_core.mlir import ir

RUNS = 7
KERNEL = Path(__file__).parent.parent / "tests/unit/tile_cudatile/data/matmul.13.4.tileirbc"
REPEATS = (1, 40, 400)  # of the kernel's entry
READ_LIMIT = 3.0  # ms for one kernel


def median(step: Callable[[], object]) -> float:
    """Milliseconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def program(count: int) -> bytes:
    """The kernel, `count` times over."""
    module = read_bytecode(KERNEL.read_bytes())
    if count == 1:
        return KERNEL.read_bytes()
    entries = []
    for index in range(count):
        (entry,) = read_bytecode(KERNEL.read_bytes()).entries
        entry.name = f"{entry.name}_{index}"
        entries.append(entry)
        for op in entry.body.walk():
            op.loc = UNKNOWN
        entry.loc = UNKNOWN
    return write_bytecode(Module(module.version, [], entries, module.producer))


def measure(count: int) -> float:
    """Prints a table; the time to read."""
    data = program(count)
    module = read_bytecode(data)
    ops = sum(1 for entry in module.entries for _ in entry.body.walk())
    text = print_text(module)
    print(f"\n{len(data)} bytes, {ops} operations, {len(module.entries)} kernels")
    with ir.Context(), ir.Location.unknown():
        mlir = to_mlir(module)
        steps: dict[str, Callable[[], object]] = {
            "read": lambda: read_bytecode(data),
            "verify": lambda: verify(module),
            "write": lambda: write_bytecode(module),
            "print": lambda: print_text(module),
            "parse": lambda: parse_text(text, version=module.version),
            "to MLIR": lambda: to_mlir(module),
            "from MLIR": lambda: from_mlir(mlir, module.version),
        }
        times = {name: median(step) for name, step in steps.items()}
    for name, taken in times.items():
        speed = len(data) / taken / 1e3
        print(f"  {name:10} {taken:9.2f} ms {taken * 1e3 / ops:7.1f} us/op {speed:7.2f} MB/s")
    return times["read"]


def main() -> int:
    """Measures; the exit code."""
    first, *_ = [measure(count) for count in REPEATS]
    if first > READ_LIMIT:
        print(f"reading one kernel took {first:.2f} ms, limit {READ_LIMIT}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

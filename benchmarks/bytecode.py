"""How long TileIR bytecode takes to read, write, print, parse and turn into MLIR.

    python benchmarks/bytecode.py

One line per step and program: processor time, the least of a few runs, in milliseconds,
microseconds per operation and MB/s. For the largest program also NVIDIA's `tileirdisasm`, where it
is installed: whole processes, against a whole process of ours and against reading and printing
alone. Exits with 1 if reading a typical kernel, of about 3 kB, passes its limit.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from peer import find_tool
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
from tile_cudatile.tree import Module, Op

from tile_core.mlir import ir

RUNS = 7
DATA = Path(__file__).parent.parent / "tests/unit/tile_cudatile/data"
KERNEL = DATA / "matmul.13.4.tileirbc"
REPEATS = (1, 40, 400)  # of the kernel's entry
READ_LIMIT = 3.0  # ms for a typical kernel
TYPICAL = 3000  # bytes
# What `tilec dis` does, as the `tileirdisasm` that is installed with this package.
OURS = (sys.executable, "-c", "from tile_cudatile.disassembler import main; main()")


def least(step: Callable[[], object]) -> float:
    """Milliseconds of processor time."""
    times = []
    for _ in range(RUNS):
        start = process_time()
        step()
        times.append(process_time() - start)
    return min(times) * 1e3


def least_process(command: tuple[str, ...]) -> float:
    """Milliseconds of processor time of a whole process."""
    times = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times) * 1e3


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


def _operations(module: Module) -> Iterator[Op]:
    for entry in module.entries:
        yield from entry.body.walk()


def measure(data: bytes) -> None:
    """Prints a table."""
    module = read_bytecode(data)
    ops = sum(1 for _ in _operations(module))
    kinds = len({op.name for op in _operations(module)})
    text = print_text(module)
    print(f"\n{len(data)} bytes, {ops} operations ({kinds} kinds), {len(module.entries)} kernels")
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
        times = {name: least(step) for name, step in steps.items()}
    for name, taken in times.items():
        speed = len(data) / taken / 1e3
        print(f"  {name:10} {taken:9.2f} ms {taken * 1e3 / ops:7.1f} us/op {speed:7.2f} MB/s")


def compare(data: bytes) -> None:
    """Prints what the released disassembler takes for the same program."""
    tool = find_tool("tileirdisasm")
    if tool is None or tool.read_bytes()[:4] != b"\x7fELF":
        print("\nno tileirdisasm of NVIDIA's to compare with")
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.tileirbc"
        path.write_bytes(data)
        theirs = least_process((str(tool), str(path)))
        whole = least_process((*OURS, str(path)))
    alone = least(lambda: print_text(read_bytecode(data)))
    print(
        f"\ntileirdisasm, {len(data)} bytes: {theirs:.1f} ms, {len(data) / theirs / 1e3:.2f} MB/s"
    )
    print(f"  ours as a process {whole:9.1f} ms, {whole / theirs:5.1f} times as long")
    print(f"  read and print    {alone:9.1f} ms, {alone / theirs:5.1f} times as long")


def typical() -> bytes:
    """The kernel of the tests whose size is nearest to that of a typical one, with locations."""
    sizes = {path: path.stat().st_size for path in DATA.glob("*.tileirbc")}
    examples = Path(__file__).parent.parent / "examples" / "bytecode"
    sizes |= {path: path.stat().st_size for path in examples.rglob("*.tileirbc")}
    return min(sizes, key=lambda path: (abs(sizes[path] - TYPICAL), path.name)).read_bytes()


def main() -> int:
    """Measures; the exit code."""
    kernel = typical()
    programs = [kernel, *map(program, REPEATS)]
    for data in programs:
        measure(data)
    compare(programs[-1])
    read = least(lambda: read_bytecode(kernel))
    print(f"\nreading a typical kernel, {len(kernel)} bytes: {read:.2f} ms, limit {READ_LIMIT}")
    return int(read > READ_LIMIT)


if __name__ == "__main__":
    sys.exit(main())

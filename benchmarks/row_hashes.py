"""Hashes of the PTX of all rows: whether a change of the compiler changed any code.

    python benchmarks/row_hashes.py before.txt sm_90 sm_100
    ... change the compiler ...
    python benchmarks/row_hashes.py after.txt sm_90 sm_100 && diff before.txt after.txt

A line for each program of each target: target, hash, row; a program that several rows share stands
once. Rows are those of cuTile's kernels and of users' (`speed_rows.py`, `user_rows.py`), or of
`--rows`. Nothing is run, and ptxas is not asked. Needs cuda-tile (group `export`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from row_code import programs

import tile_core
from tile_core.diagnostics import TileError
from tile_core.machines import builtin_machines, find_machine

HERE = Path(__file__).resolve().parent
_LEVEL = 3
#: Multiprocessors by which rows choose their grids, from a GPU of each target.
_GPUS = {"sm_80": "a100", "sm_90": "h100", "sm_100": "b200", "sm_120": "rtx5090"}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the lines; one process for each target, as cuTile asks for the GPU once."""
    sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]
    given = _parser().parse_args(argv)
    if len(given.targets) > 1:
        lines = b"".join(_of_target(target, given.rows) for target in given.targets)
        given.file.write_bytes(lines)
        return 0
    text = "".join(f"{line}\n" for line in _lines(given.targets[0], given.rows))
    given.file.write_text(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("targets", nargs="+", choices=sorted(_GPUS), metavar="TARGET")
    parser.add_argument("--rows", nargs="+", default=["speed_rows:ROWS", "user_rows:ROWS"])
    return parser


def _of_target(target: str, rows: Sequence[str]) -> bytes:
    command = [sys.executable, __file__, "/dev/stdout", target, "--rows", *rows]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def _lines(target: str, rows: Sequence[str]) -> Iterator[str]:
    sms = int(find_machine(_GPUS[target], builtin_machines()).chip.sms)
    for name, bytecode in programs(target, sms, rows=rows):
        try:
            made = tile_core.compile(bytecode, target, opt_level=_LEVEL, emit="ptx")
            digest = sha256(str(made.output).encode()).hexdigest()[:16]
        except TileError as error:
            digest = f"refused: {error.message}"
        yield f"{target} {digest} {name}"


if __name__ == "__main__":
    raise SystemExit(main())

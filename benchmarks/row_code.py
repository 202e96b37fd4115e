"""The code of the rows of speed.py, and how long it takes to make it, ours beside tileiras'.

    python benchmarks/row_code.py --gpu h100 b200 rtx5090
    python benchmarks/row_code.py --gpu b200 --only attention --runs 3

cuTile makes the bytecode of each row for that GPU; nothing is launched. Both compilers' cubins are
looked at with cuobjdump: instructions of tensor cores, of the copy engine (tensor maps and bulk
copies), of spills, registers and bytes of stack. Times are of processors, ours warm in one process
like a worker of the compile server, with LLVM's worker and ptxas, theirs of a whole process, in
turns; the least of `--runs`. Needs cuda-tile and NVIDIA's tools (groups `export` and `peer`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from budget import Spent, as_worker, measure
from peer import find_tool
from static import Code, inspect, peer_cubin

import tile_core
from tile_core.diagnostics import TileError
from tile_core.machines import builtin_machines, find_machine

HERE = Path(__file__).resolve().parent
#: Opcodes of the copy engine: tensor maps and bulk copies, in both directions.
_ENGINE = ("UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED")
_LEVEL = 3


@dataclass(frozen=True)
class Found:
    """One kernel of a row; `theirs` is None where tileiras refuses it."""

    name: str
    ours: Code
    theirs: Code | None
    spent: Spent


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; with several GPUs, one process each, as cuTile asks for the GPU once."""
    sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]
    given = _parser().parse_args(argv)
    if len(given.gpu) > 1:
        rest = ["--runs", str(given.runs), *(["--only", *given.only] if given.only else [])]
        commands = [[sys.executable, __file__, "--gpu", gpu, *rest] for gpu in given.gpu]
        return max(subprocess.run(command, check=False).returncode for command in commands)
    as_worker()
    cuobjdump, tileiras = find_tool("cuobjdump"), find_tool("tileiras")
    if cuobjdump is None or tileiras is None:
        sys.exit("needs cuobjdump and tileiras: pip install --group peer")
    _print(given.gpu[0], _rows(given, cuobjdump, tileiras))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--gpu", nargs="+", default=["h100", "b200"])
    parser.add_argument("--only", nargs="+", default=[], help="rows with one of these in the name")
    parser.add_argument("--runs", type=int, default=1)
    return parser


# --- measuring ------------------------------------------------------------------------------------


def _rows(given: argparse.Namespace, cuobjdump: Path, tileiras: Path) -> Iterator[Found]:
    machine = find_machine(given.gpu[0], builtin_machines())
    for name, bytecode in programs(machine.target, int(machine.chip.sms), given.only):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "row.tileirbc")
            file.write_bytes(bytecode)
            try:
                ours = tile_core.compile(bytecode, machine.target, opt_level=_LEVEL)
                spent = measure(file, machine.target, _LEVEL, given.runs, tileiras)
            except TileError as error:
                print(f"{name}: left out: {error.message}", file=sys.stderr)
                continue
            theirs = None
            if spent.theirs is not None:
                theirs = inspect(peer_cubin(tileiras, file, machine.target, _LEVEL), cuobjdump)
            yield Found(name, inspect(ours.cubin, cuobjdump), theirs, spent)


def programs(
    target: str, sms: int, only: Sequence[str] = (), rows: Sequence[str] = ("speed_rows:ROWS",)
) -> Iterator[tuple[str, bytes]]:
    """(row, bytecode) of `rows` that `only` takes and the target can run, no program twice."""
    import cuda.tile as ct
    from speed import kernel_of, rows_of
    from tile_sim import cutile

    seen: list[bytes] = []
    cutile.settings.arch, cutile.settings.compiler = target, "none"
    cutile.compiler.watch = lambda done: seen.append(done.bytecode)
    for row in (row for module in rows for row in rows_of(module)):
        wanted = not only or any(part in row.name for part in only)
        if not wanted or int(target.removeprefix("sm_")) < row.capability:
            continue
        seen.clear()
        launch = row.launch(sms)
        ct.launch(None, launch.grid, kernel_of(row, None), launch.arguments)
        if seen:  # else an earlier row has the same program
            yield row.name, seen[-1]


# --- the table ------------------------------------------------------------------------------------


def _print(gpu: str, rows: Iterator[Found]) -> None:
    counts = ("tensor", "copies", "spills", "registers", "stack")
    columns = ["kernel", *counts, *(f"its {name}" for name in counts), "ms", "its ms", "ratio"]
    print(f"**{gpu}**\n\n| {' | '.join(columns)} |\n|---|{'--:|' * (len(columns) - 1)}")
    ratios: list[float] = []
    for one in rows:
        theirs = ["refused", *[""] * 4] if one.theirs is None else _counts(one.theirs)
        ratio = one.spent.ratio
        ratios += [] if ratio is None else [ratio]
        times = [f"{one.spent.total:.0f}", "", ""]
        if ratio is not None:
            times[1:] = [f"{one.spent.theirs:.0f}", f"{ratio:.2f}"]
        print(f"| {' | '.join([one.name, *_counts(one.ours), *theirs, *times])} |", flush=True)
    if ratios:
        print(f"\nTime to compile, tilec / tileiras: median {median(ratios):.2f}, "
              f"most {max(ratios):.2f} of {len(ratios)} rows.\n")  # fmt: skip


def _counts(code: Code) -> list[str]:
    copies = sum(n for opcode, n in code.opcodes.items() if opcode.startswith(_ENGINE))
    found = (code.mix["tensor"], copies, code.mix["spills"], code.registers, code.stack)
    return [str(one) for one in found]


if __name__ == "__main__":
    sys.exit(main())

"""What tuning gains over the compiler's own choices, for the rows of speed.py.

    python benchmarks/tuned.py --gpu h100 b200 --only "matmul f16 4096" attention

Each row is tuned as `tilec time --cutile --tune` does it, a program in a process of its own for
each candidate: some twenty times as long as timing it. Needs cuda-tile (group `export`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import exp, log
from pathlib import Path

from speed_rows import ROWS, Row
from tile_time.tune import Search, Tuning
from tile_time.tuned import Script

from tile_core.diagnostics import TileError
from tile_core.machines import Machine, builtin_machines, find_machine

HERE = Path(__file__).resolve().parent


def main(argv: Sequence[str] | None = None) -> int:
    """Tune and print, a table for each GPU."""
    given = _parser().parse_args(argv)
    for gpu in given.gpu:
        machine = find_machine(gpu, builtin_machines())
        rows = [row for row in ROWS if _wanted(row, machine, given.only)]
        print(f"**{gpu}**\n\n| kernel | own choice, us | tuned, us | gain | options |\n"
              "|---|--:|--:|--:|---|", flush=True)  # fmt: skip
        with ThreadPoolExecutor(given.jobs) as pool:
            gains = list(pool.map(lambda row, m=machine: _row(row, m), rows))
        known = [gain for gain in gains if gain is not None]
        if known:
            mean = exp(sum(map(log, known)) / len(known))
            print(f"\nGeometric mean of the gain {mean:.3f}, most {max(known):.2f}, over 1.05 in "
                  f"{sum(gain > 1.05 for gain in known)} of {len(known)} rows.\n")  # fmt: skip
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--gpu", nargs="+", default=["h100", "b200"])
    parser.add_argument("--only", nargs="+", default=[], help="rows with one of these in the name")
    parser.add_argument("--jobs", type=int, default=1)
    return parser


def _wanted(row: Row, machine: Machine, only: Sequence[str]) -> bool:
    fits = int(machine.target.removeprefix("sm_")) >= row.capability
    return fits and (not only or any(part in row.name for part in only))


def _row(row: Row, machine: Machine) -> float | None:
    """Tune a row and print it; what it gains."""
    program = [str(HERE / "one_row.py"), "--", row.name, str(int(machine.chip.sms))]
    try:
        found = Search(Script(["time", "--cutile", f"--gpu={machine.name}"], program)).run()
    except TileError as error:
        print(f"{row.name}: {error.message}", file=sys.stderr)
        return None
    own, best = found.first.us, found.best.us
    assert own is not None, "raised otherwise"
    assert best is not None, "no slower than its own choice"
    options = " ".join(f"{key}={value}" for key, value in found.best.options.items())
    print(f"| {row.name} | {own:.1f} | {best:.1f} | {own / best:.2f} | {options} |", flush=True)
    for line in _close(found):
        print(line, file=sys.stderr, flush=True)
    return own / best


def _close(found: Tuning) -> list[str]:
    """What failed, for whoever looks at the run."""
    return [f"  {one.text}: {one.why}" for one in found.candidates if one.us is None]


if __name__ == "__main__":
    sys.exit(main())

"""Runs the examples through this compiler and through tileiras, and compares what both codes do.

    python tools/witness.py --gpu-name sm_90 sm_100 --schedule late random
    python tools/witness.py --tileiras build/releases/13.5.37/nvidia/cu13/bin/tileiras

For each example: whether the arrays are the same, faults of either code in check mode, and the
counts of both. Exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tile_sim import Module
from tile_sim.machine.launch import SCHEDULES
from tile_sim.peer import tileiras
from tile_sim.peer.comparison import Comparison, compare

import tile_core

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import cases  # pyright: ignore[reportMissingImports]

#: Between two orders of summing f16 and f32.
_TOLERANCE = 4e-3


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    theirs = tileiras.find(given.tileiras)
    wrong = 0
    for arch in given.gpu_name:
        for name in given.only or cases.NAMES:
            for schedule, found in _compared(theirs, name, arch, given.schedule).items():
                word = "agree" if found.agree else "DIFFER"
                print(f"{name} {arch} {schedule}: {word}", flush=True)
                if given.verbose or not found.agree:
                    print(found.text, end="")
                wrong += not found.agree
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--gpu-name", nargs="+", default=["sm_80", "sm_90", "sm_100", "sm_120"])
    parser.add_argument("--schedule", nargs="+", choices=SCHEDULES, default=["late"])
    parser.add_argument("--only", nargs="+", choices=cases.NAMES, help="these examples")
    parser.add_argument("--tileiras", help="which tileiras, if not the installed one")
    parser.add_argument("--verbose", action="store_true", help="counts of all, side by side")
    return parser


def _compared(
    theirs: tileiras.Tileiras, name: str, arch: str, schedules: Sequence[str]
) -> dict[str, Comparison]:
    """An example's case under each schedule, the codes compiled once."""
    case = cases.case(name)
    ours = tile_core.compile(case.bytecode, arch, emit="ptx").output
    text = ours.decode() if isinstance(ours, bytes) else str(ours)
    codes = {"tilec": Module(text), "tileiras": theirs.compile(case.bytecode, arch).load(arch)}
    return {
        schedule: compare(
            codes, name, case.grid, case.flat, rtol=_TOLERANCE, check=True, schedule=schedule
        )
        for schedule in schedules
    }


if __name__ == "__main__":
    sys.exit(main())

"""What a pass is worth: the examples run in the simulator with it and without it.

    python benchmarks/passes.py tileas/tileas-remove-layout-conversions -O 3

Counts are exact: warp instructions issued, warp shuffles and the like, shared-memory wavefronts,
barriers passed. A ratio below 1 is work that the pass saves; results are checked in both runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tile_sim import Module

import tile_core

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from cases import NAMES, case


class Counts(NamedTuple):
    """Of one launch, all warps together."""

    warps: int
    shuffles: int
    wavefronts: int
    barriers: int


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    options = {"layout-strategy": given.layout_strategy} if given.layout_strategy else {}
    print(f"{given.passes[0]}, {given.gpu_name} -O{given.opt_level}: with it / without it")
    print(f"{'kernel':<20}{'warp instr':>20}{'shuffles':>16}{'wavefronts':>16}{'barriers':>14}")
    for name in given.only or NAMES:
        with_it, without = (
            _run(name, given.gpu_name, given.opt_level, options, left_out)
            for left_out in ((), tuple(given.passes))
        )
        columns = [f"{a}/{b}" for a, b in zip(with_it, without, strict=True)]
        ratio = with_it.warps / without.warps
        widths = zip(columns, (20, 16, 16, 14), strict=True)
        print(f"{name:<20}" + "".join(f"{c:>{w}}" for c, w in widths) + f"   {ratio:.2f}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("passes", nargs="+", help="what to leave out, as segment/id")
    parser.add_argument("--gpu-name", default="sm_90")
    parser.add_argument("-O", dest="opt_level", type=int, default=3)
    parser.add_argument("--layout-strategy")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="EXAMPLE")
    return parser


def _run(
    name: str, target: str, level: int, options: dict[str, str], left_out: tuple[str, ...]
) -> Counts:
    example = case(name)
    made = tile_core.compile(
        example.bytecode, target, opt_level=level, options=options, emit="ptx", without=left_out
    )
    module = Module(str(made.stage("ptx")))
    (entry,) = module.programs
    report = module.launch(entry, example.grid, None, example.flat, stats=True)
    wrong = example.errors()
    if wrong:
        raise SystemExit(f"{name}: {wrong[0]}")
    cost = report.cost
    assert cost is not None
    warp = cost.classes.get("warp")
    return Counts(
        cost.total.warps,
        warp.warps if warp else 0,
        cost.total.shared_wavefronts,
        cost.total.barrier_waits,
    )


if __name__ == "__main__":
    sys.exit(main())

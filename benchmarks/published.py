"""tileiras' code in the model against times that NVIDIA measured on a B200.

cuTile's repository keeps what its tuner measured on a GPU: test/benchmark_tuning.json of
https://github.com/NVIDIA/cutile-python, with the tiles and hints it chose. The same launches, of
kernels of the same form, are compiled by the installed tileiras and timed by the model. Nothing of
it was used to fit the model. (What tileiras was at the time, and which clock the GPU ran at, is not
told.)

What was measured reaches from an event before a launch to one behind it (cext/tile_kernel.cpp,
`benchmark`), so the machine file's time of a launch is added to the model's. Kernels that wait for
other CTAs, of which the model says so in a remark, are shown and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ladders import rank_correlation
from speed import run_rows
from speed_rows import (
    Row,
    attention_row,
    batched_row,
    matmul_row,
    mover_row,
    persistent_row,
    rms_row,
    split_row,
)
from tile_time.result import ALONE

from tile_core.machines import builtin_machines

GPU = "b200"


@dataclass(frozen=True)
class Measured:
    """A launch and its time in microseconds."""

    row: Row
    us: float


def _rms(
    kind: str, columns: int, form: str, tile: tuple[int, int], us: float, warps: int = 4
) -> Measured:
    hints: dict[str, Any] = {} if form == "persistent" else {"num_worker_warps": warps}
    if form == "regular":
        hints["occupancy"] = 16
    row = rms_row(kind, 65536, columns, form, tile)
    return Measured(replace(row, hints=hints), us)


B200 = (
    Measured(matmul_row("f16", 4096, 4096, 4096, (256, 256, 64)), 96.3),
    Measured(persistent_row("f16", 4096, 4096, 4096, (256, 256, 64), 2), 97.7),
    Measured(batched_row("e4m3", 4, 8192, 8192, 2000, (256, 256, 128)), 600.7),
    Measured(split_row("f16", 256, 256, 4096), 23.1),
    Measured(attention_row(32, 32, 8192, 8192, 128, True, (128, 128)), 587.5),
    Measured(attention_row(32, 32, 1, 1024, 128, False, (64, 256), occupancy=4), 16.2),
    Measured(mover_row("transpose", "f16", (2048, 2028), (64, 64)), 15.1),
    _rms("f16", 1024, "persistent", (8, 1024), 67.2),
    _rms("f32", 1024, "persistent", (16, 1024), 89.4),
    _rms("f16", 2048, "persistent", (4, 2048), 129.7),
    _rms("f32", 2048, "persistent", (4, 2048), 172.9),
    _rms("f16", 4096, "persistent", (2, 4096), 238.3),
    _rms("f16", 1024, "gather", (1, 512), 56.1),
    _rms("f32", 1024, "gather", (1, 256), 84.6),
    _rms("f16", 2048, "gather", (1, 1024), 88.6),
    _rms("f16", 4096, "gather", (1, 1024), 162.6),
    _rms("f32", 4096, "gather", (1, 2048), 311.5, 8),
    _rms("f16", 1024, "regular", (1, 1024), 83.0),
    _rms("f32", 1024, "regular", (1, 1024), 92.3),
    _rms("f16", 2048, "regular", (1, 1024), 124.2),
    _rms("f32", 2048, "regular", (1, 512), 171.0),
    _rms("f16", 4096, "regular", (1, 1024), 214.5),
)
ROWS = tuple(measured.row for measured in B200)


def show_published(names: list[str], jobs: int = 1, cache: str | None = None) -> None:
    """A table of times, and how well they agree."""
    wanted = [m for m in B200 if not names or any(name in m.row.name for name in names)]
    options = [] if cache is None else ["--cache", cache]
    found = run_rows(
        [m.row for m in wanted], [GPU], ["tileiras"], jobs, "published:ROWS", options
    )[GPU]  # fmt: skip
    launch = builtin_machines()[GPU].launch.stream
    print("| tileiras' code on B200 | measured, us | model and launch, us | error | binds |")
    print("|---|--:|--:|--:|---|")
    counted: list[tuple[float, float]] = []
    for m in wanted:
        one = found[m.row.name]["tileiras"]
        if "us" not in one:
            print(f"| {m.row.name} | {m.us:g} | failed | | {one.get('error', '')} |")
            continue
        binds = ", ".join(f"{cause} {share:.0%}" for cause, share in one["binds"])
        us = one["us"] + launch
        alone = ALONE in one["remarks"]
        if not alone:
            counted.append((m.us, us))
        said = f"{us / m.us - 1:+.0%}" + (", not counted" if alone else "")
        print(f"| {m.row.name} | {m.us:g} | {us:.1f} | {said} | {binds} |")
    errors = sorted(abs(us / measured - 1) for measured, us in counted)
    order = rank_correlation([m for m, _ in counted], [us for _, us in counted])
    print(f"\nmean absolute error {sum(errors) / len(errors):.1%}, median "
          f"{errors[len(errors) // 2]:.1%}, largest {errors[-1]:.1%} of {len(errors)}, rank "
          f"correlation {order:.2f}")  # fmt: skip

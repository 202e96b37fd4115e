"""tileiras' code in the model against times that NVIDIA measured on a B200.

cuTile's repository keeps what its tuner measured on a GPU: test/benchmark_tuning.json of
https://github.com/NVIDIA/cutile-python, with the tiles and hints it chose. The same launches, of
kernels of the same form, are compiled by the installed tileiras and timed by the model. Nothing of
it was used to fit the model. (What tileiras was at the time, and which clock the GPU ran at, is not
told.)

What was measured reaches from an event before a launch to one behind it (cext/tile_kernel.cpp,
`benchmark`), so the machine file's time of a launch is added to the model's. Kernels that wait for
other CTAs, of which the model says so in a remark, are shown and not counted.

The regular norm asks for 16 CTAs an SM on sm_100 (test/kernels/rms_norm.py), "expected number of
active CTAs per SM" by cuTile's documentation. Today's tileiras writes the same code as for 8, whose
limit of registers leaves room for 9. Such rows are timed twice: as they are, and with the limit of
registers that lets in as many CTAs as were asked for. The hint is there for speed, so the faster of
the two is taken for what was measured, whatever was measured. Both stand in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def as_asked(row: Row) -> Row | None:
    """The row with the limit of registers that its hint of CTAs an SM needs; None without one."""
    asked, warps = row.hints.get("occupancy"), row.hints.get("num_worker_warps")
    if not asked or not warps:
        return None
    each = _REGISTERS // (asked * warps * _LANES) // _REGISTER_UNIT * _REGISTER_UNIT
    return replace(row, name=f"{row.name}, {asked} CTAs an SM", registers=each)


#: Registers of an SM, threads of a warp, and of how many registers a thread's are a multiple (CUDA
#: programming guide: 256 a warp).
_REGISTERS, _LANES, _REGISTER_UNIT = 65536, 32, 8
ROWS = tuple(
    row for measured in B200 for row in (measured.row, as_asked(measured.row)) if row is not None
)


def show_published(names: list[str], jobs: int = 1, cache: str | None = None) -> None:
    """A table of times, and how well they agree."""
    wanted = [m for m in B200 if not names or any(name in m.row.name for name in names)]
    rows = [r for m in wanted for r in (m.row, as_asked(m.row)) if r is not None]
    options = [] if cache is None else ["--cache", cache]
    found = run_rows(rows, [GPU], ["tileiras"], jobs, "published:ROWS", options)[GPU]
    launch = builtin_machines()[GPU].launch.stream
    print("| tileiras' code on B200 | measured, us | model and launch, us | as asked, us | error "
          "| binds |")  # fmt: skip
    print("|---|--:|--:|--:|--:|---|")
    counted: list[tuple[float, float]] = []
    plain: list[tuple[float, float]] = []
    for m in wanted:
        one, other = found[m.row.name]["tileiras"], _as_asked(found, m, launch)
        if "us" not in one:
            print(f"| {m.row.name} | {m.us:g} | failed | | | {one.get('error', '')} |")
            continue
        us = one["us"] + launch
        least = min(us, other.us) if other else us
        alone = ALONE in one["remarks"]
        if not alone:
            counted.append((m.us, least))
            plain.append((m.us, us))
        said = f"{least / m.us - 1:+.0%}" + (", not counted" if alone else "")
        print(f"| {m.row.name} | {m.us:g} | {us:.1f} | {other or ''} | {said} | {_binds(one)} |")
    print(f"\n{_summary(counted)}\nWithout the column of what was asked for: {_summary(plain)}")


@dataclass(frozen=True)
class _Other:
    """A row as its hint asks for."""

    us: float
    spills: int  # bytes

    def __str__(self) -> str:
        return f"{self.us:.1f} ({self.spills} bytes of spills)"


def _as_asked(found: Mapping[str, Any], m: Measured, launch: float) -> _Other | None:
    """Where today's code leaves fewer CTAs on an SM than the row asks for."""
    row = as_asked(m.row)
    if row is None:
        return None
    plain, one = (found[name]["tileiras"] for name in (m.row.name, row.name))
    if "us" not in one or plain.get("ctas_per_sm", 0) >= m.row.hints["occupancy"]:
        return None
    return _Other(one["us"] + launch, one["spills"])


def _binds(one: Mapping[str, Any]) -> str:
    return ", ".join(f"{cause} {share:.0%}" for cause, share in one["binds"])


def _summary(pairs: list[tuple[float, float]]) -> str:
    errors = sorted(abs(us / measured - 1) for measured, us in pairs)
    order = rank_correlation([m for m, _ in pairs], [us for _, us in pairs])
    return (f"mean absolute error {sum(errors) / len(errors):.1%}, median "
            f"{errors[len(errors) // 2]:.1%}, largest {errors[-1]:.1%} of {len(errors)}, rank "
            f"correlation {order:.2f}")  # fmt: skip

"""Cost reports as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tile_sim.errors import Where
from tile_sim.machine.counters import Cost, class_of
from tile_sim.program.program import Program
from tile_sim.ptx.syntax import Instr

_LINES_SHOWN = 20
#: What is shown of a cost: the words, and the field (or property) of `Cost`.
FIGURES = (
    ("warp instructions", "warps"), ("thread instructions", "threads"),
    ("global requests", "global_requests"), ("global sectors", "global_sectors"),
    ("shared requests", "shared_requests"), ("shared wavefronts", "shared_wavefronts"),
    ("bank conflicts", "bank_conflicts"), ("LSU global bytes", "lsu_global_bytes"),
    ("LSU shared bytes", "lsu_shared_bytes"), ("cp.async bytes", "cp_async_bytes"),
    ("TMA bytes", "tma_bytes"), ("tensor-core multiply-adds", "macs"),
    ("barrier waits", "barrier_waits"),
)  # fmt: skip


@dataclass
class CostReport:
    """What one launch cost: for the kernel, by class of instruction, by source line.

    Lines are those of the source through `.loc` ("file:line"), else of the PTX ("ptx:line");
    `instructions` has every instruction that the kernel contains, in the order of the text.
    """

    kernel: str
    total: Cost
    classes: dict[str, Cost]
    lines: dict[str, Cost]
    instructions: list[tuple[Where, str, Cost]]

    @property
    def json(self) -> dict[str, Any]:
        """Only numbers, texts, lists and dicts; counts that are zero are left out."""
        return {
            "kernel": self.kernel,
            "total": self.total.as_dict(),
            "classes": {name: cost.as_dict() for name, cost in self.classes.items()},
            "lines": {line: cost.as_dict() for line, cost in self.lines.items()},
            "instructions": [
                {"line": where.line, "source": where.source, "ptx": text, **cost.as_dict()}
                for where, text, cost in self.instructions
                if cost.warps
            ],
        }

    @property
    def text(self) -> str:
        """For people; the lines that issue most, most first."""
        out = [f"cost of {self.kernel}", *_summary(self.total), "", "  warp instructions by class"]
        for name, cost in sorted(self.classes.items(), key=lambda pair: -pair[1].warps):
            if cost.warps:
                out.append(f"    {name:<12} {cost.warps:>12}")
        out += ["", f"  {'warp instr':>12} {'sectors':>10} {'coalesced':>9} {'conflicts':>9}  line"]
        busy = sorted(self.lines.items(), key=lambda pair: -pair[1].warps)
        for line, cost in busy[:_LINES_SHOWN]:
            share = "" if cost.coalescing is None else f"{cost.coalescing:.0%}"
            out.append(
                f"  {cost.warps:>12} {cost.global_sectors:>10} {share:>9} "
                f"{cost.bank_conflicts:>9}  {line}"
            )
        if len(busy) > _LINES_SHOWN:
            out.append(f"  ... and {len(busy) - _LINES_SHOWN} more lines")
        return "\n".join(out) + "\n"


def make_report(program: Program, found: Iterable[tuple[Instr, Cost]]) -> CostReport:
    """Sums over the instructions of a kernel."""
    report = CostReport(program.entry.name, Cost(), {}, {}, [])
    for ins, cost in found:
        where = program.where(ins)
        line = ":".join(where.source.rsplit(":")[:2]) if where.source else f"ptx:{where.line}"
        report.instructions.append((where, ins.spelling, cost))
        report.total.add(cost)
        report.classes.setdefault(class_of(ins), Cost()).add(cost)
        if cost.warps:
            report.lines.setdefault(line, Cost()).add(cost)
    return report


def _summary(cost: Cost) -> list[str]:
    rows = [(name, getattr(cost, field)) for name, field in FIGURES]
    out = [f"  {name:<26} {value:>14}" for name, value in rows if value]
    if cost.coalescing is not None:
        out.append(f"  {'coalescing efficiency':<26} {cost.coalescing:>13.1%}")
    return out

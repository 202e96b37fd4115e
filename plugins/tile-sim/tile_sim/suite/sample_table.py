"""What the samples of the cuTile repository gave, as lines and as a Markdown table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

#: The samples, in the order of the table.
SAMPLE_NAMES = (
    "VectorAddition", "VectorAdd_quickstart", "Transpose", "FFT", "MatMul", "BatchMatMul",
    "AllGatherMatmul", "BlockScaledMatMul", "AttentionFMHA", "LayerNorm", "MoE",
)  # fmt: skip

_PASSED = "Correctness check passed"


class Compiled(Protocol):
    """A kernel, named SAMPLE.HASH, compiled for a target; `error` is empty where it was."""

    @property
    def file(self) -> str: ...
    @property
    def error(self) -> str: ...


@dataclass(frozen=True)
class Line:
    """One result of a sample at a capability, or why there is none.

    `share` is the largest difference from the reference in parts of what is tolerated; `checks` are
    those of its own that an unchanged program says it has passed.
    """

    sample: str
    capability: str
    name: str
    error: str = ""
    skipped: str = ""
    share: float | None = None
    largest: float | None = None
    rtol: float = 0.0
    atol: float = 0.0
    checks: int = 0

    @property
    def good(self) -> bool:
        return not self.error and (self.share is None or self.share <= 1)

    def text(self) -> str:
        """The line for a person who waits."""
        what = self.error or self.skipped or ("agrees" if self.good else "differs")
        return f"{self.sample} {self.capability} {self.name}: {what} {self.cell()}".strip()

    def tolerance(self) -> str:
        """How far a number may be from the reference."""
        parts = [f"{self.rtol:.1e} of it"] if self.rtol else []
        parts += [f"{self.atol:.1e}"] if self.atol else []
        return " + ".join(parts) or "0"

    def cell(self) -> str:
        """The largest difference; bold where it is too large."""
        if self.error:
            return f"**fails** after {self.checks} checks" if self.checks else "**fails**"
        if self.share is None:
            return "not run" if self.skipped else f"{self.checks} checks pass"
        off = "0" if not self.largest else f"{self.largest:.1e}"
        return off if self.good else f"**{off}**"


def as_lines(sample: str, capability: str, output: str, error: str, ended: bool) -> list[Line]:
    """What a process of `sample_process` printed, and whether it ended well or badly by itself.

    Where it says nothing of what went wrong, the last line of `error` does.
    """
    lines: list[Line] = []
    checks = error.count(_PASSED)
    for text in output.splitlines():
        record = json.loads(text)
        known = {k: v for k, v in record.items() if k in Line.__dataclass_fields__}
        lines.append(Line(sample, capability, checks=checks, **known))
    if not lines or not (ended or lines[-1].error):
        last = error.strip().splitlines() or ["ended without a result"]
        lines.append(Line(sample, capability, "", error=last[-1], checks=checks))
    return lines


def render(lines: Sequence[Line], compiled: Iterable[Compiled], capabilities: Sequence[str]) -> str:
    """A row for each result, with its largest difference at each capability."""
    rows = ["| sample | input | tolerated | " + " | ".join(capabilities) + " |"]
    rows.append("|---" * (len(capabilities) + 3) + "|")
    cells: dict[tuple[str, str], dict[str, Line]] = defaultdict(dict)
    for line in lines:
        cells[line.sample, line.name][line.capability] = line
    for (sample, name), found in cells.items():
        row = [found[c].cell() if c in found else "" for c in capabilities]
        tolerated = {line.tolerance() for line in found.values() if line.share is not None}
        if any(row):
            rows.append(f"| {' | '.join([sample, name, ', '.join(sorted(tolerated)), *row])} |")
    rows += ["", *_failures(lines)]
    return "\n".join([*rows, *_compilations(compiled)]).rstrip()


def _failures(lines: Sequence[Line]) -> list[str]:
    return [
        f"- {line.sample} at {line.capability}: {line.error or line.skipped}"
        for line in lines if line.error or line.skipped
    ]  # fmt: skip


def _compilations(compiled: Iterable[Compiled]) -> list[str]:
    """How many kernels of each sample compiled, of how many."""
    tried: dict[str, list[Compiled]] = defaultdict(list)
    for one in compiled:
        tried[one.file.split(".")[0]].append(one)
    if not tried:
        return []
    rows = ["", "| sample | kernels | compilations | compiled |", "|---|---|---|---|"]
    for sample in [name for name in SAMPLE_NAMES if name in tried]:
        found = tried[sample]
        good = sum(not one.error for one in found)
        rows.append(f"| {sample} | {len({o.file for o in found})} | {len(found)} | {good} |")
    errors = sorted({one.error for found in tried.values() for one in found if one.error})
    return [*rows, *(f"- {error}" for error in errors)]

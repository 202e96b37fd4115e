"""Two compilers, one program: both codes on the same inputs, and what each of them did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_sim.errors import SimError
from tile_sim.findings import by_line
from tile_sim.machine.launch import LaunchReport
from tile_sim.module import Module
from tile_sim.reference import difference
from tile_sim.report import FIGURES


@dataclass
class Side:
    """One code: the arguments after its launch, and what the simulator says of it.

    `error` is why it did not get to the end.
    """

    name: str
    values: list[Any]
    report: LaunchReport | None = None
    error: SimError | None = None

    @property
    def faults(self) -> list[str]:
        """Errors and findings of this code alone."""
        if self.error is not None:
            return [str(self.error)]
        return [str(line) for line in by_line(self.report.findings if self.report else ())]


@dataclass
class Comparison:
    """What two codes did with the same inputs; `notes` have a sentence for each array."""

    first: Side
    second: Side
    differing: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def agree(self) -> bool:
        """Whether neither has a fault and no array differs."""
        return not self.differing and not self.first.faults and not self.second.faults

    @property
    def counts(self) -> list[tuple[str, int, int]]:
        """What each executed; what neither did is left out. Empty without both reports."""
        costs = [side.report.cost if side.report else None for side in (self.first, self.second)]
        if costs[0] is None or costs[1] is None:
            return []
        a, b = costs[0].total, costs[1].total
        rows = [(name, int(getattr(a, key)), int(getattr(b, key))) for name, key in FIGURES]
        return [row for row in rows if row[1] or row[2]]

    @property
    def text(self) -> str:
        """For people: arrays, faults, counts side by side."""
        lines = list(self.notes)
        for side in (self.first, self.second):
            lines += [f"{side.name}: {fault}" for fault in side.faults]
        if self.counts:
            lines += ["", f"{'':<26} {self.first.name:>14} {self.second.name:>14} {'ratio':>8}"]
        for name, a, b in self.counts:
            ratio = f"{a / b:8.2f}" if b else f"{'-':>8}"
            lines.append(f"{name:<26} {a:>14} {b:>14} {ratio}")
        return "\n".join(lines) + "\n"


def compare(
    codes: Mapping[str, Module],
    entry: str,
    grid: tuple[int, int, int],
    arguments: Sequence[Any],
    *,
    rtol: float = 1e-3,
    labels: Mapping[int, int] | None = None,
    **launch: Any,
) -> Comparison:
    """Launch `entry` of two modules on copies of the arguments.

    Arrays have to be equal within `rtol`, relative and absolute; integers exactly. `labels` are the
    numbers that arguments go by, if not their own. `launch` goes to `Module.launch`. The arguments
    themselves stay as they are.
    """
    (name, module), (other, theirs) = codes.items()
    found = Comparison(
        _run(name, module, entry, grid, arguments, launch),
        _run(other, theirs, entry, grid, arguments, launch),
    )
    if found.first.error is not None or found.second.error is not None:
        return found
    seen: set[int] = set()
    for number, value in enumerate(arguments):
        if isinstance(value, np.ndarray) and id(value) not in seen:
            seen.add(id(value))
            _array(found, number, rtol, (labels or {}).get(number, number))
    return found


def _run(
    name: str, module: Module, entry: str, grid: Any, arguments: Sequence[Any], launch: Any
) -> Side:
    copies = {id(a): a.copy() for a in arguments if isinstance(a, np.ndarray)}
    side = Side(name, [copies.get(id(value), value) for value in arguments])
    try:
        side.report = module.launch(entry, grid, None, side.values, stats=True, **launch)
    except SimError as error:
        side.error = error
    return side


def _array(found: Comparison, number: int, rtol: float, label: int) -> None:
    """A sentence about one array, and whether it differs."""
    a, b = found.first.values[number], found.second.values[number]
    if a.tobytes() == b.tobytes():
        found.notes.append(f"argument {label}: the same bits")
        return
    bad, sentence = difference(a, b, rtol)
    if bad:
        found.differing += 1
        sentence = f"{sentence} of {found.second.name}"
    else:
        raw = [np.ascontiguousarray(x).view(np.uint8).reshape(x.size, -1) for x in (a, b)]
        count = int((raw[0] != raw[1]).any(axis=1).sum())
        sentence = f"{count} of {a.size} elements differ, all within {rtol:g}"
    found.notes.append(f"argument {label}: {sentence}")

"""Numbers of a machine file, and what a GPU says they are.

A machine file is changed where it stands, one number at a time: its comments and order stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.diagnostics import UsageError
from tile_core.machines import Machine
from tile_time.mechanisms import NUMBERS

#: A measured number differs when it is off by more than this; below, the file's stands.
DIFFERS = 0.02
_SECTION = re.compile(r"^\[([\w-]+)\]\s*$")


@dataclass(frozen=True)
class Measured:
    """One number: what the file says, and what was measured."""

    path: str
    file: float
    value: float

    @property
    def change(self) -> float:
        return self.value / self.file - 1 if self.file else float("inf")


def measured_numbers(values: Mapping[str, float], machine: Machine) -> list[Measured]:
    """The machine's numbers that follow from measured mechanisms, by their names."""
    found: list[Measured] = []
    for number in NUMBERS:
        if not all(name in values for name in number.mechanisms):
            continue
        old: Any = machine
        for part in number.path.split("."):
            old = getattr(old, part)
        value = number.of(*(values[name] for name in number.mechanisms))
        if old and value > 0:
            found.append(Measured(number.path, float(old), _rounded(value)))
    return found


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def clock_number(samples: Sequence[Mapping[str, Any]], machine: Machine) -> Measured | None:
    """`clock.full_tensor` from the largest product that was timed with its clock.

    The clock falls linearly with the use of the tensor cores; of a product that used a share u, the
    clock at u = 1 follows.
    """
    best: tuple[float, float] | None = None
    for case in samples:
        mhz = case.get("clocks", {}).get("sm_mhz")
        if not mhz or not case.get("tflops"):
            continue
        peak = machine.peak_flops_per_clk(16) * machine.chip.sms * mhz / 1e6
        use = case["tflops"] / peak
        if 0.5 < use <= 1.05 and (best is None or use > best[0]):
            best = use, mhz
    if best is None:
        return None
    boost = machine.clock.boost
    full = boost - (boost - best[1]) / min(best[0], 1.0)
    return Measured("clock.full_tensor", machine.clock.full_tensor, float(round(full)))


def with_measured(text: str, numbers: Sequence[Measured], source: str) -> str:
    """The text of a machine file with measured values, their source, and confidence A.

    A number that the file has from its base is added to its section. Raises UsageError for a number
    that has no section.
    """
    for number in numbers:
        text = _with_number(text, number, source)
    return text


def _with_number(text: str, number: Measured, source: str) -> str:
    section, *rest = number.path.split(".")
    key, inner = rest[0].replace("_", "-"), (rest[1] if len(rest) > 1 else None)
    lines, now = text.splitlines(), None
    for index, line in enumerate(lines):
        if found := _SECTION.match(line):
            now = found[1]
        if now == section and re.match(rf"{re.escape(key)}\s*=", line):
            lines[index] = _changed(line, inner or key, number.value, source)
            return "\n".join(lines) + "\n"
    raise UsageError(
        f"the machine file has no number '{number.path}' of its own",
        hint="it comes from its base: measure that GPU, or write the number into the file first",
    )


def _changed(line: str, key: str, value: float, source: str) -> str:
    """`key = [..., "unit", ..., ...]`, alone on its line or within braces, with a new value."""
    pattern = rf'({re.escape(key)}\s*=\s*)\[[^,\]]+,\s*("[^"]*")[^\]]*\]'
    return re.sub(pattern, rf'\g<1>[{value:g}, \2, "{source}", "A"]', line, count=1)

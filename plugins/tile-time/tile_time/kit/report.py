"""What a kit's results say, beside the model: numbers of mechanisms, times of kernels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from tile_core.diagnostics import UsageError
from tile_core.machines import Machine
from tile_time.kit.measured import DIFFERS, Measured, clock_number, measured_numbers

Case = Mapping[str, Any]


@dataclass(frozen=True)
class Compared:
    """A launch: what it took, and what the model gives (None: it was not asked, or failed)."""

    name: str
    us: float
    model_us: float | None
    note: str = ""

    @property
    def error(self) -> float | None:
        return None if self.model_us is None else self.model_us / self.us - 1


@dataclass
class Report:
    """The results of one run of a kit."""

    device: Mapping[str, Any]
    target: str
    began: str
    kit: Mapping[str, str]
    parts: Mapping[str, Sequence[Case]]
    numbers: list[Measured] = field(default_factory=list)
    times: list[Compared] = field(default_factory=list)

    @property
    def simulated(self) -> bool:
        return bool(self.device["simulated"])

    @property
    def cases(self) -> Iterator[tuple[str, Case]]:
        for part, cases in self.parts.items():
            for case in cases:
                yield part, case

    @property
    def failed(self) -> list[tuple[str, Case]]:
        return [(part, case) for part, case in self.cases if case["ok"] is False]

    @property
    def source(self) -> str:
        """What a machine file says of a measured number."""
        return f"measured {self.began[:10]}, {self.device['name']}"


def read_results(path: Path) -> Report:
    """Results as the kit's runner writes them.

    Raises:
        UsageError: the file cannot be read, or holds something else.
    """
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"'{path}' is no JSON: {error}") from None
    try:
        report = Report(data["device"], data["target"], data["began"], data["kit"], data["parts"])
        _ = report.simulated, list(report.failed), report.device["name"]
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"'{path}' holds no results of a GPU kit: {error} is missing",
            hint="give results/results.json of a run whose part 'device' ended",
        ) from None
    return report


def compare_numbers(report: Report, machine: Machine) -> None:
    """Fill in the machine's numbers that were measured."""
    values = {
        case["name"]: float(case["value"])
        for _, case in report.cases if case["kind"] == "mechanism" and case["ok"]
    }  # fmt: skip
    report.numbers = measured_numbers(values, machine)
    clock = clock_number([case for _, case in report.cases if "tflops" in case], machine)
    if clock is not None:
        report.numbers.append(clock)


def differing(report: Report) -> list[Measured]:
    return [number for number in report.numbers if abs(number.change) > DIFFERS]


def compare_times(report: Report, machine: Machine, kit: Path | None) -> None:
    """Times of the kit's launches, and those that the model gives for the same cubins."""
    from tile_time.kit.modelled import modelled_us

    for _, case in report.cases:
        if case["kind"] != "time" or not case["ok"]:
            continue
        us, note = (None, "the kit is not here") if kit is None else modelled_us(
            kit / report.target, case["name"], machine
        )  # fmt: skip
        report.times.append(Compared(case["name"], case["us"], us, note))


def as_markdown(report: Report, machine: Machine) -> str:
    """docs/hardware.md: what was run, what was not as the simulator says, numbers, times."""
    device = report.device
    lines = [
        "# On hardware", "",
        "Written by `tilec gpu-report` from the results of a GPU kit (`make gpu-kit`).", "",
        f"{device['name']}, {device['sms']} SMs, driver {device['driver']}, {report.began}; "
        f"kit of tilec {report.kit.get('tilec', '?')} at {report.kit.get('commit', '?')}, "
        f"cubins for {report.target}.", "",
    ]  # fmt: skip
    if report.simulated:
        lines += ["**A simulated driver: nothing here was measured.**", ""]
    lines += [*_parts(report), *_failures(report), *_told(report), *_numbers(report, machine),
              *_times(report)]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def _parts(report: Report) -> list[str]:
    lines = ["| part | good | failed | skipped |", "|---|--:|--:|--:|"]
    for name, cases in report.parts.items():
        count = [sum(case["ok"] is state for case in cases) for state in (True, False, None)]
        lines.append(f"| {name} | {count[0]} | {count[1]} | {count[2]} |")
    return [*lines, ""]


def _failures(report: Report) -> list[str]:
    if not report.failed:
        return []
    lines = ["## Not as the simulator says", "", "| part | case | what |", "|---|---|---|"]
    for part, case in report.failed:
        lines.append(f"| {part} | {case['name']} | {_why(case)} |")
    return [*lines, ""]


def _why(case: Case) -> str:
    if "error" in case:
        return str(case["error"]).replace("|", "\\|")
    wrong = [array for array in case.get("arrays", ()) if not array["ok"]]
    return "; ".join(
        f"array {a['array']}: {a['wrong']} of {a['elements']} wrong, first {a['first']}: "
        f"{a['got']} for {a['wanted']}" for a in wrong
    )  # fmt: skip


def _told(report: Report) -> list[str]:
    """What nobody knew, and the rows of the simulator's README that these launches settle."""
    told = [case for _, case in report.cases if "accepted" in case]
    lines: list[str] = []
    if told:
        lines += ["## Told by the driver", "", "| what | works |", "|---|---|"]
        lines += [f"| {c['name']} | {'yes' if c['accepted'] else _why(c)} |" for c in told]
        lines.append("")
    rows: dict[str, list[bool | None]] = {}
    for case in report.parts.get("open", ()):
        rows.setdefault(case["row"], []).append(case["ok"])
    if rows:
        lines += ["## What the ISA leaves open", "", "| reading of the simulator | launches | as "
                  "the hardware's |", "|---|--:|---|"]  # fmt: skip
        for row, states in rows.items():
            ran = [state for state in states if state is not None]
            verdict = "not run" if not ran else "yes" if all(ran) else f"{ran.count(False)} differ"
            lines.append(f"| {row} | {len(ran)} | {verdict} |")
        lines.append("")
    return lines


def _numbers(report: Report, machine: Machine) -> list[str]:
    if not report.numbers:
        return []
    lines = ["## Numbers of the machine", "", "| number | unit | file | measured | change |",
             "|---|---|--:|--:|--:|"]  # fmt: skip
    for one in report.numbers:
        unit = machine.sources[one.path].unit
        lines.append(f"| {one.path} | {unit} | {one.file:g} | {one.value:g} | {one.change:+.0%} |")
    return [*lines, ""]


def _times(report: Report) -> list[str]:
    if not report.times:
        return []
    lines = ["## Times", "", "| launch | measured, us | model, us | error |", "|---|--:|--:|--:|"]
    for one in report.times:
        model = one.note if one.model_us is None else f"{one.model_us:.1f}"
        error = "" if one.error is None else f"{one.error:+.0%}"
        lines.append(f"| {one.name} | {one.us:.1f} | {model} | {error} |")
    others = [case for _, case in report.cases if case["kind"] == "framework" and case["ok"]]
    lines += [f"| {case['name']} | {case['us']:.1f} | | |" for case in others]
    errors = [abs(one.error) for one in report.times if one.error is not None]
    if errors:
        lines += ["", f"Mean absolute error of the model {mean(errors):.0%} over {len(errors)} "
                  "launches."]  # fmt: skip
    return [*lines, ""]

"""What a run of a suite showed: figures by outcome, failures by cause, as JSON and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tile_sim.suite.features import ASYNCHRONOUS, NAMES

_DETAIL = 500


@dataclass
class CauseCount:
    """Tests that failed for one cause, with one of them as an example."""

    kind: str
    text: str
    tests: list[str] = field(default_factory=list)
    detail: str = ""


@dataclass
class Summary:
    """One architecture. A test counts where it compiled or launched a kernel.

    `other_failed` are failures of tests that never came as far.
    """

    arch: str
    launching: int
    passed: int
    failed: int
    kernels: int
    kernels_refused: int
    seconds: float
    other_passed: int
    other_failed: int
    skipped: int
    causes: list[CauseCount] = field(default_factory=list)
    #: Of the kernels that ran, how many use what (`tile_sim.suite.features`).
    features: dict[str, int] = field(default_factory=dict)
    slowest: list[tuple[str, float]] = field(default_factory=list)
    #: Launching tests that did not run, as their code had under another pipeline or schedule.
    same: int = 0

    @property
    def share(self) -> float:
        """Percent of the launching tests that passed."""
        return 100.0 * self.passed / self.launching if self.launching else 0.0

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "share": round(self.share, 2)}


def summarise(arch: str, results: Sequence[dict[str, Any]]) -> Summary:
    """Figures and causes, the most frequent first."""
    launching = [r for r in results if _launches(r)]
    others = [r for r in results if not _launches(r)]
    outcomes = Counter(r["outcome"] for r in launching)
    kernels = {tuple(kernel[:3]): kernel[3] for r in results for kernel in r["kernels"]}
    slow = sorted(results, key=lambda r: -r["seconds"])[:10]
    rest = Counter(r["outcome"] for r in others)
    return Summary(
        arch, len(launching), outcomes["passed"] + outcomes["xfailed"], outcomes["failed"],
        len(kernels), sum(not good for good in kernels.values()),
        round(sum(r["seconds"] for r in results), 1), rest["passed"] + rest["xfailed"],
        rest["failed"], rest["skipped"], _causes(results), _features(launching),
        [(r["id"], r["seconds"]) for r in slow], sum("as" in r for r in launching),
    )  # fmt: skip


def _features(results: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Distinct kernels of passed tests that launched, by what their code uses."""
    ran = [r for r in results if r["launched"] and r["outcome"] in ("passed", "xfailed")]
    kernels = {tuple(k[:3]): k[4] for r in ran for k in r["kernels"] if k[3] and len(k) > 4}
    return {name: sum(name in used for used in kernels.values()) for name in NAMES}


def _launches(record: dict[str, Any]) -> bool:
    return bool(record["compiled"] or record["launched"]) and record["outcome"] != "skipped"


def synchronous(records: Sequence[dict[str, Any]], schedule: str) -> dict[str, dict[str, Any]]:
    """Records under `schedule` of tests that need not run under another, by their ids.

    Those whose kernels, also kernels that another test compiled, have no asynchronous work. A test
    that failed may have come less far than it would.
    """
    found: dict[str, dict[str, Any]] = {}
    made = [kernel for record in records for kernel in record["kernels"]]
    quiet = {tuple(k[:3]) for k in made if k[3] and ASYNCHRONOUS not in k[4]}
    for record in records:
        used = (tuple(kernel[:3]) for kernel in [*record["kernels"], *record.get("ran", ())])
        if record["outcome"] != "failed" and all(program in quiet for program in used):
            found[record["id"]] = {**record, "as": record.get("as", schedule), "seconds": 0.0}
    return found


def _causes(results: Iterable[dict[str, Any]]) -> list[CauseCount]:
    found: dict[tuple[str, str], CauseCount] = {}
    for record in results:
        if record["outcome"] != "failed":
            continue
        cause = record["cause"]
        key = (cause["kind"], cause["text"])
        entry = found.setdefault(key, CauseCount(*key, detail=cause["detail"][:_DETAIL]))
        entry.tests.append(record["id"])
    return sorted(found.values(), key=lambda c: (-len(c.tests), c.kind, c.text))


def markdown(summaries: Sequence[Summary]) -> str:
    """A table with a row for each architecture, then the causes of what failed."""
    lines = [
        "| target | tests that launch | as before | passed | | kernels | refused | others "
        "| others failed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for s in summaries:
        lines.append(
            f"| {s.arch} | {s.launching} | {s.same} | {s.passed} | {s.share:.2f} % | {s.kernels} "
            f"| {s.kernels_refused} | {s.other_passed} | {s.other_failed} |"
        )
    lines += _feature_table(summaries)
    for s in summaries:
        lines += ["", f"### {s.arch}", ""]
        lines += ["| tests | kind | cause | example |", "|---|---|---|---|"] if s.causes else []
        for cause in s.causes:
            example = cause.tests[0].rsplit("/", 1)[-1]
            text = cause.text.replace("|", "\\|")
            lines.append(f"| {len(cause.tests)} | {cause.kind} | {text} | `{example}` |")
    return "\n".join(lines) + "\n"


def _feature_table(summaries: Sequence[Summary]) -> list[str]:
    """How many of the kernels that ran use the asynchronous hardware."""
    if not any(any(s.features.values()) for s in summaries):
        return []
    head = ["", f"| kernels that use | {' | '.join(NAMES)} |", "|---" * (len(NAMES) + 1) + "|"]
    rows = [[s.arch, *(str(s.features.get(name, 0)) for name in NAMES)] for s in summaries]
    return [*head, *(f"| {' | '.join(row)} |" for row in rows)]

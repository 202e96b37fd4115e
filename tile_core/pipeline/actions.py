"""What a run is about to do, one action at a time: limits, counters and logs over them.

An action is a pass on an anchor ("pass-execution", tag: its name) or a rule of a set of rewrites
tried on an operation ("apply-pattern", tag: `pass.rule`). Instrumentations are asked whether each
may happen (`Instrumentation.permits`); all are asked, and all must agree.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tile_core.diagnostics import ConfigurationError, UsageError, nearest
from tile_core.pipeline.anchors import symbol
from tile_core.pipeline.instrument import Instrumentation

if TYPE_CHECKING:
    from tile_core.mlir import ir
    from tile_core.pipeline.run import Run

PASS = "pass-execution"
PATTERN = "apply-pattern"


class BisectLimit(Instrumentation):
    """Run but the first `limit` of the passes that are not mandatory: LLVM's opt-bisect-limit.

    Mandatory are the passes of -O0. A pass counts once for each operation that it runs on.

    Args:
        limit: how many run; all that come after them are left out.
        functions: only on these are passes counted and left out; empty: on everything.
        stream: where each is listed; stderr by default.
    """

    name = "opt-bisect-limit"

    def __init__(
        self, limit: int, functions: Iterable[str] = (), stream: TextIO | None = None
    ) -> None:
        self._limit = limit
        self._functions = frozenset(functions)
        self._stream = stream
        self._mandatory: frozenset[str] = frozenset()
        self._count = 0

    def before_pipeline(self, run: Run) -> None:
        self._mandatory = _mandatory(run)

    def permits(self, action: str, tag: str, op: ir.Operation, run: Run) -> bool:
        if action != PASS or tag in self._mandatory:
            return True
        called = symbol(op)
        if self._functions and called not in self._functions:
            return True
        self._count += 1
        runs = self._count <= self._limit
        where = f"'{op.name}'" + (f" @{called}" if called else "")
        what = "running" if runs else "NOT running"
        stream = self._stream or sys.stderr
        stream.write(f"BISECT: {what} pass ({self._count}) {tag} on {where}\n")
        return runs


def _mandatory(run: Run) -> frozenset[str]:
    """Names of the passes of -O0 for the run's target; none where there is no such level."""
    from tile_core.pipeline.resolve import Request, load, resolve

    registry = run.session.registry
    if not registry.has("pipeline", "O0"):
        return frozenset()
    request = Request(run.plan.target.name, 0)
    passes = resolve(load(request, registry), request, registry).passes()
    return frozenset(call.name for call in passes)


class DebugCounter(Instrumentation):
    """Let an action happen only for some of the times that it comes up.

    Args:
        chosen: `tag=first-last`, counted from 1, several with commas: `tileaa-canonicalize=3-5,8`.
            A tag is a pass, or a rule as `pass.rule`.

    Raises:
        UsageError: no such form.
    """

    name = "debug-counter"

    def __init__(self, chosen: Iterable[str]) -> None:
        self._chosen = dict(_counter(text) for text in chosen)
        self._seen: Counter[str] = Counter()

    def before_pipeline(self, run: Run) -> None:
        known = sorted({step.name for step in run.plan.steps()})
        for tag in self._chosen:
            if tag.partition(".")[0] not in known and tag not in known:
                close = nearest(tag, known)
                hint = f"did you mean '{close}'?" if close else f"passes: {', '.join(known)}"
                raise ConfigurationError(f"there is no pass '{tag}' to count", hint=hint)

    def permits(self, action: str, tag: str, op: ir.Operation, run: Run) -> bool:
        ranges = self._chosen.get(tag)
        if ranges is None:
            return True
        self._seen[tag] += 1
        return any(first <= self._seen[tag] <= last for first, last in ranges)


def _counter(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    tag, sign, numbers = text.partition("=")
    parts = [re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip()) for part in numbers.split(",")]
    if not tag or not sign or any(part is None for part in parts):
        raise UsageError(
            f"--debug-counter '{text}' is not TAG=FIRST-LAST",
            hint="count from 1: tileaa-canonicalize.view-of-view=3-5,8",
        )
    return tag.strip(), tuple((int(p[1]), int(p[2] or p[1])) for p in parts if p)


class LogActions(Instrumentation):
    """Write down every action before it happens, a line each.

    Args:
        path: the file; "-" is stderr.

    Raises:
        ConfigurationError: it cannot be written.
    """

    name = "log-actions"

    def __init__(self, path: str) -> None:
        self._path = path
        self._lines: list[str] = []

    def permits(self, action: str, tag: str, op: ir.Operation, run: Run) -> bool:
        called = symbol(op)
        self._lines.append(f"{action} {tag} {op.name}" + (f" @{called}" if called else ""))
        return True

    def after_pipeline(self, run: Run) -> None:
        self._write()

    def pipeline_failed(self, run: Run, error: object) -> None:
        self._write()

    def _write(self) -> None:
        text = "".join(f"{line}\n" for line in self._lines)
        if self._path == "-":
            sys.stderr.write(text)
            return
        try:
            Path(self._path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"cannot write '{self._path}': {error.strerror}") from error

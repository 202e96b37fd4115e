"""Where the time goes: a tree of spans, and its reports."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Span:
    """Something that took time; seconds, `start` since the clock was made."""

    name: str
    kind: str  # "compile", "segment", "pass", "analysis", "emitter", "scope"
    start: float
    wall: float = 0.0
    cpu: float = 0.0
    args: dict[str, str] = field(default_factory=dict)
    children: list[Span] = field(default_factory=list)


class Clock:
    """Builds the tree of spans of one compilation."""

    def __init__(self) -> None:
        self._origin = time.perf_counter()
        self.root = Span("total", "compile", 0.0)
        self._stack = [self.root]

    @contextmanager
    def span(self, name: str, kind: str, **args: str) -> Iterator[Span]:
        """Time the block, exceptions included."""
        begin, cpu = time.perf_counter(), time.process_time()
        span = Span(name, kind, begin - self._origin, args=args)
        self._stack[-1].children.append(span)
        self._stack.append(span)
        try:
            yield span
        finally:
            self._stack.pop()
            span.wall = time.perf_counter() - begin
            span.cpu = time.process_time() - cpu

    def stop(self) -> Span:
        """Close the root and return it."""
        self.root.wall = time.perf_counter() - self._origin
        self.root.cpu = sum(child.cpu for child in self.root.children)
        return self.root


#: The scope around all emitters (page 060 of the specification).
SERIALIZE = "SerializeGPUModule"


class EmissionSpans:
    """Times emitters, those that follow each other and name one scope inside of one span."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stack = ExitStack()
        self._scope = ""

    @contextmanager
    def emitter(self, name: str, scope: str) -> Iterator[Span]:
        """Time an emitter of a scope; none is empty. A failure closes the scope, too."""
        if scope != self._scope:
            self.close()
            self._scope = scope
            if scope:
                self._stack.enter_context(self._clock.span(scope, "scope"))
        try:
            with self._clock.span(name, "emitter") as span:
                yield span
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the scope that is open."""
        self._stack.close()
        self._scope = ""


def spans_of(root: Span, kind: str) -> list[Span]:
    """The spans of a kind below one, in order."""
    inside = [span for child in root.children for span in spans_of(child, kind)]
    return [root, *inside] if root.kind == kind else inside


def as_list(root: Span) -> str:
    """One row per name, summed, longest first; percent of the whole."""
    totals: dict[str, tuple[float, float]] = {}
    for span in _leaves(root):
        wall, cpu = totals.get(span.name, (0.0, 0.0))
        totals[span.name] = (wall + span.wall, cpu + span.cpu)
    rows = sorted(totals.items(), key=lambda row: -row[1][0])
    body = [_row(wall, cpu, root, name) for name, (wall, cpu) in rows]
    return _report(root, body)


def as_tree(root: Span) -> str:
    """The spans in order, indented; percent of the parent."""
    body: list[str] = []

    def visit(span: Span, parent: Span, depth: int) -> None:
        body.append(_row(span.wall, span.cpu, parent, "  " * depth + span.name))
        for child in span.children:
            visit(child, span, depth + 1)

    for child in root.children:
        visit(child, root, 0)
    return _report(root, body)


def as_json(root: Span) -> str:
    """Nested {wall, user_system, name, children}; seconds."""
    return json.dumps(_plain(root), indent=1) + "\n"


def as_chrome_trace(root: Span) -> str:
    """Chrome's trace event format, for chrome://tracing and Perfetto; microseconds."""
    events: list[dict[str, Any]] = []

    def visit(span: Span) -> None:
        events.append(
            {
                "name": span.name,
                "cat": span.kind,
                "ph": "X",
                "ts": round(span.start * 1e6, 1),
                "dur": round(span.wall * 1e6, 1),
                "pid": 1,
                "tid": 1,
                "args": dict(span.args),
            }
        )
        for child in span.children:
            visit(child)

    visit(root)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=1) + "\n"


def _leaves(span: Span) -> list[Span]:
    if not span.children:
        return [span]
    return [leaf for child in span.children for leaf in _leaves(child)]


def _plain(span: Span) -> dict[str, Any]:
    found: dict[str, Any] = {"wall": span.wall, "user_system": span.cpu, "name": span.name}
    if span.children:
        found["children"] = [_plain(child) for child in span.children]
    return found


def _row(wall: float, cpu: float, whole: Span, name: str) -> str:
    share = 100 * wall / whole.wall if whole.wall else 0.0
    cpu_share = 100 * cpu / whole.cpu if whole.cpu else 0.0
    return f"  {wall:8.4f} ({share:5.1f}%)  {cpu:8.4f} ({cpu_share:5.1f}%)  {name}"


def _report(root: Span, body: list[str]) -> str:
    ruler = "===" + "-" * 73 + "==="
    title = "... Pass execution timing report ...".center(79).rstrip()
    head = "  ----Wall Time----  ---User+System---  ----Name----"
    total = _row(root.wall, root.cpu, root, "Total")
    lines = [ruler, title, ruler, f"  Total Execution Time: {root.wall:.3f} seconds", "", head]
    return "\n".join([*lines, *body, total, ""])

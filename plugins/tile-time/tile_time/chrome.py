"""What one SM did, as a trace that chrome://tracing and Perfetto show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_time.result import Result


def chrome_trace(results: Sequence[tuple[str, Result]]) -> dict[str, Any]:
    """Trace events: a process for each result, a row for each warp, with what it waits for and the
    instructions that it issues, and for each engine; times in us.
    """
    events: list[dict[str, Any]] = []
    for number, (name, result) in enumerate(results):
        events.append({"name": "process_name", "ph": "M", "pid": number, "tid": 0,
                       "args": {"name": f"{name} on one SM of {result.machine}"}})  # fmt: skip
        rows: dict[str, int] = {}
        for row, what, start, end in result.marks:
            if row not in rows:
                rows[row] = len(rows)
                events.append({"name": "thread_name", "ph": "M", "pid": number,
                               "tid": rows[row], "args": {"name": row}})  # fmt: skip
            events.append({
                "name": what, "ph": "X", "pid": number, "tid": rows[row],
                "ts": round(start / result.mhz, 4), "dur": round((end - start) / result.mhz, 4),
                "args": {"clk": round(end - start, 1)},
            })  # fmt: skip
    return {"displayTimeUnit": "ns", "traceEvents": events}

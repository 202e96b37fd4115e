"""Decisions of schedulers as a Chrome trace (chrome://tracing, Perfetto)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tile_core.sched.document import Body


def chrome_trace(bodies: Sequence[Body]) -> str:
    """One process per body: a thread of decisions, one tick each, and the schedule by resource.

    A decision has arm, operation, cycle, gate that refused, cost vector and interval; an
    operation of the schedule its latency, and the actual distance to its users.
    """
    events: list[dict[str, Any]] = []
    for process, body in enumerate(bodies):
        events.append(_named("process_name", body.name, process, 0))
        events.append(_named("thread_name", "decisions", process, 0))
        for tick, found in enumerate(body.schedule.decisions):
            events.append({
                "name": f"{found.arm} {body.graph.ops[found.op].name}", "ph": "X", "pid": process,
                "tid": 0, "ts": tick, "dur": 1,
                "args": {
                    "ii": found.ii, "arm": found.arm, "op": found.op, "cycle": found.cycle,
                    "gate": found.gate, "cost": list(found.cost), "note": found.note,
                },
            })  # fmt: skip
        events += _schedule(body, process)
    return json.dumps({"traceEvents": events}, indent=1)


def _schedule(body: Body, process: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    threads: dict[str, int] = {}
    starts = body.schedule.start
    for op, node in enumerate(body.graph.ops):
        users = [
            {"op": edge.dst, "kind": edge.kind, "latency": edge.latency, "distance": edge.distance,
             "actual": starts[edge.dst] + body.schedule.ii * edge.distance - starts[op]}
            for edge in body.graph.edges if edge.src == op
        ]  # fmt: skip
        for use in node.footprint:
            if use.resource not in threads:
                threads[use.resource] = len(threads) + 1
                name = _named("thread_name", use.resource, process, threads[use.resource])
                found.append(name)
            found.append({
                "name": node.name, "ph": "X", "pid": process, "tid": threads[use.resource],
                "ts": starts[op] + use.at, "dur": use.cycles,
                "args": {"op": op, "where": node.where, "latency": node.latency, "users": users},
            })  # fmt: skip
    return found


def _named(kind: str, name: str, process: int, thread: int) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}

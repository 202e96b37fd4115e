"""Graphs, machine models and schedules as JSON: to look at, to edit, and to read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

from tile_core.diagnostics import ConfigurationError
from tile_core.sched.graph import Constraints, Edge, LoopGraph, LoopOp, ScheduleOptions, Use
from tile_core.sched.machine import MachineModel
from tile_core.sched.schedule import Schedule, stage_orders

VERSION = 1


@dataclass(frozen=True)
class Body:
    """One scheduled body: where it is, what it is, on what, and its schedule."""

    name: str  # "kernel/loop1": the kernel, and the body by its number, outer before inner
    where: str  # place in the user's source
    graph: LoopGraph
    model: MachineModel
    scheduler: str
    schedule: Schedule


def to_json(bodies: Sequence[Body]) -> str:
    """The document of `bodies`. What is edited is `ii` and the `start` of each operation."""
    return json.dumps({"version": VERSION, "bodies": [_body(body) for body in bodies]}, indent=1)


def _body(body: Body) -> dict[str, Any]:
    pairs = stage_orders(body.schedule)
    starts = body.schedule.start
    return {
        "name": body.name,
        "where": body.where,
        "scheduler": body.scheduler,
        "ii": body.schedule.ii,
        "ops": [
            {"start": start, "stage": stage, "order": order} | _plain(op)
            for op, start, (stage, order) in zip(body.graph.ops, starts, pairs, strict=True)
        ],
        "edges": [asdict(edge) for edge in body.graph.edges],
        "is_loop": body.graph.is_loop,
        "trip_count": body.graph.trip_count,
        "options": asdict(body.graph.options),
        "model": asdict(body.model),
    }


def _plain(op: LoopOp) -> dict[str, Any]:
    """An operation; constraints that are not there are left out."""
    found = asdict(op)
    found["constraints"] = {key: value for key, value in found["constraints"].items() if value}
    return found


def from_json(text: str, origin: str) -> list[Body]:
    """The bodies of a document. `stage` and `order` follow from starts and are not read.

    Raises:
        ConfigurationError: not such a document; says what is wrong and where.
    """
    try:
        data = json.loads(text)
        if data.get("version") != VERSION:
            raise ValueError(f"expects version {VERSION}, but got {data.get('version')!r}")
        return [_read(body) for body in data["bodies"]]
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"is no JSON: {error}", where=origin) from error
    except KeyError as error:
        raise ConfigurationError(f"is no schedule: {error} is missing", where=origin) from error
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(f"is no schedule: {error}", where=origin) from error


def _read(data: dict[str, Any]) -> Body:
    ops = tuple(_op(op) for op in data["ops"])
    edges = tuple(_record(Edge, edge) for edge in data["edges"])
    for edge in edges:
        if not (0 <= edge.src < len(ops) and 0 <= edge.dst < len(ops)):
            raise ValueError(f"edge {edge.src} -> {edge.dst} leads out of {len(ops)} operations")
    graph = LoopGraph(
        ops,
        edges,
        data["is_loop"],
        data["trip_count"],
        _record(ScheduleOptions, data["options"]),
        data["name"],
    )
    model = {key: _tuples(value) for key, value in data["model"].items()}
    starts = tuple(_integer(op["start"], f"start of '{op['name']}'") for op in data["ops"])
    schedule = Schedule(starts, _integer(data["ii"], "ii"))
    return Body(
        data["name"],
        data["where"],
        graph,
        _record(MachineModel, model),
        data["scheduler"],
        schedule,
    )


def _op(data: dict[str, Any]) -> LoopOp:
    uses = data["uses"]
    given = {key: value for key, value in data.items() if key not in ("start", "stage", "order")}
    given["uses"] = None if uses is None else tuple(_record(Use, use) for use in uses)
    given["constraints"] = _record(Constraints, data["constraints"])
    return _record(LoopOp, given)


def _record(kind: Any, data: dict[str, Any]) -> Any:
    """An object of dataclass `kind`; unknown and missing fields are named."""
    known = {field.name: field for field in fields(kind)}
    for key in data:
        if key not in known:
            raise ValueError(f"{kind.__name__} has no '{key}'")
    for name, field in known.items():
        if name not in data and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{kind.__name__} lacks '{name}'")
    return kind(**data)


def _integer(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"expects {name} to be an integer, but got {value!r}")
    return value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value

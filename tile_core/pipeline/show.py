"""A resolved pipeline as text and JSON, and the difference of two."""

from __future__ import annotations

import difflib
import json
from typing import Any

from tile_core.pipeline.build import ROOT
from tile_core.pipeline.merge import Merged
from tile_core.pipeline.resolve import NATIVE, PassCall, Resolved
from tile_core.registry import Registry


def flat_list(resolved: Resolved, registry: Registry | None = None) -> str:
    """One line per pass, under its segment; with a registry, each with the plugin it is from."""
    lines: list[str] = []
    for segment in resolved.segments:
        lines.append(f"{segment.name} [{' > '.join(segment.nest) or ROOT}]")
        lines += [_line(call, "pass", registry) for call in segment.passes]
        if segment.removes:
            lines.append(f"  # nothing of {', '.join(segment.removes)} may be left")
    if resolved.emitters:
        lines.append("emit")
        lines += [_line(call, "emitter", registry) for call in resolved.emitters]
    return "\n".join(lines) + "\n"


def options_list(resolved: Resolved, merged: Merged) -> str:
    """One line per option: value, and what it is for."""
    rows = [
        (f"{name} = {json.dumps(value)}", merged.options[name][0].help)
        for name, value in resolved.options.items()
    ]
    width = max((len(left) for left, _ in rows), default=0)
    return "".join(f"{left:{width}}  # {help_}".rstrip(" #") + "\n" for left, help_ in rows)


def as_json(resolved: Resolved) -> str:
    """The pipeline as JSON, for tools."""
    data: dict[str, Any] = {
        "name": resolved.name,
        "target": resolved.target.name,
        "options": dict(resolved.options),
        "segments": [
            {
                "name": segment.name,
                "nest": list(segment.nest),
                "removes": list(segment.removes),
                "passes": [_plain(call) for call in segment.passes],
            }
            for segment in resolved.segments
        ],
        "emit": [_plain(call) for call in resolved.emitters],
    }
    return json.dumps(data, indent=1) + "\n"


def difference(first: Resolved, second: Resolved) -> str:
    """What the second pipeline does otherwise, as a unified diff of options and passes."""
    sides = []
    for resolved in (first, second):
        options = "".join(f"{k} = {json.dumps(v)}\n" for k, v in resolved.options.items())
        sides.append((options + flat_list(resolved)).splitlines(keepends=True))
    names = [f"{r.name} ({r.target.name})" for r in (first, second)]
    return "".join(difflib.unified_diff(*sides, *names, n=2))


def _line(call: PassCall, kind: str, registry: Registry | None) -> str:
    text = str(call)
    if call.id not in (call.name, call.name.partition("{")[0]):
        text += f" (id {call.id})"
    if registry is None:
        return f"  {text}"
    return f"  {text:58}  {_owner(call, kind, registry)}".rstrip()


def _owner(call: PassCall, kind: str, registry: Registry) -> str:
    if kind == "pass" and call.name.startswith(NATIVE):
        return "MLIR"
    if not registry.has(kind, call.name):
        return "not installed"
    return str(registry.owner(kind, call.name))


def _plain(call: PassCall) -> dict[str, Any]:
    return {"name": call.name, "id": call.id, "options": dict(call.options)}

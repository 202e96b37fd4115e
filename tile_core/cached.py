"""`compile`, with the artifact cache in front."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tile_core import api
from tile_core.artifact import Artifact, Stages
from tile_core.cache import Cache, Entry, key_of
from tile_core.diagnostics import SourceLocation, TileError
from tile_core.digests import sha256
from tile_core.fingerprint import installed
from tile_core.pipeline.resolve import Resolved
from tile_core.pipeline.timing import Clock
from tile_core.references import LazyEmitter
from tile_core.registry import Registry, default_registry
from tile_core.remarks import Remark
from tile_core.snapshot import stamp

#: Environment variables with these prefixes may change what is compiled.
VARIABLES = ("TILEIR_", "TILE_AS_")


def compile_cached(
    source: bytes | str, target: str, cache: Cache | None, **arguments: Any
) -> Artifact:
    """`tile_core.compile(source, target, **arguments)`, from `cache` where it was done before.

    An artifact that comes from the cache has the stage that was asked for and the remarks, and no
    others, statistics or timings of passes. Whoever wants to watch passes passes no cache.
    """
    if cache is None or arguments.get("instrumentations") or arguments.get("start_at"):
        return api.compile(source, target, **arguments)
    data = source.encode() if isinstance(source, str) else bytes(source)
    clock = Clock()
    with clock.span("cache", "pipeline"):
        try:
            resolved, key = _key(data, target, arguments)
        except TileError:
            return api.compile(source, target, **arguments)  # which says what is wrong
        found = cache.find(key)
    if found is not None:
        return _artifact(found, resolved, arguments, clock)
    with cache.lock(key):
        found = cache.find(key)  # another process may have made it meanwhile
        if found is not None:
            return _artifact(found, resolved, arguments, clock)
        made = api.compile(source, target, **arguments)
        cache.store(key, _entry(made, arguments))
    return made


def _key(data: bytes, target: str, arguments: Mapping[str, Any]) -> tuple[Resolved, str]:
    registry: Registry = arguments.get("registry") or default_registry()
    chosen = {k: arguments.get(k) for k in ("opt_level", "pipeline", "options", "pass_options")}
    emit = arguments.get("stop_after") or arguments.get("emit")
    resolved = api.plan_for(target, registry=registry, emit=emit, **chosen)
    toolchain: Mapping[str, Path] = arguments.get("toolchain") or {}
    disabled = os.environ.get("TILEC_DISABLE_PLUGINS", "")
    parts = {
        "program": sha256(data).hexdigest(),
        "ends": [str(arguments.get(k)) for k in ("emit", "stop_after", "without")],
        "verify": arguments.get("verify"),
        "target": asdict(resolved.target),
        "options": dict(resolved.options),
        "segments": [
            [s.name, s.nest, list(map(str, s.passes)), s.removes] for s in resolved.segments
        ],
        "emitters": list(map(str, resolved.emitters)),
        "installed": installed(),
        "plugins": [disabled, *map(str, registry.plugins)],
        "tools": _tools(resolved, registry, toolchain),
        "environment": {k: v for k, v in os.environ.items() if k.startswith(VARIABLES)},
        # The name of a text is in its locations.
        "name": arguments.get("name") if not data.startswith(b"\x7f") else None,
    }
    return resolved, key_of(parts)


def _tools(resolved: Resolved, registry: Registry, named: Mapping[str, Path]) -> list[Any]:
    """The files that emitters run or link, and when they were last changed."""
    found: list[Any] = []
    for call in resolved.emitters:
        lazy = registry.entry("emitter", call.name).lazy
        if isinstance(lazy, LazyEmitter) and lazy.tools is not None:
            files = lazy.tools.load()(named)
            found += [[name, *stamp(path)] for name, path in sorted(files.items())]
    return found


def _entry(made: Artifact, arguments: Mapping[str, Any]) -> Entry:
    output = made.output
    text = isinstance(output, str)
    about = {
        "name": arguments.get("name", "-"),
        "target": made.target.name,
        "emit": made.emit,
        "opt-level": arguments.get("opt_level"),
    }
    raw = output.encode() if isinstance(output, str) else output
    return Entry(raw, text, [asdict(remark) for remark in made.remarks], about)


def _artifact(
    entry: Entry, resolved: Resolved, arguments: Mapping[str, Any], clock: Clock
) -> Artifact:
    stages = Stages()
    emit = entry.about["emit"]
    stages.add(emit, entry.output.decode() if entry.text else entry.output)
    clock.stop()
    made = Artifact(resolved.target, resolved.options, emit, stages, clock.root)
    made.remarks = [_remark(record) for record in entry.remarks]
    made.from_cache = True
    on_stage = arguments.get("on_stage")
    if on_stage is not None:
        on_stage(emit, stages[emit])
    return made


def _remark(record: Mapping[str, Any]) -> Remark:
    where = record["where"]
    place = SourceLocation(**where) if where is not None else None
    facts = tuple((key, value) for key, value in record.get("facts", ()))
    reasons = tuple(record.get("reasons", ()))
    return Remark(**{**record, "where": place, "facts": facts, "reasons": reasons})

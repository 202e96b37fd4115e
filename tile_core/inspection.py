"""Looking at plugins as a whole: does everything they register load, and is it well formed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tile_core.diagnostics import TileError
from tile_core.options import fields_of
from tile_core.passes import Pass
from tile_core.registry import KINDS, Entry, Registry


def problems_of_plugin(registry: Registry, name: str) -> list[str]:
    """What is wrong with the things that plugin `name` registers."""
    found: list[str] = []
    for kind in KINDS:
        for entry in registry.entries(kind):
            if entry.plugin.name == name:
                found += [f"{kind} '{entry.lazy.name}': {p}" for p in _problems(registry, entry)]
    return found


def description_of(registry: Registry, entry: Entry) -> str:
    """What is known about a registered name: its owner, and for passes and emitters the options."""
    lines = [f"{entry.kind} {entry.lazy.name} ({entry.plugin})"]
    if entry.lazy.summary:
        lines.append(f"  {entry.lazy.summary}")
    lines.append(f"  from {entry.lazy.target}")
    if entry.kind not in ("pass", "emitter"):
        return "\n".join(lines) + "\n"
    known = registry.load(entry.kind, entry.lazy.name)
    if entry.kind == "pass":
        lines.append(f"  runs on {known.anchor}")
        lines += [f"  counts {name}: {what}" for name, what in known.statistics.items()]
    else:
        lines.append(f"  turns {known.consumes} into {known.produces}")
    for name, option in fields_of(known).items():
        choices = option.metadata.get("choices") or ()
        allowed = f" ({', '.join(map(str, choices))})" if choices else ""
        help_ = option.metadata.get("help", "")
        lines.append(f"  option {name} = {option.default!r}{allowed}  # {help_}".rstrip(" #"))
    return "\n".join(lines) + "\n"


def _problems(registry: Registry, entry: Entry) -> list[str]:
    try:
        if entry.kind == "pipeline":
            return _pipeline_problems(registry, entry)
        if entry.kind == "machine":
            from tile_core.machines import machine_of

            machine_of(registry, entry)
            return []
        if entry.kind in ("machine-model", "messages"):
            return _toml_problems(*registry.text(entry.kind, entry.lazy.name))
        loaded = registry.load(entry.kind, entry.lazy.name)
    except TileError as error:
        return [error.message]
    check = _LOOKS.get(entry.kind)
    return check(loaded) if check is not None else []


def _toml_problems(origin: str, text: str) -> list[str]:
    import tomli

    try:
        tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        return [f"{origin}: {error}"]
    return []


def _pipeline_problems(registry: Registry, entry: Entry) -> list[str]:
    from tile_core.pipeline.resolve import Request, load
    from tile_core.pipeline.validate import problems_of

    target = next(iter(registry.names("target")))
    request = Request(target, None, entry.lazy.name)
    return [p.render() for p in problems_of(load(request, registry), request, registry)]


def _pass_problems(known: type[Pass]) -> list[str]:
    found: list[str] = []
    if not known.description():
        found.append("has no docstring")
    parameters = getattr(known, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        found.append("is no frozen dataclass: decorate it with @dataclass(frozen=True)")
    for name, option in known.options().items():
        if not option.metadata.get("help"):
            found.append(f"option '{name}' has no help: declare it with option(default, help)")
    try:
        known.configured({})
    except (TileError, TypeError) as error:
        found.append(f"cannot be made with its defaults: {error}")
    if known.run is Pass.run:
        found.append("has no run method")
    return found


def _has(*methods: str) -> Callable[[Any], list[str]]:
    def check(loaded: Any) -> list[str]:
        return [f"has no method '{m}'" for m in methods if not callable(getattr(loaded, m, None))]

    return check


def _schedule_part(loaded: Any) -> list[str]:
    methods = {"arm": "place", "gate": "check", "cost": "score"}
    kind = getattr(loaded, "kind", None)
    if kind not in methods:
        return [f"has kind {kind!r}, which is none of {', '.join(sorted(methods))}"]
    return _has(methods[kind])(loaded)


def _callable(loaded: Any) -> list[str]:
    return [] if callable(loaded) else ["is not callable"]


_LOOKS: Mapping[str, Callable[[Any], list[str]]] = {
    "pass": _pass_problems,
    "scheduler": _has("schedule"),
    "schedule-part": _schedule_part,
    "layout-strategy": _has("assign"),
    "emitter": _has("emit"),
    "frontend": _callable,
    "dialect": _callable,
    "check": _callable,
    "view": _callable,
}

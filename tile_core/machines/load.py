"""Machine files: TOML to `Machine`, strictly; files of the core and of plugins.

A number is `[value, "unit", "sources", "confidence"]`. A file may build on another by
`base = "name"` and then holds what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from tile_core.diagnostics import ConfigurationError, nearest
from tile_core.machines.record import CONFIDENCE, Machine, Source
from tile_core.machines.schema import unit_of
from tile_core.toml_text import TOMLError, package_names, package_text, parsed

if TYPE_CHECKING:
    from tile_core.registry import Entry, Registry

_TEXTS = ("title", "target", "base")
_LISTS = ("aliases", "stands-for")


def parse_machine(name: str, text: str, origin: str, bases: Mapping[str, str]) -> Machine:
    """The machine of a TOML text; `bases` are the texts of others that it may build on.

    Raises:
        ConfigurationError: it is no TOML, has an unknown or missing number, a wrong unit, ...
    """
    tables = _tables(name, text, origin, bases, ())
    sources: dict[str, Source] = {}
    values: dict[str, Any] = {"name": name, "sources": sources}
    hints = get_type_hints(Machine)
    for key, value in tables.items():
        field = key.replace("-", "_")
        if key in ("title", "target"):
            values[field] = value
        elif key in _LISTS:
            values[field] = tuple(value)
        elif is_dataclass(hints.get(field)):
            values[field] = _section(hints[field], field, value, origin, sources)
        else:
            raise _wrong(origin, f"'{key}' is no section of a machine file")
    for required in fields(Machine):
        if required.name not in values:
            values.setdefault(required.name, _absent(required.name, hints, origin, sources))
    return Machine(**values)


def _absent(field: str, hints: Mapping[str, Any], origin: str, sources: dict[str, Source]) -> Any:
    if field in ("aliases", "stands_for"):
        return ()
    if is_dataclass(hints[field]):
        return _section(hints[field], field, {}, origin, sources)
    raise _wrong(origin, f"'{field}' is missing")


def _tables(
    name: str, text: str, origin: str, bases: Mapping[str, str], above: tuple[str, ...]
) -> dict[str, Any]:
    """The file's tables laid over those of its base."""
    try:
        tables = dict(_parsed(text))
    except TOMLError as error:
        raise _wrong(origin, f"is no TOML: {error}") from error
    for key, value in tables.items():
        good = _is_kind(key, value)
        if not good:
            raise _wrong(origin, f"'{key}' has the wrong type")
    base = tables.pop("base", None)
    if base is None:
        return tables
    if base not in bases or base in (*above, name):
        raise _wrong(origin, f"its base '{base}' is no other machine")
    below = _tables(base, bases[base], base, bases, (*above, name))
    for key in (*_LISTS, "title"):
        below.pop(key, None)
    return _merged(below, tables)


@cache
def _parsed(text: str) -> Mapping[str, Any]:
    """What a TOML text says; nobody changes it."""
    return parsed(text)


def _is_kind(key: str, value: Any) -> bool:
    if key in _TEXTS:
        return isinstance(value, str)
    if key in _LISTS:
        return isinstance(value, list) and all(isinstance(v, str) for v in value)
    return isinstance(value, dict)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    made = dict(below)
    for key, value in above.items():
        old = made.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            made[key] = _merged(old, value)
        else:
            made[key] = value
    return made


def _section(kind: Any, path: str, table: Any, origin: str, sources: dict[str, Source]) -> Any:
    """A record of class `kind` from its table."""
    if not isinstance(table, dict):
        raise _wrong(origin, f"'{path}' is no table")
    known = {entry.name.replace("_", "-"): entry for entry in fields(kind)}
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            close = nearest(key, list(known))
            hint = f"did you mean '{close}'?" if close else None
            raise _wrong(origin, f"'{path}' has no '{key}'", hint)
        entry = known[key]
        below = f"{path}.{entry.name}"
        if is_dataclass(hints[entry.name]):
            values[entry.name] = _section(hints[entry.name], below, value, origin, sources)
        else:
            values[entry.name] = _number(value, unit_of(entry), below, origin, sources)
    for entry in known.values():
        if entry.name not in values and entry.default is MISSING:
            raise _wrong(origin, f"'{path}.{entry.name.replace('_', '-')}' is missing")
        if "unit" in entry.metadata:
            own = Source(unit_of(entry), "default of the schema", "C")
            sources.setdefault(f"{path}.{entry.name}", own)
    return kind(**values)


def _number(given: Any, unit: str, path: str, origin: str, sources: dict[str, Source]) -> float:
    if not (isinstance(given, list) and len(given) == 4):
        raise _wrong(origin, f"'{path}' is not [value, unit, sources, confidence]")
    value, own_unit, where, confidence = given
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise _wrong(origin, f"'{path}' is no number of at least 0: {value!r}")
    if own_unit != unit:
        raise _wrong(origin, f"'{path}' is in {own_unit!r}, it has to be in {unit!r}")
    if confidence not in CONFIDENCE or not isinstance(where, str) or not where:
        raise _wrong(origin, f"'{path}' needs its sources and a confidence of A, B or C")
    sources[path] = Source(unit, where, confidence)
    return float(value)


def _wrong(origin: str, what: str, hint: str | None = None) -> ConfigurationError:
    return ConfigurationError(f"machine file: {what}", where=origin, hint=hint)


@cache
def _builtin_texts() -> Mapping[str, str]:
    package = "tile_core.machines"
    files = sorted(name for name in package_names(package) if name.endswith(".toml"))
    return {name.removesuffix(".toml"): package_text(package, name) for name in files}


@cache
def builtin_machines() -> Mapping[str, Machine]:
    """The machines that the core ships, by name."""
    return {name: _builtin_machine(name) for name in _builtin_texts()}


@cache
def _builtin_machine(name: str) -> Machine:
    texts = _builtin_texts()
    return parse_machine(name, texts[name], f"{name}.toml", texts)


def machine_of(registry: Registry, entry: Entry) -> Machine:
    """The machine that a plugin registers.

    Raises:
        ConfigurationError: its file cannot be read or is wrong.
    """
    if entry.lazy.name in builtin_machines() and entry.plugin is registry.plugins[0]:
        return builtin_machines()[entry.lazy.name]
    package, _, file = entry.lazy.target.partition(":")
    try:
        text = package_text(package, file)
    except (OSError, ImportError, UnicodeDecodeError) as error:
        message = f"machine '{entry.lazy.name}' of {entry.plugin} cannot be read: {error}"
        raise ConfigurationError(message) from error
    return parse_machine(entry.lazy.name, text, f"{package}/{file}", _builtin_texts())


def machines_of(registry: Registry) -> dict[str, Machine]:
    """The machines of the core and of plugins (hook `tile_machines`), by name."""
    return {e.lazy.name: machine_of(registry, e) for e in registry.entries("machine")}


def find_machine(name: str, machines: Mapping[str, Machine]) -> Machine:
    """The machine called `name`, or that has the alias, whatever the case.

    Raises:
        ConfigurationError: there is none; names are suggested.
    """
    wanted = name.lower()
    for machine in machines.values():
        if wanted in (machine.name, *machine.aliases):
            return machine
    names = sorted({n for m in machines.values() for n in (m.name, *m.aliases)})
    close = nearest(wanted, names)
    raise ConfigurationError(
        f"there is no GPU '{name}'",
        notes=(f"known GPUs: {', '.join(names)}",),
        hint=f"did you mean {close}?" if close else None,
    )


def machine_for(target: str, machines: Mapping[str, Machine] | None = None) -> Machine:
    """The machine whose latencies schedules for `target` ("sm_90") count with.

    A target without a machine of its own has one that stands in; for a target nobody stands for,
    that of the highest target below it.
    """
    if machines is None:
        own = _standing_for(target)
        if own is not None:
            return own
    found = builtin_machines() if machines is None else machines
    for machine in found.values():
        if target in machine.stands_for:
            return machine
    ordered = sorted(found.values(), key=lambda m: (_sm(m.target), m.name))
    below = [m for m in ordered if _sm(m.target) <= _sm(target)]
    return below[-1] if below else ordered[0]


@cache
def _standing_for(target: str) -> Machine | None:
    """The machine of this project whose file names `target`."""
    # Each has hundreds of numbers to check: only of the one that is asked for.
    for name, text in _builtin_texts().items():
        if target in _tables(name, text, name, _builtin_texts(), ()).get("stands-for", ()):
            return _builtin_machine(name)
    return None


def _sm(target: str) -> int:
    digits = target.removeprefix("sm_").rstrip("af")
    return int(digits) if digits.isdigit() else 0

"""From pipeline files to one pipeline: `extends`, added segments, inserted and replaced passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tile_core.diagnostics import ConfigurationError, nearest
from tile_core.pipeline.schema import ENTRY_KEYS, Emit, Head, Insert, Option, PipelineFile
from tile_core.pipeline.schema import Replace as ReplaceTable
from tile_core.pipeline.schema import Segment as SegmentTable
from tile_core.pipeline.tables import Path, Source, read_file

#: What `extends` says for "the pipeline of the -O level that was asked for".
LEVEL = "-O"

Reader = Callable[[str], Source]


@dataclass(frozen=True)
class Spot:
    """A place in a pipeline file."""

    source: Source
    path: Path

    def error(self, message: str, hint: str | None = None) -> ConfigurationError:
        """An error at this place."""
        return self.source.error(message, self.path, hint)

    def inside(self, *steps: str | int) -> Spot:
        """The place of something inside this one."""
        return Spot(self.source, (*self.path, *steps))


@dataclass(frozen=True)
class Entry:
    """A pass as a file names it, not yet looked up."""

    name: str
    id: str
    spot: Spot
    when: str | None = None
    preserve: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Segment:
    """A segment with everything that files added to it."""

    name: str
    spot: Spot
    nest: tuple[str, ...]
    when: str | None
    removes: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Merged:
    """A pipeline after `extends`, before options and target are known."""

    head: Head
    sources: tuple[Source, ...]  # base first
    options: dict[str, tuple[Option, Spot]]
    values: dict[str, tuple[Any, Spot]]  # `[set]`, the last file's say
    segments: tuple[Segment, ...]
    emit: Emit
    emit_spot: Spot


def merge(top: Source, read: Reader, level: str | None = None) -> Merged:
    """The pipeline of file `top` with everything it extends.

    Args:
        read: source of a pipeline by name.
        level: name of the pipeline that `extends = "-O"` means.

    Raises:
        ConfigurationError: a file is wrong, or refers to what is not there.
    """
    chain = _chain(top, read, level)
    first = Spot(chain[0][0], ())
    merged = Merged(chain[-1][1].pipeline, (), {}, {}, (), Emit(), first)
    for source, contents in chain:
        merged = _extend(merged, source, contents)
    return replace(merged, sources=tuple(source for source, _ in chain))


def _chain(top: Source, read: Reader, level: str | None) -> list[tuple[Source, PipelineFile]]:
    chain = [(top, read_file(top))]
    seen = [chain[0][1].pipeline.name]
    while (name := chain[0][1].pipeline.extends) is not None:
        spot = Spot(chain[0][0], ("pipeline", "extends"))
        wanted = level if name == LEVEL else name
        if wanted is None:
            raise spot.error(f'extends = "{LEVEL}" needs an optimisation level', "give one with -O")
        if wanted in seen:
            raise spot.error(f"pipeline '{wanted}' extends itself: {' -> '.join([*seen, wanted])}")
        try:
            base = read(wanted)
        except ConfigurationError as error:
            raise spot.error(error.message, error.hint) from error
        seen.append(wanted)
        chain.insert(0, (base, read_file(base)))
    return chain


def _extend(base: Merged, source: Source, contents: PipelineFile) -> Merged:
    options = dict(base.options)
    for name, option in contents.options.items():
        spot = Spot(source, ("options", name))
        if name in options:
            raise spot.error(
                f"option '{name}' is already declared", f"set its value: [set] {name} = ..."
            )
        options[name] = (option, spot)
    values = dict(base.values)
    for name, value in contents.set.items():
        spot = Spot(source, ("set", name))
        if name not in options:
            close = nearest(name, list(options))
            hint = f"did you mean '{close}'?" if close else None
            raise spot.error(f"unknown option '{name}'", hint)
        values[name] = (value, spot)
    segments = list(base.segments)
    for i, table in enumerate(contents.segment):
        _add_segment(segments, table, Spot(source, ("segment", i)))
    for i, insert in enumerate(contents.insert):
        _insert(segments, insert, Spot(source, ("insert", i)))
    for i, table in enumerate(contents.replace):
        _replace(segments, table, Spot(source, ("replace", i)))
    emit, emit_spot = base.emit, base.emit_spot
    if contents.emit is not None:
        chosen = {**emit.options, **contents.emit.options}
        emit = Emit(contents.emit.chain or emit.chain, chosen)
        emit_spot = Spot(source, ("emit",))
    return replace(
        base, options=options, values=values, segments=tuple(segments), emit=emit,
        emit_spot=emit_spot,
    )  # fmt: skip


def _add_segment(segments: list[Segment], table: SegmentTable, spot: Spot) -> None:
    if any(s.name == table.name for s in segments):
        raise spot.inside("name").error(
            f"segment '{table.name}' is already there",
            "add to it with [[insert]], or change it with [[replace]]",
        )
    segment = Segment(
        table.name, spot, tuple(table.nest), table.when, tuple(table.removes),
        _entries(table.passes, spot.inside("passes")),
    )  # fmt: skip
    _unique_ids(segment)
    segments.insert(_segment_place(segments, table, spot), segment)


def _segment_place(segments: list[Segment], table: SegmentTable, spot: Spot) -> int:
    if table.before is not None and table.after is not None:
        raise spot.error("a segment goes before or after another, not both")
    if table.before is not None:
        return _find_segment(segments, table.before, spot.inside("before"))
    if table.after is not None:
        return _find_segment(segments, table.after, spot.inside("after")) + 1
    return len(segments)


def _find_segment(segments: list[Segment], name: str, spot: Spot) -> int:
    names = [s.name for s in segments]
    if name in names:
        return names.index(name)
    close = nearest(name, names)
    hint = f"did you mean '{close}'?" if close else f"segments: {', '.join(names) or 'none'}"
    raise spot.error(f"there is no segment '{name}'", hint)


def _insert(segments: list[Segment], table: Insert, spot: Spot) -> None:
    at = _find_segment(segments, table.segment, spot.inside("segment"))
    segment = segments[at]
    if table.before is not None and table.after is not None:
        raise spot.error("passes go before or after another, not both")
    place = len(segment.entries)
    if table.before is not None:
        place = _find_entry(segment, table.before, spot.inside("before"))
    elif table.after is not None:
        place = _find_entry(segment, table.after, spot.inside("after")) + 1
    new = _entries(table.passes, spot.inside("passes"))
    segments[at] = replace(
        segment, entries=(*segment.entries[:place], *new, *segment.entries[place:])
    )
    _unique_ids(segments[at])


def _replace(segments: list[Segment], table: ReplaceTable, spot: Spot) -> None:
    at = _find_segment(segments, table.segment, spot.inside("segment"))
    segment = segments[at]
    place = _find_entry(segment, table.old, spot.inside("old"))
    new = _entries(table.passes, spot.inside("passes"))
    segments[at] = replace(
        segment, entries=(*segment.entries[:place], *new, *segment.entries[place + 1 :])
    )
    _unique_ids(segments[at])


def _find_entry(segment: Segment, name: str, spot: Spot) -> int:
    found = [i for i, e in enumerate(segment.entries) if name in (e.id, e.name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise spot.error(
            f"segment '{segment.name}' has '{name}' {len(found)} times",
            'give one an id: { pass = "...", id = "..." }',
        )
    names = [e.id for e in segment.entries]
    close = nearest(name, names)
    hint = f"did you mean '{close}'?" if close else f"its passes: {', '.join(names) or 'none'}"
    raise spot.error(f"segment '{segment.name}' has no pass '{name}'", hint)


def _unique_ids(segment: Segment) -> None:
    seen: set[str] = set()
    for entry in segment.entries:
        if entry.id != entry.name and entry.id in seen:
            raise entry.spot.error(f"id '{entry.id}' is used twice in segment '{segment.name}'")
        seen.add(entry.id)


def _entries(passes: list[str | dict[str, Any]], spot: Spot) -> tuple[Entry, ...]:
    return tuple(_entry(item, spot.inside(i)) for i, item in enumerate(passes))


def _entry(item: str | dict[str, Any], spot: Spot) -> Entry:
    if isinstance(item, str):
        return Entry(item, _bare(item), spot)
    name = item.get("pass")
    if not isinstance(name, str):
        raise spot.error('a pass entry needs the pass\'s name: { pass = "..." }')
    for key in ("id", "when"):
        if not isinstance(item.get(key, ""), str):
            raise spot.inside(key).error(f"'{key}' of pass '{name}' must be a string")
    preserve = item.get("preserve", [])
    if not isinstance(preserve, list) or not all(isinstance(p, str) for p in preserve):
        raise spot.inside("preserve").error(f"'preserve' of pass '{name}' must list analyses")
    options = {k: v for k, v in item.items() if k not in ENTRY_KEYS}
    for key, value in options.items():
        if not isinstance(value, bool | int | float | str):
            raise spot.inside(key).error(f"option '{key}' of pass '{name}' must be a plain value")
    name_of = item.get("id", _bare(name))
    return Entry(name, name_of, spot, item.get("when"), tuple(preserve), options)


def _bare(name: str) -> str:
    """A pass's name without options in braces, which upstream passes may carry."""
    return name.partition("{")[0]

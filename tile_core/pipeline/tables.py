"""Checking parsed TOML against the dataclasses of `schema.py`, and finding lines again."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tile_core.diagnostics import ConfigurationError, SourceLocation, nearest
from tile_core.pipeline.schema import PipelineFile
from tile_core.toml_text import TOMLError, parsed

T = TypeVar("T")
Path = tuple[str | int, ...]

_WORDS = {str: "a string", int: "an integer", bool: "true or false", float: "a number"}


class TableError(Exception):
    """A value that does not fit; `path` leads to it from the top of the file."""

    def __init__(self, message: str, path: Path, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.path, self.hint = message, path, hint


@dataclasses.dataclass(frozen=True)
class Source:
    """A pipeline file's text and name, for messages."""

    origin: str
    text: str

    def at(self, path: Path) -> SourceLocation:
        """The line where the value at `path` stands."""
        return SourceLocation(self.origin, find_line(self.text, path), 1)

    def error(self, message: str, path: Path, hint: str | None = None) -> ConfigurationError:
        """An error at the value of `path`."""
        return ConfigurationError(message, where=self.at(path), hint=hint)


@lru_cache(maxsize=32)  # each compilation reads the same few files
def read_file(source: Source) -> PipelineFile:
    """The checked contents of a pipeline file; nobody's to change.

    Raises:
        ConfigurationError: not TOML, an unknown key, a value of the wrong type.
    """
    try:
        data = parsed(source.text)
    except TOMLError as error:
        where = SourceLocation(source.origin, error.line, error.column)
        message = error.reason[:1].lower() + error.reason[1:]
        raise ConfigurationError(f"not valid TOML: {message}", where=where) from error
    try:
        return _value(PipelineFile, data, ())
    except TableError as error:
        raise source.error(error.message, error.path, error.hint) from error


@cache
def _hints(cls: type) -> dict[str, Any]:
    names = {f.name for f in dataclasses.fields(cls)}
    return {k: v for k, v in get_type_hints(cls).items() if k in names}


def _record(cls: type[T], data: Any, path: Path) -> T:
    if not isinstance(data, dict):
        raise TableError(f"expected a table, but got {data!r}", path)
    hints = _hints(cls)
    for key in data:
        if key not in hints:
            close = nearest(key, list(hints))
            raise TableError(
                f"unknown key '{key}'",
                (*path, key),
                f"did you mean '{close}'?" if close else f"known keys: {', '.join(hints)}",
            )
    for spec in dataclasses.fields(cls):  # type: ignore[arg-type]
        missing = spec.default is spec.default_factory is dataclasses.MISSING
        if missing and spec.name not in data:
            raise TableError(f"'{spec.name}' is missing", path)
    return cls(**{key: _value(hints[key], data[key], (*path, key)) for key in data})


def _value(kind: Any, data: Any, path: Path) -> Any:
    """`data` as `kind`; records become dataclasses, everything else stays what TOML made it."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, data, path)
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return data
    if origin in (Union, types.UnionType):
        return _union(args, data, path)
    if origin is Literal:
        if data not in args:
            close = nearest(str(data), [str(a) for a in args])
            allowed = ", ".join(repr(a) for a in args)
            hint = f"did you mean '{close}'?" if close else None
            raise TableError(f"{data!r} is not one of {allowed}", path, hint)
        return data
    if origin is list:
        if not isinstance(data, list):
            raise TableError(f"expected a list, but got {data!r}", path)
        return [_value(args[0], item, (*path, i)) for i, item in enumerate(data)]
    if origin is dict:
        if not isinstance(data, Mapping):
            raise TableError(f"expected a table, but got {data!r}", path)
        return {key: _value(args[1], item, (*path, key)) for key, item in data.items()}
    if type(data) is kind or (kind is float and type(data) is int):
        return data
    raise TableError(f"expected {_WORDS.get(kind, kind)}, but got {data!r}", path)


def _union(kinds: tuple[Any, ...], data: Any, path: Path) -> Any:
    kinds = tuple(kind for kind in kinds if kind is not types.NoneType)  # TOML has no null
    if len(kinds) == 1:
        return _value(kinds[0], data, path)
    for kind in kinds:
        try:
            return _value(kind, data, path)
        except TableError:
            continue
    wanted = [_WORDS.get(k, "a table" if get_origin(k) is dict else "") for k in kinds]
    text = " or ".join(word for word in wanted if word)
    raise TableError(f"expected {text}, but got {data!r}", path)


# --- lines: tomli keeps none, so the place of a value is found in the text again -----------------


def find_line(text: str, path: Path) -> int:
    """The line (from 1) of the value at `path` in TOML `text`; its nearest parent's if unclear."""
    lines = text.splitlines()
    begin, end, rest = _table(lines, path)
    line = begin
    for at, step in enumerate(rest):
        if isinstance(step, str):
            found = _key(lines, step, line, end)
            if found is None:
                break
            line = found
        else:
            end_of_value = _value_end(lines, line, end)
            return _element(lines, line, end_of_value, step, rest[at + 1 :])
    return line + 1


def _table(lines: list[str], path: Path) -> tuple[int, int, Path]:
    """The lines of the innermost `[table]` or `[[table]]` on `path`, and what is left of it."""
    best: tuple[int, int, Path] = (0, len(lines), path)
    counts: dict[str, int] = {}
    headers: list[tuple[int, Path]] = []
    for number, line in enumerate(lines):
        match = re.match(r"\s*(\[\[?)\s*([^\]]+?)\s*\]", line)
        if match is None or (line.lstrip() != line and "=" in line):
            continue
        name = match[2].replace('"', "")
        place: Path = tuple(name.split("."))
        if match[1] == "[[":
            place = (*place, counts.get(name, 0))
            counts[name] = counts.get(name, 0) + 1
        headers.append((number, place))
    for i, (number, place) in enumerate(headers):
        if path[: len(place)] == place and len(path) - len(place) <= len(best[2]):
            last = headers[i + 1][0] if i + 1 < len(headers) else len(lines)
            best = (number, last, path[len(place) :])
    return best


def _key(lines: list[str], key: str, begin: int, end: int) -> int | None:
    pattern = re.compile(rf"(?:^|[\s{{,])(?:\"{re.escape(key)}\"|{re.escape(key)})\s*[=.]")
    for number in range(begin, end):
        if pattern.search(_bare(lines[number])):
            return number
    return None


def _bare(line: str) -> str:
    """The line without its comment; a `#` inside quotes is none."""
    quoted = False
    for at, char in enumerate(line):
        if char == '"':
            quoted = not quoted
        elif char == "#" and not quoted:
            return line[:at]
    return line


def _value_end(lines: list[str], begin: int, end: int) -> int:
    depth = 0
    for number in range(begin, end):
        bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", _bare(lines[number]))
        depth += bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")
        if depth <= 0:
            return number + 1
    return end


def _element(lines: list[str], begin: int, end: int, index: int, rest: Path) -> int:
    """The line of the `index`-th element of the list that starts on line `begin`."""
    text = "\n".join(_bare(line) for line in lines[begin:end])
    tokens = re.finditer(r"\"[^\"]*\"|'[^']*'|[\[\]{},]|[^\s\"'\[\]{},]+", text)
    depth, count, inside = 0, 0, None
    for token in tokens:
        word = token[0]
        if depth == 1 and word not in ("]", ",") and inside is None and count == index:
            inside = begin + text[: token.start()].count("\n")
        if inside is not None and rest and word == rest[0]:
            return begin + text[: token.start()].count("\n") + 1
        if depth == 1 and word == ",":
            if inside is not None:
                break
            count += 1
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(word, 0)
    return (begin if inside is None else inside) + 1

"""What an editor is told of a text: problems, what stands under the cursor, where it is defined.

Lines and columns count from 0 here, as editors have them.
"""

from __future__ import annotations

import inspect
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tile_core.diagnostics import SourceLocation, TileError
from tile_core.registry import Registry

#: Names under the cursor: values, symbols, aliases, operations, passes and options.
_WORD = re.compile(r"%[\w$.-]+(?:#\d+)?|[@#!]?[\w$][\w$.:-]*")
_PIPELINE = ".toml"


@dataclass(frozen=True)
class Problem:
    """A message about a place in the text, with notes and hint behind it."""

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Place:
    """A place in a file; `file` is None for the text itself."""

    line: int
    file: Path | None = None


def problems(text: str, name: str, registry: Registry, target: str) -> list[Problem]:
    """What the compiler's readers and verifiers find wrong with a text."""
    check = _pipeline_problems if name.endswith(_PIPELINE) else _program_problems
    return [_problem(error) for error in check(text, registry, target)]


def _problem(error: TileError) -> Problem:
    where = error.where
    line, column = (where.line, where.column) if isinstance(where, SourceLocation) else (1, 1)
    rest = [*error.notes, *([f"hint: {error.hint}"] if error.hint else [])]
    return Problem(max(0, line - 1), max(0, column - 1), "\n".join([error.message, *rest]))


def _program_problems(text: str, registry: Registry, target: str) -> list[TileError]:
    from tile_core.frontend import FrontendContext, read_input
    from tile_core.rehearsal import rehearse_reading
    from tile_core.session import session_of

    try:
        rehearse_reading(text.encode(), registry)
        with session_of(registry) as session:
            context = FrontendContext(registry.target(target), "-", {})
            read_input(text.encode(), context, session)
    except TileError as error:
        return [error]
    return []


def _pipeline_problems(text: str, registry: Registry, target: str) -> list[TileError]:
    from tile_core.pipeline.resolve import Request, load
    from tile_core.pipeline.validate import problems_of

    with tempfile.TemporaryDirectory(prefix="tilec-lsp-") as folder:
        path = Path(folder, "pipeline.toml")
        path.write_text(text, encoding="utf-8")
        request = Request(target, None, str(path), {}, {})
        try:
            return list(problems_of(load(request, registry), request, registry))
        except TileError as error:
            return [error]


def word_at(text: str, line: int, column: int) -> str:
    """The name under the cursor; empty where there is none."""
    lines = text.splitlines()
    if line >= len(lines):
        return ""
    for match in _WORD.finditer(lines[line]):
        if match.start() <= column <= match.end():
            found = match[0].rstrip(":.")
            # One result of a group is defined where the group is.
            return found.partition("#")[0] if found.startswith("%") else found
    return ""


def hover(text: str, line: int, column: int, registry: Registry) -> str:
    """What is known of the name under the cursor; empty if nothing is."""
    from tile_core.explain import explanations
    from tile_core.pretty import pretty

    word = word_at(text, line, column)
    if not word or word.isdigit():
        return ""
    if word[0] in "%@#!":
        place = _defined_in(text, word, line)
        return pretty(text.splitlines()[place.line].strip()).strip() if place is not None else ""
    try:
        return "\n".join(explanations(registry, word))
    except TileError:
        return ""


def definition(text: str, line: int, column: int, registry: Registry) -> Place | None:
    """Where the name under the cursor is defined: in the text, or in a plugin's sources."""
    word = word_at(text, line, column)
    if not word:
        return None
    if word[0] in "%@#!":
        return _defined_in(text, word, line)
    return _in_sources(word, registry)


def _defined_in(text: str, word: str, before: int) -> Place | None:
    """The nearest line at or above `before` that defines a name, else the first below."""
    plain = re.escape(word.partition(":")[0] if word[0] == "%" else word)
    patterns = {
        # A result, an argument of a function or block, a variable of a loop.
        "%": rf"^\s*(?:%[\w$:]+\s*,\s*)*{plain}(?::\d+)?(?:\s*,\s*%[\w$:]+)*\s*="
        rf"|(?:\bfunc\b|\bentry\b|\^bb).*{plain}\s*:|\b(?:for|iter_args)\b.*{plain}\s*=",
        "@": rf"(?:func\.func|llvm\.func|gpu\.module|module|entry|global)\b[^@]*{plain}\b",
        "#": rf"^\s*{plain}\s*=",
        "!": rf"^\s*{plain}\s*=",
    }
    pattern = re.compile(patterns[word[0]])
    found = [at for at, line in enumerate(text.splitlines()) if pattern.search(line)]
    if not found:
        return None
    above = [at for at in found if at <= before]
    return Place(above[-1] if above else found[0])


def _in_sources(word: str, registry: Registry) -> Place | None:
    """The class or file behind a registered name or an operation."""
    from tile_core.explain import operations

    if registry.has("pipeline", word):
        package, _, file = registry.entry("pipeline", word).lazy.target.partition(":")
        folder = Path(inspect.getfile(__import__(package, fromlist=["_"]))).parent
        return Place(0, folder / file)
    for kind in ("pass", "emitter", "scheduler", "layout-strategy", "instrumentation"):
        if registry.has(kind, word) and not word.startswith("mlir:"):
            return _source_of(registry.load(kind, word))
    found = operations(registry).get(word)
    return None if found is None else _source_of(found)


def _source_of(thing: Any) -> Place | None:
    try:
        file = inspect.getsourcefile(thing)
        line = inspect.getsourcelines(thing)[1]
    except (OSError, TypeError):
        return None
    return None if file is None else Place(line - 1, Path(file))

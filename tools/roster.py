"""The roster: what the specification names, and the test that covers each name.

`docs/roster/*.toml` lists every operation, pass, option and diagnostic of the Tile IR
specification, one file per area. A file has `title` and `[[group]]`s; a group has a `title`, a
`kind` and, for operations, the `dialect`, and lists its names by state:

    [[group.tested]]           # works under this name (a diagnostic: in these words)
    test = "tests/unit/....py::test_name"    # or a file of tests
    texts = "tests/support/....py"           # where the names stand, if not in the test itself
    names = ["addf", "subf"]

    [[group.renamed]]          # works under a name, or in words, of ours
    test = "..."
    names = { "theirs" = "ours" }

    [[group.verified]]         # its rules are checked, but nothing makes code of it
    test = "..."
    why = "..."
    names = [...]

    [[group.declared]]         # parses and prints, and that is all
    why = "..."
    names = [...]

    [[group.refused]]          # an error that names it
    test = "..."
    why = "..."
    names = [...]

    [[group.absent]]           # is not there
    test = "..."               # optional: what happens instead
    names = { "name" = "why this one is not there" }

In a diagnostic, `{}` stands for a value. `own = true` marks a group of names which the
specification does not have.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tile_core.explain import operations
from tile_core.pipeline.resolve import Request, load
from tile_core.registry import Registry

ROOT = Path(__file__).resolve().parents[1]
ROSTER = ROOT / "docs" / "roster"
STATES = ("tested", "renamed", "verified", "declared", "refused", "absent")
KINDS = ("operation", "pass", "option", "diagnostic")
#: Keys of the tables by state.
_KEYS = {
    "tested": {"test", "texts", "names"},
    "renamed": {"test", "texts", "names"},
    "verified": {"test", "texts", "why", "names"},
    "declared": {"why", "names"},
    "refused": {"test", "texts", "why", "names"},
    "absent": {"test", "why", "names"},
}
#: Keys that a table may be without.
_OPTIONAL = {"texts"}


@dataclass(frozen=True)
class Row:
    """One name: `ours` is what it is called here; `test` and `texts` are paths."""

    name: str
    state: str
    ours: str
    test: str = ""
    texts: str = ""
    why: str = ""


@dataclass(frozen=True)
class Group:
    """Rows of one kind; operations are of `dialect`."""

    title: str
    kind: str
    dialect: str
    own: bool
    rows: tuple[Row, ...]

    def registered(self, row: Row) -> str:
        """What an operation, pass or option is registered as."""
        return f"{self.dialect}.{row.ours}" if self.kind == "operation" else row.ours


@dataclass(frozen=True)
class Area:
    """One file."""

    file: str
    title: str
    groups: tuple[Group, ...]


def areas() -> list[Area]:
    """All files, in order.

    Raises:
        ValueError: a table that has no such form.
    """
    return [read(path) for path in sorted(ROSTER.glob("*.toml"))]


def read(path: Path) -> Area:
    """One file.

    Raises:
        ValueError: a table that has no such form.
    """
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    groups = tuple(_group(table, path.name) for table in data["group"])
    return Area(path.name, data["title"], groups)


def _group(table: dict[str, Any], file: str) -> Group:
    known = {"title", "kind", "dialect", "own", *STATES}
    if not set(table) <= known or table["kind"] not in KINDS:
        raise ValueError(f"{file}: group '{table.get('title')}' has unknown keys or kind")
    rows = [
        row
        for state in STATES
        for part in table.get(state, ())
        for row in _rows(state, part, table["kind"])
    ]
    return Group(
        table["title"], table["kind"], table.get("dialect", ""), table.get("own", False),
        tuple(rows),
    )  # fmt: skip


def _rows(state: str, table: dict[str, Any], kind: str) -> Iterator[Row]:
    optional = _OPTIONAL | ({"test", "why"} if state == "absent" else set())
    if set(table) - _KEYS[state] or not (set(table) | optional) >= _KEYS[state]:
        raise ValueError(f"a table '{state}' has the keys {sorted(table)}")
    names = table["names"]
    if state == "absent" and not isinstance(names, dict) and "why" not in table:
        raise ValueError(f"a table '{state}' has the keys {sorted(table)}, and no reasons")
    rest = {key: table.get(key, "") for key in ("test", "texts", "why")}
    if state == "absent":
        reasons = names if isinstance(names, dict) else dict.fromkeys(names, rest["why"])
        yield from (Row(n, state, n, **{**rest, "why": why}) for n, why in reasons.items())
        return
    pairs = names.items() if isinstance(names, dict) else ((name, name) for name in names)
    for name, ours in pairs:
        if kind == "operation":
            # MLIR's bindings take neither dots nor capitals in names of operations.
            ours = ours.replace(".", "_").lower()
        yield Row(name, state, ours, **rest)


# --- what is registered --------------------------------------------------------------------------


def registered(registry: Registry) -> dict[str, set[str]]:
    """Kind -> names of this repository's operations, passes and options.

    Options of passes are spelled `pass.option`, those of pipelines by their name.
    """
    own = _own_distributions()
    passes = [e.lazy.name for e in registry.entries("pass") if e.plugin.distribution in own]
    options = set(load(Request("sm_90", 3, None, {}, {}), registry).options)
    for name in passes:
        options |= {f"{name}.{option}" for option in registry.load("pass", name).options()}
    return {"operation": set(operations(registry)), "pass": set(passes), "option": options}


def _own_distributions() -> set[str]:
    projects = [ROOT / "pyproject.toml", *(ROOT / "plugins").glob("*/pyproject.toml")]
    return {tomllib.loads(p.read_text(encoding="utf-8"))["project"]["name"] for p in projects}


# --- checks --------------------------------------------------------------------------------------


def problems(found: list[Area], registry: Registry) -> Iterator[str]:
    """What is wrong with the roster: each sentence is one mistake."""
    known = registered(registry)
    yield from _shared_reasons(found)
    listed: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for area in found:
        for group in area.groups:
            for row in group.rows:
                where = f"{area.file}, '{group.title}': '{row.name}'"
                yield from (f"{where} {what}" for what in _wrong(group, row, known))
                if row.state != "absent":
                    listed[group.kind].add(group.registered(row))
    for kind, names in known.items():
        for name in sorted(names - listed[kind]):
            yield f"the {kind} '{name}' is in no file of the roster"


def _shared_reasons(found: list[Area]) -> Iterator[str]:
    """A name that is not there has been looked at by itself: its reason is no other's."""
    absent = [row for area in found for g in area.groups for row in g.rows if row.state == "absent"]
    counts = Counter(row.why for row in absent)
    for row in absent:
        if counts[row.why] > 1:
            yield f"'{row.name}' shares its reason with another name: {row.why}"


def _wrong(group: Group, row: Row, known: dict[str, set[str]]) -> Iterator[str]:
    if row.state in ("verified", "declared", "refused", "absent") and len(row.why) < 12:
        yield "has no reason"
    here = group.registered(row) in known.get(group.kind, ())
    if row.state == "absent":
        if here:
            yield "is said to be absent, but it is registered"
        if row.test:
            yield from _missing(row)
        return
    if group.kind == "operation" and row.state != "refused" and not here:
        yield f"is no registered operation ('{group.registered(row)}')"
    if row.state != "declared":
        yield from _untested(group, row)


def _untested(group: Group, row: Row) -> Iterator[str]:
    path, _, function = row.test.partition("::")
    missing = list(_missing(row))
    if missing or not path:
        yield from missing or ["has no test"]
        return
    text = _said(ROOT / (row.texts or path), "" if row.texts else function)
    if not _mention(group, row).search(text):
        yield f"is not mentioned in '{row.texts or row.test}'"


def _missing(row: Row) -> Iterator[str]:
    """What a row names and is not there."""
    path, _, function = row.test.partition("::")
    for named in filter(None, (path, row.texts)):
        if not (ROOT / named).is_file():
            yield f"names '{named}', which does not exist"
            return
    if function and function not in _functions(ROOT / path):
        yield f"names '{row.test}', but there is no such test"


def _mention(group: Group, row: Row) -> re.Pattern[str]:
    """What a test says that is about the row."""
    if group.kind == "diagnostic":
        parts = [part.strip(" '`,.:;()[]") for part in row.ours.split("{}")]
        return re.compile("[^\n]*?".join(re.escape(part) for part in parts if len(part) > 2))
    names = {row.ours.rpartition(".")[2] if group.kind == "option" else row.ours}
    if group.kind == "operation":
        names.add(row.name.rpartition(".")[2])
    listed = "|".join(map(re.escape, sorted(names)))
    before = r"(?<!\w)" if group.kind == "option" else r"(?<![\w-])"
    return re.compile(rf"{before}(?:{listed})(?![\w-])")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _functions(path: Path) -> dict[str, ast.AST]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name: node for node in ast.walk(_tree(path)) if isinstance(node, kinds)}


@cache
def _said(path: Path, function: str) -> str:
    """The strings and names of a file, or of one of its functions, a line each."""
    if path.suffix != ".py":
        return path.read_text(encoding="utf-8").replace("\\", "")
    root = _functions(path)[function] if function else _tree(path)
    lines = []
    for node in ast.walk(root):
        if isinstance(node, ast.JoinedStr):
            parts = [v.value if isinstance(v, ast.Constant) else " " for v in node.values]
            lines.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            lines.append(node.value)
        elif isinstance(node, ast.Name | ast.Attribute):
            lines.append(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.keyword) and node.arg:
            lines.append(node.arg)
        elif isinstance(node, ast.FunctionDef):
            lines.append(node.name)
    return "\n".join(lines).replace("\\", "")

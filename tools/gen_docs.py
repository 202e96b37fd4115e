"""Writes docs/passes.md from what the project's plugins register.

`python tools/gen_docs.py` writes the file; with `--check` it exits with 1, and says so, if the
file is not up to date.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import Field
from inspect import cleandoc
from pathlib import Path
from typing import Any

from tile_core.api import plan_for
from tile_core.passes import Pass
from tile_core.registry import Entry, Registry

ROOT = Path(__file__).resolve().parents[1]
PASSES = ROOT / "docs" / "passes.md"
LEVELS = range(4)
#: Any one will do: no pass of the levels depends on the GPU.
TARGET = "sm_90"

INTRODUCTION = """\
# Passes

<!-- Written by tools/gen_docs.py; do not edit. -->

What the passes of this repository do, and their options. Set an option in a pipeline file
(`{ pass = "NAME", option = value }`), on the command line (`-D NAME.option=value`), or in a list
of passes (`tilec opt -p 'NAME{option=value}'`). Passes of MLIR itself run as `mlir:NAME`.
`tilec plugins list` names everything that is installed, other people's plugins included.
"""


def own_distributions() -> set[str]:
    """Names of the distributions that are built from this repository."""
    projects = [ROOT / "pyproject.toml", *(ROOT / "plugins").glob("*/pyproject.toml")]
    return {tomllib.loads(p.read_text(encoding="utf-8"))["project"]["name"] for p in projects}


def own_passes(registry: Registry) -> list[Entry]:
    """Entries of the passes that this repository brings, in order of their use, then by name."""
    own = own_distributions()
    entries = [e for e in registry.entries("pass") if e.plugin.distribution in own]
    used = [name for names in levels(registry).values() for name in names]
    order = {name: used.index(name) for name in used}
    return sorted(entries, key=lambda e: (order.get(e.lazy.name, len(used)), e.lazy.name))


def levels(registry: Registry) -> dict[str, list[str]]:
    """Level -> names of the passes that it runs, in order; the most thorough level first."""
    found = {}
    for level in reversed(LEVELS):
        resolved = plan_for(TARGET, opt_level=level, registry=registry)
        names = [call.name for segment in resolved.segments for call in segment.passes]
        found[f"-O{level}"] = names
    return found


def passes_text(registry: Registry) -> str:
    """The whole of docs/passes.md."""
    entries, used = own_passes(registry), levels(registry)
    lines = [INTRODUCTION, "| pass | of | what it does |", "|---|---|---|"]
    for entry in entries:
        name = entry.lazy.name
        lines.append(f"| [{name}](#{name}) | {entry.plugin.distribution} | {entry.lazy.summary} |")
    for entry in entries:
        at = [level for level, names in sorted(used.items()) if entry.lazy.name in names]
        lines += ["", *pass_lines(entry, registry.load("pass", entry.lazy.name), at)]
    return "\n".join(lines) + "\n"


def pass_lines(entry: Entry, kind: type[Pass], at: list[str]) -> Iterator[str]:
    """One pass."""
    yield f"## {entry.lazy.name}"
    yield ""
    yield cleandoc(kind.__doc__ or "")
    yield ""
    yield f"* runs on: `{kind.anchor}`"
    yield f"* levels: {', '.join(at) or 'none; name it in a pipeline'}"
    for title, names in (
        ("makes operations of", kind.dependent_dialects),
        ("keeps analyses", kind.preserves),
        ("publishes", kind.publishes),
        ("requires", kind.requires),
    ):
        if names:
            yield f"* {title}: {', '.join(f'`{name}`' for name in names)}"
    if kind.options():
        yield from ("", "| option | default | values | |", "|---|---|---|---|")
        for name, option in kind.options().items():
            yield option_line(name, option)
    if kind.statistics:
        yield from ("", "| statistic | counts |", "|---|---|")
        for name, what in kind.statistics.items():
            yield f"| `{name}` | {what} |"


def option_line(name: str, option: Field[Any]) -> str:
    """A row of the table of options."""
    choices = option.metadata.get("choices") or ()
    values = ", ".join(f"`{spelt(choice)}`" for choice in choices)
    values = values or type(option.default).__name__
    about = option.metadata.get("help", "")
    return f"| `{name}` | `{spelt(option.default)}` | {values} | {about} |"


def spelt(value: Any) -> str:
    """A value as pipelines spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def main(arguments: list[str]) -> int:
    """Write or check; the exit code."""
    text = passes_text(Registry.discover())
    if arguments == ["--check"]:
        if PASSES.is_file() and PASSES.read_text(encoding="utf-8") == text:
            return 0
        print("docs/passes.md is not up to date: run python tools/gen_docs.py", file=sys.stderr)
        return 1
    if arguments:
        print("usage: python tools/gen_docs.py [--check]", file=sys.stderr)
        return 2
    PASSES.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Writes docs/reference/: commands, variables, options, diagnostics, hooks and operations.

`python tools/gen_reference.py FOLDER` writes the pages there; building the documentation does it
(docs/conf.py), so that they are never checked in and never out of date.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from tile_core import explain, hookspecs, remarks
from tile_core.diagnostics import ExitCode
from tile_core.explain import messages_of, operations
from tile_core.pipeline.resolve import Request, load
from tile_core.registry import KINDS, Registry

MARK = "<!-- Made by tools/gen_reference.py; do not edit. -->"
#: Characters that MyST or HTML would read something into.
_SPECIAL = re.compile(r"([<>*_|`\[\]{}$~])")


def plain(text: str) -> str:
    """Text as it is, in Markdown and in cells of tables."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def table(titles: list[str], rows: list[list[str]]) -> Iterator[str]:
    """A table of Markdown."""
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def commands(registry: Registry) -> Iterator[str]:
    """Every verb of `tilec`, with its options."""
    yield from ("# Commands", "", MARK, "")
    yield "`--traceback`, `--disable-plugin NAME`, `--version` and `--help` go with all of them."
    yield ""
    entries = sorted(registry.entries("command"), key=lambda e: e.lazy.name)
    for entry in entries:
        command = registry.load("command", entry.lazy.name)
        yield from _command(f"tilec {entry.lazy.name}", command, 2)


def _command(name: str, command: click.Command, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield from (f"{'#' * level} {name}", "")
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from ("```text", usage, "```", "")
    yield from (plain(part) + "\n" for part in (command.help or "").split("\n\n"))
    rows = []
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            names = ", ".join(f"`{o}`" for o in (*option.opts, *option.secondary_opts))
            takes = (
                "" if option.is_flag else f" `{option.make_metavar(context)}`".replace("|", "\\|")
            )
            default = ""
            if option.show_default and option.default not in (None, False, ()):
                default = f" [default: {plain(str(option.default))}]"
            rows.append([names + takes, plain(option.help or "") + default])
    if rows:
        yield from table(["option", ""], rows)
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            found = command.get_command(context, part)
            if found is not None:
                yield from _command(f"{name} {part}", found, level + 1)


def variables(registry: Registry) -> Iterator[str]:
    """Environment variables."""
    del registry
    yield from ("# Environment variables", "", MARK, "")
    rows = [[f"`{name}`", plain(what)] for name, what in explain.variables().items()]
    yield from table(["variable", ""], rows)


def options(registry: Registry) -> Iterator[str]:
    """Pipeline options of the levels."""
    yield from ("# Pipeline options", "", MARK, "")
    yield "Set one with `--set NAME=VALUE`, or under `[set]` of a pipeline file. Options of passes"
    yield "are in [Passes](../passes.md)."
    yield ""
    rows = []
    for name, (option, _) in load(Request("sm_90", 3, None, {}, {}), registry).options.items():
        values = option.choices or (registry.names(option.names) if option.names else [option.type])
        about = option.help + (" (reserved: nothing reads it yet)" if option.reserved else "")
        words = ", ".join(f"`{value}`" for value in values)
        rows.append([f"`{name}`", f"`{option.default}`", words, plain(about)])
    yield from table(["option", "default at -O0", "values", ""], rows)


def diagnostics(registry: Registry) -> Iterator[str]:
    """Exit codes, messages, kinds and categories of remarks."""
    yield from ("# Messages and codes", "", MARK, "")
    yield "The form of errors and remarks is in [Errors and exit codes](../diagnostics.md)."
    yield "`tilec explain` finds the rows of this page by any part of a message."
    yield from ("", "## Exit codes", "")
    yield from table(["code", "name"], [[str(int(c)), f"`{c.name}`"] for c in ExitCode])
    yield from ("## Messages", "")
    rows = [[plain(m.text), plain(m.why), m.do] for m in messages_of(registry)]
    yield from table(["message", "why", "what to do"], rows)
    yield from ("## Remarks", "")
    yield f"Kinds: {', '.join(f'`{kind}`' for kind in remarks.KINDS)}. "
    yield f"Categories: {', '.join(f'`{name}`' for name in remarks.CATEGORIES)}."


def hooks(registry: Registry) -> Iterator[str]:
    """What a plugin may implement, and what implements it here."""
    yield from ("# Hooks", "", MARK, "")
    yield "A plugin implements any of these in the module that its entry point in group"
    yield "`tile.plugins` names ([Writing a plugin](../plugin-guide.md))."
    yield ""
    for kind, (hook, _) in KINDS.items():
        function = getattr(hookspecs, hook)
        yield from (f"## {hook}", "", inspect.cleandoc(function.__doc__ or ""), "")
        rows = [
            [f"`{entry.lazy.name}`", entry.plugin.distribution, plain(entry.lazy.summary)]
            for entry in sorted(registry.entries(kind), key=lambda e: e.lazy.name)
        ]
        if rows:
            yield from table(["name", "of", ""], rows)


def dialects(registry: Registry) -> Iterator[str]:
    """Every operation of the dialects."""
    yield from ("# Operations", "", MARK, "")
    by_dialect: dict[str, list[list[str]]] = {}
    for name, kind in operations(registry).items():
        doc = inspect.cleandoc(kind.__doc__ or "").strip("`. ")
        about = "" if doc == name else plain(doc)
        by_dialect.setdefault(name.partition(".")[0], []).append([f"`{name}`", about])
    for dialect, rows in by_dialect.items():
        yield from (f"## {dialect}", "")
        yield from table(["operation", ""], rows)


PAGES: dict[str, Callable[[Registry], Iterator[str]]] = {
    "commands": commands,
    "variables": variables,
    "options": options,
    "diagnostics": diagnostics,
    "hooks": hooks,
    "operations": dialects,
}


def write(folder: Path) -> list[Path]:
    """Write every page below `folder`; the files."""
    registry = Registry.discover()
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Any] = []
    for name, page in PAGES.items():
        path = folder / f"{name}.md"
        text = "\n".join(page(registry)).rstrip() + "\n"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        made.append(path)
    return made


if __name__ == "__main__":
    for written in write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference")):
        print(written)

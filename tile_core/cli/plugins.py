"""`tilec plugins`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import rich_click as click

from tile_core.diagnostics import ConfigurationError, ExitCode, nearest


@click.group("plugins")
def plugins() -> None:
    """List, check and create plugins."""


@plugins.command("list")
@click.option("--kind", help="Only names of one kind: pass, scheduler, layout-strategy, ...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_(app: Any, kind: str | None, as_json: bool) -> int:
    """List the installed plugins and every name they register."""
    registry = app.lenient_registry
    rows = _rows(registry, kind)
    if as_json:
        data = {
            "plugins": [
                {"name": p.name, "distribution": p.distribution, "version": p.version}
                for p in registry.plugins
            ],
            "broken": [
                {"name": b.name, "distribution": b.distribution, "reason": b.error.message}
                for b in registry.broken
            ],
            "names": [
                dict(zip(("plugin", "kind", "name", "summary"), r, strict=True)) for r in rows
            ],
        }
        click.echo(json.dumps(data, indent=1))
    else:
        _print_rows(registry, rows)
    return ExitCode.CONFIGURATION if registry.broken else ExitCode.OK


def _rows(registry: Any, kind: str | None) -> list[tuple[str, str, str, str]]:
    from tile_core.registry import KINDS

    if kind is not None and kind not in KINDS:
        close = nearest(kind, list(KINDS))
        raise ConfigurationError(
            f"there is no kind '{kind}'",
            notes=(f"kinds: {', '.join(KINDS)}",),
            hint=f"did you mean '{close}'?" if close else None,
        )
    return [
        (entry.plugin.name, entry.kind, entry.lazy.name, entry.lazy.summary)
        for plugin in registry.plugins
        for k in KINDS
        for entry in registry.entries(k)
        if entry.plugin == plugin and kind in (None, k)
    ]


def _print_rows(registry: Any, rows: list[tuple[str, str, str, str]]) -> None:
    for plugin in registry.plugins:
        own = [row for row in rows if row[0] == plugin.name]
        if own or plugin.name != "core":
            click.echo(click.style(f"{plugin.name} ({plugin})", bold=True))
        for _, kind, name, summary in own:
            click.echo(f"  {kind:16} {name:34} {summary}".rstrip())
    for broken in registry.broken:
        click.echo(click.style(f"{broken.name}: cannot be used", bold=True))
        click.echo(f"  {broken.error.message}")


@plugins.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(app: Any, name: str, as_json: bool) -> None:
    """Describe a registered NAME: who brings it, and its options."""
    from tile_core.inspection import description_of
    from tile_core.registry import KINDS

    registry = app.registry
    found = [registry.entry(kind, name) for kind in KINDS if registry.has(kind, name)]
    if not found:
        close = nearest(name, [n for kind in KINDS for n in registry.names(kind)])
        raise ConfigurationError(
            f"no plugin registers '{name}'",
            hint=f"did you mean '{close}'?" if close else "`tilec plugins list` shows all names",
        )
    texts = [description_of(registry, entry) for entry in found]
    click.echo(json.dumps(texts, indent=1) if as_json else "".join(texts), nl=as_json)


@plugins.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def check(app: Any, names: tuple[str, ...], as_json: bool) -> int:
    """Load everything that plugins register, and say what is wrong with it."""
    from tile_core.inspection import problems_of_plugin

    registry = app.lenient_registry
    known = [p.name for p in registry.plugins] + [b.name for b in registry.broken]
    bad = 0
    found: dict[str, list[str]] = {}
    for name in names or known:
        if name not in known:
            close = nearest(name, known)
            raise ConfigurationError(
                f"there is no plugin '{name}'", hint=f"did you mean '{close}'?" if close else None
            )
        problems = [b.error.message for b in registry.broken if b.name == name]
        problems += problems_of_plugin(registry, name)
        bad += len(problems)
        found[name] = problems
        for problem in () if as_json else problems:
            click.echo(f"{name}: {problem}", err=True)
        if not problems and not as_json:
            click.echo(f"{name}: ok")
    if as_json:
        click.echo(json.dumps(found, indent=1))
    return ExitCode.CONFIGURATION if bad else ExitCode.OK


@plugins.command("new")
@click.argument("name")
@click.option("--directory", type=click.Path(path_type=Path), default=Path(),
              help="Where to put it [default: here].")  # fmt: skip
@click.option("--scheduler", "kind", flag_value="scheduler", help="With a scheduler.")
@click.option("--layout-strategy", "kind", flag_value="layout-strategy", help="With a strategy.")
@click.option("--dialect", "kind", flag_value="dialect", help="With a dialect and its lowering.")
@click.option("--target", "kind", flag_value="target", help="With a GPU target.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def new(name: str, directory: Path, kind: str | None, as_json: bool) -> None:
    """Create a plugin package NAME: a pass (or what an option says), a test, an entry point."""
    from tile_core.scaffold import create_plugin

    root = create_plugin(name, directory, kind or "pass")
    if as_json:
        click.echo(json.dumps({"created": str(root)}))
        return
    click.echo(f"created {root}\nnext: pip install -e {root} && pytest {root}")

"""`tilec pipeline`."""

from __future__ import annotations

import json
from typing import Any

import rich_click as click

from tile_core.cli.arguments import pass_settings_of, pipeline_options, settings_of
from tile_core.diagnostics import ExitCode, TileError, UsageError


@click.group("pipeline")
def pipeline() -> None:
    """Show, check and compare pipelines."""


@pipeline.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_(app: Any, as_json: bool) -> None:
    """List the registered pipelines."""
    entries = app.registry.entries("pipeline")
    if as_json:
        rows = [
            {"name": e.lazy.name, "summary": e.lazy.summary, "plugin": str(e.plugin)}
            for e in entries
        ]
        click.echo(json.dumps(rows, indent=1))
        return
    for entry in entries:
        click.echo(f"{entry.lazy.name:22} {entry.plugin!s:24} {entry.lazy.summary}")


@pipeline.command("show")
@click.argument("name", required=False, metavar="[NAME|FILE.toml]")
@pipeline_options
@click.option("--options", "with_options", is_flag=True, help="Print the options as well.")
@click.option("--text", "as_text", is_flag=True, help="Print one line for --pass-pipeline.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(
    app: Any, name: str | None, with_options: bool, as_text: bool, as_json: bool, **values: Any
) -> None:
    """Print the passes that run, in order, for a level, GPU and options."""
    from tile_core.pipeline import show as printing
    from tile_core.pipeline.text import as_text as text_of

    merged, resolved = _resolved(app, name, values)
    if as_json:
        click.echo(printing.as_json(resolved), nl=False)
    elif as_text:
        click.echo(text_of(resolved.segments))
    elif merged.head.kind == "listing":
        click.echo(f"# {merged.head.summary}; for display, does not compile")
        click.echo(printing.flat_list(resolved), nl=False)
    else:
        click.echo(f"# {resolved.name} for {resolved.target.name}: {merged.head.summary}")
        if with_options:
            click.echo(printing.options_list(resolved, merged))
        click.echo(printing.flat_list(resolved, app.registry), nl=False)


@pipeline.command("validate")
@click.argument("names", nargs=-1, metavar="[NAME|FILE.toml]...")
@pipeline_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def validate(app: Any, names: tuple[str, ...], as_json: bool, **values: Any) -> int:
    """Check pipelines: every name, option, anchor and condition. All registered ones by default."""
    from tile_core.pipeline.resolve import load
    from tile_core.pipeline.validate import problems_of

    bad = 0
    found: dict[str, list[str]] = {}
    for name in names or app.registry.names("pipeline"):
        request = _request(name, values)
        try:
            problems = problems_of(load(request, app.registry), request, app.registry)
        except TileError as error:
            problems = [error]
        bad += len(problems)
        found[name] = [problem.render() for problem in problems]
        for problem in () if as_json else problems:
            click.echo(problem.render(), err=True)
        if not problems and not as_json:
            click.echo(f"{name}: ok")
    if as_json:
        click.echo(json.dumps(found, indent=1))
    return ExitCode.CONFIGURATION if bad else ExitCode.OK


@pipeline.command("diff")
@click.argument("first")
@click.argument("second")
@pipeline_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def diff(app: Any, first: str, second: str, as_json: bool, **values: Any) -> int:
    """Print what pipeline SECOND does otherwise than FIRST, as a unified diff.

    Exit code 1 when they differ.
    """
    from tile_core.pipeline.show import difference

    _, left = _resolved(app, first, values)
    _, right = _resolved(app, second, values)
    text = difference(left, right)
    if as_json:
        click.echo(json.dumps({"differ": bool(text), "diff": text.splitlines()}, indent=1))
    else:
        click.echo(text, nl=False)
    return int(bool(text))


@pipeline.command("schema")
def schema() -> None:
    """Print the JSON Schema of pipeline files, for editors."""
    from tile_core.pipeline.json_schema import pipeline_schema

    click.echo(json.dumps(pipeline_schema(), indent=1))


def _request(name: str | None, values: dict[str, Any]) -> Any:
    from tile_core.pipeline.resolve import Request

    if name is not None and values["pipeline"] is not None:
        raise UsageError("the pipeline is given twice: as an argument and with --pipeline")
    return Request(
        values["gpu_name"],
        values["opt_level"],
        name or values["pipeline"],
        settings_of(values["settings"], values["scheduler"], values["layout_strategy"]),
        pass_settings_of(values["pass_settings"]),
    )


def _resolved(app: Any, name: str | None, values: dict[str, Any]) -> tuple[Any, Any]:
    from tile_core.pipeline.resolve import load, resolve

    request = _request(name, values)
    merged = load(request, app.registry)
    return merged, resolve(merged, request, app.registry)

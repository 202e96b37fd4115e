"""`tilec diff`: any stage of two compilations, side by side or as a diff."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import rich_click as click

from tile_core.cli.arguments import pass_settings_of, pipeline_options, settings_of
from tile_core.cli.output import read_bytes
from tile_core.diagnostics import UsageError

_DIFFERS = 1


@click.command("diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@pipeline_options
@click.option(
    "--emit",
    default="ptx",
    show_default=True,
    metavar="tileir|mlir|mlir:PASS|llvm|ptx",
    help="The stage to compare.",
)
@click.option("--left", metavar="OPTIONS", default="", help="Options of A alone: '-O2 --set x=1'.")
@click.option("--right", metavar="OPTIONS", default="", help="Options of B alone.")
@click.option("--plain", is_flag=True, help="Compare the text as it is, locations included.")
@click.option("--context", default=3, show_default=True, help="Lines around a difference.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def diff(
    app: Any,
    first: str,
    second: str | None,
    emit: str,
    left: str,
    right: str,
    plain: bool,
    context: int,
    as_json: bool,
    **common: Any,
) -> int:  # fmt: skip
    """Compare a stage of two compilations: of two programs, of one under two sets of options.

    Exit code 1 when they differ.
    """
    from tile_core.difference import coloured, unified

    if second is None and left == right:
        raise UsageError(
            "one program under one set of options does not differ",
            hint="give B, or options of one side: --left -O2 --right -O3",
        )
    sides = []
    for source, own in ((first, left), (second or first, right)):
        text = _stage(app, source, emit, _merged(common, own), plain)
        sides.append((f"{source} {own}".strip(), text))
    (name_a, a), (name_b, b) = sides
    text = unified(a, b, name_a, name_b, context)
    if as_json:
        record = {"first": name_a, "second": name_b, "stage": emit, "differ": bool(text)}
        click.echo(json.dumps({**record, "diff": text.splitlines()}, indent=1))
    else:
        click.echo(coloured(text, click.style), nl=False)
    return _DIFFERS if text else 0


@click.command("options of one side")
@pipeline_options
def _side(**_: Any) -> None:
    """Reads what `--left` and `--right` say, by the parser of all verbs."""


def _merged(common: Mapping[str, Any], own: str) -> dict[str, Any]:
    """The options of one side: those of both, and its own over them."""
    context = _side.make_context("--left or --right", shlex.split(own))
    found = dict(common)
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            found[name] = (*common[name], *value) if isinstance(value, tuple) else value
    return found


def _stage(app: Any, source: str, emit: str, given: Mapping[str, Any], plain: bool) -> str:
    from tile_core.api import compile as compile_program
    from tile_core.pretty import pretty

    if emit == "cubin":
        raise UsageError("cubins are no text", hint="--emit ptx")
    made = compile_program(
        read_bytes(source),
        given["gpu_name"],
        opt_level=given["opt_level"],
        pipeline=given["pipeline"],
        options=settings_of(given["settings"], given["scheduler"], given["layout_strategy"]),
        pass_options=pass_settings_of(given["pass_settings"]),
        emit=emit,
        registry=app.registry,
        name=source,
        keep_stages=False,
    )
    text = str(made.output)
    is_mlir = emit in ("tileir", "mlir") or emit.startswith("mlir:")
    return pretty(text, locations=False) if is_mlir and not plain else text

"""`tilec opt`: passes over textual MLIR."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import rich_click as click

from tile_core.cli.arguments import pass_settings_of, pipeline_options, settings_of
from tile_core.cli.as_json import json_option, print_json
from tile_core.cli.observe import observe_options, observers
from tile_core.cli.output import STDIO, Output, read_bytes
from tile_core.diagnostics import InputError, UsageError


@click.command("opt")
@click.argument("source", metavar="INPUT", default=STDIO)
@click.option("-o", "--output", metavar="FILE", default=STDIO, help="Output file.")
@click.option(
    "-p",
    "--passes",
    metavar="PASS,PASS{OPT=V}",
    help="Passes to run, each wherever its anchor is found.",
)
@click.option(
    "--pass-pipeline",
    metavar="TEXT",
    help="A nested pipeline: "
    "builtin.module(...); or tileir{opt-level=2 num-warps=8 ...}, a level's.",
)
@pipeline_options
@click.option("--stop-after", metavar="STAGE", help="Segment or pass of --pipeline to end with.")
@click.option("--start-at", metavar="STAGE", help="Segment or pass of --pipeline to begin with.")
@click.option("--split-input-file", is_flag=True, help="Split the input at '// -----' lines.")
@click.option(
    "--verify-diagnostics",
    is_flag=True,
    help="Compare errors and remarks with `expected-...` comments.",
)
@click.option("--run-reproducer", is_flag=True, help="Run what a reproducer's comments say.")
@click.option("--generic", is_flag=True, help="Print operations in their generic form.")
@click.option("--debug-info", is_flag=True, help="Print locations.")
@json_option
@observe_options
@click.pass_obj
def opt(
    app: Any,
    source: str,
    output: str,
    settings: tuple[str, ...],
    pass_settings: tuple[str, ...],
    scheduler: str | None,
    layout_strategy: str | None,
    split_input_file: bool,
    verify_diagnostics: bool,
    as_json: bool,
    **values: Any,
) -> int:
    """Run passes over textual MLIR in INPUT and print the result."""
    from tile_core.opt import OptJob, Selection, optimize, split_input, verify_diagnostics_of

    try:
        text = read_bytes(source).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"'{source}' is not textual MLIR") from error
    watch = observers(values)
    selection = Selection(
        passes=values["passes"],
        pass_pipeline=values["pass_pipeline"],
        pipeline=values["pipeline"],
        opt_level=values["opt_level"],
        stop_after=values["stop_after"],
        start_at=values["start_at"],
        reproducer=values["run_reproducer"],
        options=settings_of(settings, scheduler, layout_strategy),
        pass_options=pass_settings_of(pass_settings),
        target=values["gpu_name"],
        target_given=_is_given("gpu_name"),
    )
    if selection.count() > 1:
        raise UsageError("-p, --pass-pipeline, --pipeline and --run-reproducer exclude each other")
    job = OptJob(
        app.registry, selection, "<stdin>" if source == STDIO else source,
        tuple(watch.instrumentations), watch.verify, values["generic"],
        values["debug_info"] or watch.pretty,
    )  # fmt: skip
    parts = split_input(text) if split_input_file else [(text, 0)]
    if verify_diagnostics:
        return _report(
            [p for part, first in parts for p in verify_diagnostics_of(part, first, job)], as_json
        )
    with Output(output) as file:
        results = [optimize(part, first, job) for part, first in parts]
        for result in results:
            watch.report(result.artifact)
        texts = [result.text for result in results]
        if watch.pretty:
            from tile_core.pretty import pretty

            texts = [pretty(text) for text in texts]
        if as_json:
            remarks = [[asdict(r) for r in result.artifact.remarks] for result in results]
            both = zip(texts, remarks, strict=True)
            made = [{"text": text, "remarks": found} for text, found in both]
            file.commit(json.dumps(made, indent=1, default=str) + "\n")
        else:
            file.commit("// -----\n".join(texts))
    return 0


def _is_given(name: str) -> bool:
    context = click.get_current_context()
    source = context.get_parameter_source(name) if context else None
    return source is not None and source.name != "DEFAULT"


def _report(problems: list[str], as_json: bool) -> int:
    if as_json:
        print_json({"problems": problems})
        return 1 if problems else 0
    for problem in problems:
        click.echo(problem, err=True)
    return 1 if problems else 0

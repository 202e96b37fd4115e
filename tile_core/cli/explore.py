"""`tilec explore`: one HTML file that shows a compilation."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import rich_click as click

from tile_core.cli.arguments import completing, pass_settings_of, pipeline_options, settings_of
from tile_core.cli.output import Output, read_bytes
from tile_core.cli.progress import Progress
from tile_core.diagnostics import TileError


@click.command("explore")
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", required=True, metavar="FILE.html", help="Where the page goes.")
@pipeline_options
@click.option(
    "--gpu",
    default="h100",
    show_default=True,
    shell_complete=completing("machine"),
    help="GPU of the predicted time.",
)
@click.option("--grid", metavar="X,Y,Z", help="Tile blocks: predict the time of this launch.")
@click.option("--entry", metavar="NAME", help="The kernel of the launch, if there are several.")
@click.option("--arg", "args", multiple=True, metavar="SPEC", help="Arguments, as for run.")
@click.option("--with-shape", is_flag=True, help="Pass arrays as cuTile does.")
@click.option("--json", "as_json", is_flag=True, help="Write the page's data alone, as JSON.")
@click.pass_obj
def explore(app: Any, source: str, output: str, as_json: bool, **given: Any) -> None:
    """Compile INPUT and write a page to look at, which needs no network.

    Stages side by side, linked by line of the program; what each pass changed and how long it
    took; remarks; layouts and schedules; with --grid, the predicted time of a launch.
    """
    with Output(output) as file:
        with Progress("compiling and drawing"):
            data = _data(app, source, given)
        text = json.dumps(data, indent=1 if as_json else None)
        if not as_json:
            page = resources.files("tile_core.explore").joinpath("page.html").read_text("utf-8")
            # In HTML, "</" would end the script that holds it.
            text = page.replace("@DATA@", text.replace("</", "<\\/"))
        file.commit(text)


def _data(app: Any, source: str, given: dict[str, Any]) -> dict[str, Any]:
    from tile_core.api import compile as compile_program
    from tile_core.explore.record import Exploration, Recorder, page_data

    options = settings_of(given["settings"], given["scheduler"], given["layout_strategy"])
    if given["pipeline"] is None:
        options = {"lineinfo": "true", **options}
    recorder = Recorder()
    data = read_bytes(source)
    made = compile_program(
        data, given["gpu_name"], opt_level=given["opt_level"], pipeline=given["pipeline"],
        options=options, pass_options=pass_settings_of(given["pass_settings"]),
        registry=app.registry, name=source, instrumentations=[recorder],
    )  # fmt: skip
    explored = Exploration(source, data, given["gpu_name"], given, app.registry)
    explored.stages.update(recorder.stages)
    return page_data(explored, recorder, made, _views(explored))


def _views(explored: Any) -> list[Any]:
    """What plugins show of it; one that fails says so in its place."""
    from tile_core.explore.record import View

    found: list[Any] = []
    for entry in explored.registry.entries("view"):
        try:
            found += explored.registry.load("view", entry.lazy.name)(explored)
        except TileError as error:
            found.append(View(f"{entry.lazy.name}: not shown", error.render()))
    return found

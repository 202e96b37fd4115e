"""`tilec compare`: this compiler's code and another's, on the same inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from tile_core.cli.arguments import pass_settings_of, pipeline_options
from tile_core.cli.as_json import json_option, print_json
from tile_core.cli.output import read_bytes
from tile_core.cli.progress import Progress
from tile_core.diagnostics import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from tile_sim.peer.comparison import Comparison

_BYTECODE = b"\x7fTileIR\x00"


@click.command("compare")
@click.argument("source", metavar="PROGRAM.tileirbc")
@click.option(
    "--with", "other", type=click.Choice(["tileiras"]), required=True, help="The other compiler."
)
@click.option("--tileiras", "path", metavar="FILE", help="Which tileiras, if not the installed.")
@click.option("--entry", metavar="NAME", help="The kernel, if there are several.")
@click.option("--grid", metavar="X,Y,Z", required=True, help="Tile blocks of the launch.")
@click.option(
    "--arg",
    "args",
    multiple=True,
    metavar="SPEC",
    help="f32=1.5, f32[128,64]=random or @file.npy, in order.",
)
@click.option(
    "--with-shape", is_flag=True, help="Pass arrays as cuTile does: address, shape, strides."
)
@click.option(
    "--schedule",
    type=click.Choice(["late", "early", "random"]),
    default="late",
    show_default=True,
    help="When asynchronous work completes.",
)
@click.option("--seed", default=0, show_default=True, help="For random data and schedules.")
@click.option("--rtol", default=1e-3, show_default=True, help="Tolerance of comparisons.")
@click.option("--check", is_flag=True, help="Races and the like count as differences.")
@json_option
@click.option("--stats-json", metavar="FILE", help="Write both counts to a file.")
@pipeline_options
@click.pass_obj
def compare(app: Any, **given: Any) -> int:
    """Run the code of two compilers for one program; report the first difference, and counts."""
    from tile_sim.errors import SimError
    from tile_sim.peer.comparison import compare as compare_codes

    data = read_bytes(given["source"])
    if not data.startswith(_BYTECODE):
        raise InputError(f"'{given['source']}' is no TileIR bytecode, which {given['other']} needs")
    try:
        with Progress("compiling") as bar:
            codes = _codes(app, given, data)
            entry, grid, flat, labels = _launch(codes["tilec"], given)
            bar.advance("running both")
            found = compare_codes(
                codes, entry, grid, flat, rtol=given["rtol"], labels=labels,
                schedule=given["schedule"], seed=given["seed"], check=given["check"],
            )  # fmt: skip
    except SimError as error:
        raise UsageError(str(error)) from None
    if given["as_json"]:
        print_json(_facts(found, entry, grid))
    else:
        extent = "x".join(str(n) for n in grid)
        click.echo(f"{entry} of {given['source']} for {given['gpu_name']}: grid {extent}")
        click.echo(found.text, nl=False)
    if given["stats_json"] is not None:
        _write(found, given["stats_json"])
    return ExitCode.OK if found.agree else ExitCode.COMPILE


def _facts(found: Comparison, entry: str, grid: tuple[int, int, int]) -> dict[str, Any]:
    """What `--json` prints: whether they agree, and what each executed."""
    sides = (found.first, found.second)
    return {
        "entry": entry, "grid": list(grid), "agree": found.agree, "notes": found.notes,
        "faults": {side.name: [str(fault) for fault in side.faults] for side in sides},
        "counts": {what: dict(zip((s.name for s in sides), numbers, strict=True))
                   for what, *numbers in found.counts},
    }  # fmt: skip


def _codes(app: Any, given: dict[str, Any], data: bytes) -> dict[str, Any]:
    """The modules of both compilers, by name."""
    from tile_core.api import compile as compile_program
    from tile_sim.errors import SimError
    from tile_sim.module import Module
    from tile_sim.peer import tileiras
    from tile_sim.script import options_of

    level = given["opt_level"]
    theirs = tileiras.find(given["path"])
    artifact = compile_program(
        data, given["gpu_name"], opt_level=level, pipeline=given["pipeline"],
        options=options_of(given), pass_options=pass_settings_of(given["pass_settings"]),
        emit="ptx", registry=app.registry, name=given["source"], keep_stages=False,
    )  # fmt: skip
    ptx = artifact.output
    cubin = theirs.compile(data, given["gpu_name"], 3 if level is None else level)
    try:
        own = Module(ptx.decode() if isinstance(ptx, bytes) else ptx)
        return {"tilec": own, given["other"]: cubin.load(given["gpu_name"])}
    except SimError as error:
        raise InputError(str(error)) from None


def _launch(
    module: Any, given: dict[str, Any]
) -> tuple[str, tuple[int, int, int], list[Any], dict[int, int]]:
    """The kernel, its grid, its arguments as it takes them, and their numbers in `--arg`."""
    from tile_sim.arguments import parse_arguments, parse_extent, with_shape

    if given["entry"] is None and len(module.entries) != 1:
        known = ", ".join(module.entries) or "none"
        raise UsageError("--entry has to say which kernel to run", hint=f"there are: {known}")
    values = parse_arguments(given["args"], given["seed"])
    flat = with_shape(values) if given["with_shape"] else list(values)
    number = {id(value): i for i, value in enumerate(values)}
    labels = {i: number[id(value)] for i, value in enumerate(flat) if id(value) in number}
    return given["entry"] or module.entries[0], parse_extent(given["grid"]), flat, labels


def _write(found: Comparison, path: str) -> None:
    sides = {
        side.name: side.report.cost.json
        for side in (found.first, found.second)
        if side.report is not None and side.report.cost is not None
    }
    try:
        Path(path).write_text(json.dumps(sides, indent=1) + "\n")
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None

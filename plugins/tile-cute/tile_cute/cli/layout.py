"""`tilec layout`: pictures of layouts, fragments, swizzles and accesses."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import rich_click as click

from tile_core.cli.as_json import json_option
from tile_core.cli.output import Output
from tile_core.diagnostics import UsageError


@click.command()
@click.argument("source")
@click.option("--operand", default="", help="Only this operand of an MMA: a, b, c, metadata, ...")
@click.option(
    "--elem-bits", default=0, type=click.IntRange(0, 64), help="Colour offsets by memory bank."
)
@click.option("--access", default="", help="Distributed layout whose accesses are counted.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["terminal", "svg", "html"]),
    help="Default: by the output's suffix, else terminal.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def layout(
    source: str,
    operand: str,
    elem_bits: int,
    access: str,
    format_: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Draw SOURCE: a layout, a swizzle, a linear layout, or a PTX MMA or copy instruction.

    \b
    tilec layout '(4,8):(8,1)'
    tilec layout 'S<3,4,3> o 0 o (8,64):(64,1)' --elem-bits 16 -o swizzle.svg
    tilec layout mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 --operand a
    """
    from tile_cute.draw import draw, to_html, to_svg, to_terminal
    from tile_cute.errors import LayoutError

    try:
        grids = draw(source, operand=operand, elem_bits=elem_bits, access=access)
    except LayoutError as error:
        raise UsageError(str(error)) from error
    kind = format_ or (output.suffix[1:] if output is not None else "terminal")
    if as_json:
        text = json.dumps([asdict(grid) for grid in grids], indent=1) + "\n"
    elif kind == "svg":
        text = to_svg(grids)
    elif kind == "html":
        text = to_html(grids)
    else:
        text = to_terminal(grids, color=output is None and sys.stdout.isatty())
    if output is None:
        click.echo(text, nl=False)
    else:
        with Output(str(output)) as file:
            file.commit(text.encode())

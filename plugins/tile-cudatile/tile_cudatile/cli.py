"""`tilec dis` and `tilec as`: bytecode to assembly and back."""

from __future__ import annotations

import rich_click as click

from tile_core.cli.output import Output, read_bytes
from tile_core.diagnostics import InputError, SourceLocation
from tile_cudatile.versions import NEWEST, SUPPORTED, parse_version, version_text


@click.command("dis")
@click.argument("source", metavar="INPUT", default="-")
@click.option("-g", "--print-debug-info", "debug", is_flag=True, help="Print locations as well.")
@click.option("-o", "--output", default="-", help="Where the assembly goes.  [default: stdout]")
def dis(source: str, debug: bool, output: str) -> None:
    """Print TileIR bytecode as assembly, just as `tileirdisasm` does."""
    from tile_cudatile.bytecode.reader import read_bytecode
    from tile_cudatile.text.printer import print_text

    with Output(output) as file:
        module = read_bytecode(read_bytes(source))
        file.commit(print_text(module, locations=debug))


@click.command("as")
@click.argument("source", metavar="INPUT", default="-")
@click.option("-o", "--output", required=True, help="Where the bytecode goes.")
@click.option(
    "--bytecode-version",
    "version",
    type=click.Choice([version_text(v) for v in SUPPORTED]),
    default=version_text(NEWEST),
    show_default=True,
    help="Version of the language and of the file.",
)
def as_(source: str, output: str, version: str) -> None:
    """Write TileIR bytecode from assembly."""
    from tile_cudatile.bytecode.writer import write_bytecode
    from tile_cudatile.rules.verify import verify
    from tile_cudatile.text.parser import parse_text

    with Output(output) as file:
        data = read_bytes(source)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            where = SourceLocation(source, data.count(b"\n", 0, error.start) + 1)
            raise InputError(
                "the input is not text",
                where=where,
                hint="for bytecode there is `tilec dis`" if data[:1] == b"\x7f" else None,
            ) from None
        module = parse_text(text, name=source, version=parse_version(version))
        verify(module)
        file.commit(write_bytecode(module))

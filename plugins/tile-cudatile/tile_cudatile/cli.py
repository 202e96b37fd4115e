"""`tilec dis` and `tilec as`: bytecode to assembly and back."""

from __future__ import annotations

import rich_click as click

from tile_core.cli.as_json import json_option, print_json
from tile_core.cli.output import Output, read_bytes
from tile_core.diagnostics import InputError, SourceLocation, UsageError
from tile_cudatile.bytecode.sections import MAGIC
from tile_cudatile.versions import NEWEST, SUPPORTED, parse_version, version_text


@click.command("dis")
@click.argument("source", metavar="INPUT", default="-")
@click.option("-g", "--print-debug-info", "debug", is_flag=True, help="Print locations as well.")
@click.option("-o", "--output", default="-", help="Where the assembly goes.  [default: stdout]")
@json_option
def dis(source: str, debug: bool, output: str, as_json: bool) -> None:
    """Print TileIR bytecode as assembly, just as `tileirdisasm` does."""
    import json

    from tile_cudatile.bytecode.reader import read_bytecode
    from tile_cudatile.text.printer import print_text

    with Output(output) as file:
        data = read_bytes(source)
        text = print_text(read_bytecode(data), locations=debug)
        if as_json:
            about = {"source": source, "version": version_text(_version_of(data)), "text": text}
            text = json.dumps(about, indent=1) + "\n"
        file.commit(text)


def _version_of(data: bytes) -> tuple[int, int]:
    """The version of bytecode that the reader has taken."""
    return data[len(MAGIC)], data[len(MAGIC) + 1]


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
@json_option
def as_(source: str, output: str, version: str, as_json: bool) -> None:
    """Write TileIR bytecode from assembly."""
    if as_json and output == "-":
        raise UsageError("--json and the bytecode cannot both go to standard output")
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
        made = write_bytecode(module)
        file.commit(made)
    if as_json:
        print_json({"output": output, "version": version, "bytes": len(made)})

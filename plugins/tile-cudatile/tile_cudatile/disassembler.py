"""`tileirdisasm`: prints TileIR bytecode, with the flags and exit codes of the released tool."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from pathlib import Path

from tile_core.diagnostics import ExitCode, TileError

_FEATURES = ("simt",)
_TRUE = ("", "true", "TRUE", "True", "1")
_FALSE = ("false", "FALSE", "False", "0")
_FLAGS = ("g", "print-debug-info", "help", "help-hidden", "version")
_HELP = """\
OVERVIEW: tileirdisasm: CUDA Tile IR disassembler of tilec

USAGE: tileirdisasm [options] <tile bytecode file>

OPTIONS:
  -g                               - Alias for --print-debug-info
  --help                           - Display available options (--help-hidden for more)
  --preview=<feature[,feature...]> - Enable one or more named preview features
  --print-debug-info               - Annotate disassembly with debugging information, if present.
  --version                        - Display the version of this program
"""


class _UsageError(Exception):
    pass


@dataclass
class _Options:
    """What the command line says; without `source`, `text` is the answer."""

    source: str | None = None
    locations: bool = False
    text: str | None = None


def run(arguments: list[str], _program: str) -> int:
    """`main`, as a compile server calls it."""
    return main(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the tool; its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        options = _options(given)
    except _UsageError as error:
        print(f"tileirdisasm: {error}", file=sys.stderr)
        return ExitCode.USAGE
    if options.text is not None:
        print(options.text, end="")
        return ExitCode.OK
    if options.source is None:
        print(_HELP, end="")
        print("error: no input file provided", file=sys.stderr)
        return ExitCode.CONFIGURATION
    try:
        data = Path(options.source).read_bytes()
    except OSError as error:
        message = f"unable to read input file '{options.source}': {error.strerror}"
        print(f"error: error: {message}", file=sys.stderr)
        return ExitCode.CONFIGURATION
    return _disassemble(data, options.locations)


def _disassemble(data: bytes, locations: bool) -> int:
    from tile_cudatile.bytecode.reader import read_bytecode
    from tile_cudatile.bytecode.sections import MAGIC
    from tile_cudatile.text.printer import print_text

    if not data.startswith(MAGIC):
        print("error: input does not correspond to Tile IR bytecode", file=sys.stderr)
        return ExitCode.INPUT
    try:
        module = read_bytecode(data)
    except TileError as error:
        print(error.render(), file=sys.stderr)
        print("error: failed to read provided Tile IR bytecode", file=sys.stderr)
        return ExitCode.INPUT
    sys.stdout.write(print_text(module, locations=locations))
    return ExitCode.OK


def _options(arguments: list[str]) -> _Options:
    options = _Options()
    plain: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            plain.append(argument)
            continue
        if argument == "--":
            plain.extend(rest)
            break
        name, equals, value = argument.lstrip("-").partition("=")
        if name == "preview":
            _check_features(value if equals else next(rest, ""))
        elif name in _FLAGS:
            _flag(options, argument, name, value)
        else:
            raise _UsageError(_unknown(argument, name))
    if len(plain) > 1:
        raise _UsageError(
            "Too many positional arguments specified!\n"
            "Can specify at most 1 positional arguments: See: tileirdisasm --help"
        )
    options.source = plain[0] if plain else None
    return options


def _flag(options: _Options, argument: str, name: str, value: str) -> None:
    if value not in (*_TRUE, *_FALSE):
        raise _UsageError(
            f"for the {argument.partition('=')[0]} option: '{value}' is invalid value for "
            "boolean argument! Try 0 or 1"
        )
    wanted = value in _TRUE
    if name in ("g", "print-debug-info"):
        options.locations = wanted
    elif wanted:
        options.text = _version() if name == "version" else _HELP


def _check_features(names: str) -> None:
    for name in names.split(","):
        if name not in _FEATURES:
            known = ", ".join(_FEATURES)
            raise _UsageError(
                f"for the --preview option: unknown preview feature '{name}'; "
                f"supported features: {known}"
            )


def _unknown(argument: str, name: str) -> str:
    close = difflib.get_close_matches(name, (*_FLAGS, "preview"), 1, 0.0)
    dash = "-" if close[0] == "g" else "--"
    return (
        f"Unknown command line argument '{argument}'.  Try: 'tileirdisasm --help'\n"
        f"tileirdisasm: Did you mean '{dash}{close[0]}'?"
    )


def _version() -> str:
    from importlib.metadata import version

    return f"tileirdisasm: CUDA Tile IR disassembler of tilec, {version('tile-cudatile')}\n"


if __name__ == "__main__":
    sys.exit(main())

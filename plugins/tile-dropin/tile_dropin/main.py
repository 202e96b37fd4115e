"""`tileiras`: from a command line to an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tile_core import own_process
from tile_core.diagnostics import ExitCode
from tile_dropin.command_line import Given, parse


def run(arguments: Sequence[str], program: str = "tileiras") -> int:
    """Run one command line; the exit code.

    Args:
        arguments: without the program's name.
        program: how it was called, which messages repeat.
    """
    given = parse(arguments, program)
    for line in given.errors:
        print(line, file=sys.stderr)
    if given.action is not None:
        sys.stdout.write(_answer(given.action))
        return ExitCode.OK
    if given.errors:
        return ExitCode.USAGE
    if not given.source:
        sys.stdout.write(_answer("help-list"))
        print("error: no input file provided\n", file=sys.stderr)
        return ExitCode.USAGE
    return _compile(given)


def _answer(action: str) -> str:
    """What an option that ends the run prints."""
    if action == "version":
        from tile_dropin.version import leave_answers, version_text

        text = version_text()
        leave_answers(text)
        return text
    if action == "list-versions":
        from tile_dropin.version import bytecode_versions

        return bytecode_versions()
    from tile_dropin.help_text import help_text

    return help_text(hidden=action.endswith("hidden"), categories="list" not in action)


def _compile(given: Given) -> int:
    from tile_dropin.program import Refused, compile_file

    try:
        compile_file(given)
    except Refused as refused:
        sys.stdout.flush()
        for line in refused.lines:
            print(line, file=sys.stderr)
        return refused.code
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    return ExitCode.OK


def main() -> None:
    """Entry point of `tileiras`."""
    own_process.claim()
    own_process.loading()
    code = int(run(sys.argv[1:], sys.argv[0]))
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or int(ExitCode.CONFIGURATION)
    # The output is complete by now; taking MLIR's contexts apart would cost 60 ms.
    os._exit(code)

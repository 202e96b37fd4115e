"""Entries that tests have a compile server run: well-behaved, slow, greedy, and deadly ones."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from tile_core.cli.output import Output


def tell(arguments: list[str], program: str) -> int:
    """Says what it was given; its exit code is the number of arguments."""
    umask = os.umask(0)
    os.umask(umask)
    print(program, *arguments, Path.cwd(), os.environ.get("WORD"), oct(umask), sys.stdin.read())
    print("to stderr", file=sys.stderr)
    return len(arguments)


def crash(arguments: list[str], _program: str) -> int:
    """Dies with half an output file on disk."""
    with Output(arguments[0]):
        os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def whose(_arguments: list[str], _program: str) -> int:
    """Says which process does the work."""
    print(os.getpid())
    return 0


def wait(arguments: list[str], _program: str) -> int:
    """Says that it has begun, and then takes long over an output file."""
    with Output(arguments[0]) as output:
        Path(arguments[1]).write_text(str(os.getpid()))
        time.sleep(60)
        output.commit("done")
    return 0


def devour(_arguments: list[str], _program: str) -> int:
    """Takes all the memory it gets."""
    held = []
    while True:
        held.append(bytearray(1 << 26))


def fail(_arguments: list[str], _program: str) -> int:
    """Raises."""
    raise RuntimeError("on purpose")


def stubborn(arguments: list[str], _program: str) -> int:
    """Does not hear that it should end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(arguments[0]).write_text(str(os.getpid()))
    time.sleep(60)
    return 0

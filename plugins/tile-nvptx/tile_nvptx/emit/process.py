"""Run a tool: captured output, a time limit, and no survivor when the caller is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True)
class Completed:
    """How a tool ended. `status` is its exit code, negative the number of the signal."""

    status: int
    output: str  # stdout and stderr together, as printed
    timed_out: bool = False

    @property
    def ending(self) -> str:
        """The status in words: "exit code 3", "Segmentation fault", "timed out"."""
        if self.timed_out:
            return "timed out"
        if self.status < 0:
            return signal.strsignal(-self.status) or f"signal {-self.status}"
        return f"exit code {self.status}"


@cache
def _die_with_parent() -> Callable[[], None] | None:
    """What a child does before it runs its program, on Linux; elsewhere nothing."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    # Looked up here and not in the child, where only little may be done safely.
    prctl: Any = ctypes.CDLL(None).prctl

    def ask_for_signal() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    return ask_for_signal


@cache
def _guard() -> tuple[str, ...]:
    """What to put before a command so that it dies with its parent; nothing where it is not known.

    Python forks where something is to be done in the child before its program runs, and a fork of a
    process that has loaded a compiler costs 10 ms: pages are mapped anew, here and there. Without,
    it starts the program as quickly as a small process would.
    """
    found = shutil.which("setpriv") if sys.platform.startswith("linux") else None
    return () if found is None else (found, "--pdeathsig", "KILL", "--")


#: How util-linux and others start the line that says that they cannot do as asked.
_GUARD_FAILED = "setpriv:"


def run_tool(argv: Sequence[str], timeout: float) -> Completed:
    """Run `argv` with an empty standard input for at most `timeout` seconds.

    Raises:
        OSError: the program cannot be started.
    """
    if _guard():
        done = _run([*_guard(), *argv], timeout, None)
        if done.status <= 0 or not done.output.startswith(_GUARD_FAILED):
            return done
    # An old `setpriv`, or the program cannot be started, which is said better here.
    return _run(argv, timeout, _die_with_parent())


def _run(argv: Sequence[str], timeout: float, first: Callable[[], None] | None) -> Completed:
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=first,
        process_group=0,  # so that what the tool starts can be ended with it
    )
    try:
        output, _ = process.communicate(timeout=timeout)
        timed_out = False
    except subprocess.TimeoutExpired:
        _kill_group(process)
        output, _ = process.communicate()
        timed_out = True
    except BaseException:
        _kill_group(process)
        process.wait()
        raise
    return Completed(process.returncode, output.decode(errors="replace"), timed_out)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)

"""What a command takes with all that it starts: time of processors, and time that somebody waits.

`RUSAGE_CHILDREN` holds processes that were waited for, and what they waited for. A process whose
parent left without waiting, such as the one in which LLVM runs, would be missing: so this process
asks to become the parent of such orphans, and waits for them, too (Linux).
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_CPUCLOCK_SCHED = 2  # include/linux/posix-timers.h: nanoseconds of a process
_TICKS = os.sysconf("SC_CLK_TCK")
#: Fields of /proc/PID/stat behind the name: user and system time of children that were waited for.
_CHILDREN_TICKS = slice(13, 15)


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it took, in seconds."""

    code: int
    out: bytes
    err: bytes
    waited: float  # until the command itself had ended
    processor: float  # of it, all that it started, and a server's part


class Server:
    """A process that goes on between commands, and does work for them.

    Args:
        pid: it and its descendants count.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def seconds(self) -> float:
        """Time of processors so far. What has ended counts in whole ticks (10 ms), rounded down
        over all of them, so that a sum of many commands is exact and a single one is not."""
        return sum(_seconds(pid) for pid in self.processes())

    def processes(self) -> Iterator[int]:
        """The processes that are there now."""
        waiting = [self.pid]
        while waiting:
            pid = waiting.pop()
            yield pid
            waiting += _children(pid)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has gone.

    Raises:
        OSError: the system cannot do that.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "prctl") or libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "orphans cannot be adopted: not on this system")


def run(
    command: Sequence[str], environment: Mapping[str, str], server: Server | None = None
) -> Ended:
    """Run a command, and wait for all that it leaves behind.

    Args:
        server: does a part of the work, which counts.
    """
    others = set(_children(os.getpid()))
    before, served = _own(), server.seconds() if server else 0.0
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    waited = time.perf_counter() - start
    _wait_for_orphans(others)
    processor = _own() - before + (server.seconds() - served if server else 0.0)
    return Ended(done.returncode, done.stdout, done.stderr, waited, processor)


def _wait_for_orphans(others: set[int]) -> None:
    while orphans := set(_children(os.getpid())) - others:
        for pid in orphans:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _own() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _seconds(pid: int) -> float:
    try:
        own = time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return own + sum(map(int, fields[_CHILDREN_TICKS])) / _TICKS


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for text in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, text.read_text().split())
    return found

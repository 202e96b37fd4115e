"""How a code generation worker comes to be: as a new interpreter, or as a fork of this process.

A new interpreter is right anywhere, and loads everything anew: a tenth of a second of a processor.
A fork has what this process has loaded. It is safe only where no other thread runs, and so only in
processes that are a command of this project's own (`tile_core.own_process`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, Protocol

import tile_core
from tile_core.own_process import may_fork

_BOOT = (
    "import sys; sys.path[:] = {path!r}; "
    "from tile_nvptx.emit.worker import main; main({libdevice!r})"
)
#: File descriptors from the fourth on that a fork closes; nothing here opens more.
_DESCRIPTORS = 4096


class Child(Protocol):
    """A process that runs `worker.main`, with a pipe to its standard input and one from its
    standard output."""

    pid: int
    requests: int
    replies: int

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        ...

    def kill(self) -> int:
        """End it now; its exit status."""
        ...

    def forget(self) -> None:
        """It is another process's child: do not wait for it."""
        ...

    def wait(self) -> int:
        """Its exit status, when it has ended."""
        ...

    def close(self) -> None:
        """Let go of the pipes; it ends when it sees the end of its input."""
        ...


class Spawned:
    """A new interpreter.

    Args:
        log: file that gets its standard error.
        libdevice: bitcode to parse before the first request comes.
    """

    def __init__(self, log: int, libdevice: str | None) -> None:
        # `site` costs a third of the start; the search path of this process says all of it.
        homes = [str(Path(file).parents[1]) for file in (Path(__file__).parent, tile_core.__file__)]
        path = [*homes, *(p for p in sys.path if p)]
        boot = _BOOT.format(path=path, libdevice=libdevice)
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", boot],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
        )  # fmt: skip
        self.pid = self._process.pid
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._pipes = self._process.stdin, self._process.stdout
        self.requests, self.replies = (pipe.fileno() for pipe in self._pipes)

    def poll(self) -> int | None:
        """See `Child`."""
        return self._process.poll()

    def kill(self) -> int:
        """See `Child`."""
        self._process.kill()
        return self._process.wait()

    def wait(self) -> int:
        """See `Child`."""
        return self._process.wait()

    def forget(self) -> None:
        """See `Child`."""
        self._process.returncode = 0

    def close(self) -> None:
        """See `Child`."""
        for pipe in self._pipes:
            pipe.close()


class Forked:
    """A fork of this process, in which nothing but the worker runs on.

    Args:
        log: file that gets its standard error.
        libdevice: bitcode to parse before the first request comes.
    """

    def __init__(self, log: int, libdevice: str | None) -> None:
        theirs, self.requests = os.pipe()
        self.replies, answers = os.pipe()
        self._status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _become_worker(theirs, answers, log, libdevice)
        os.close(theirs)
        os.close(answers)

    def poll(self) -> int | None:
        """See `Child`."""
        if self._status is None:
            self._status = self._waited(os.WNOHANG)
        return self._status

    def kill(self) -> int:
        """See `Child`."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> int:
        """See `Child`."""
        if self._status is None:
            self._status = self._waited(0) or 0
        return self._status

    def _waited(self, flags: int) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, flags)
        except ChildProcessError:  # somebody waited for all children
            return 0
        return os.waitstatus_to_exitcode(status) if pid else None

    def forget(self) -> None:
        """See `Child`."""
        self._status = 0

    def close(self) -> None:
        """See `Child`."""
        for fd in (self.requests, self.replies):
            with suppress(OSError):
                os.close(fd)


def _become_worker(requests: int, answers: int, log: int, libdevice: str | None) -> NoReturn:
    """Run the worker in the fork, which leaves without any of its parent's business."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller decides
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        for fd, target in ((requests, 0), (answers, 1), (log, 2)):
            os.dup2(fd, target)
        os.closerange(3, _DESCRIPTORS)
        from tile_core.module_image import report_missed
        from tile_nvptx.emit.worker import main

        main(libdevice, report_missed)
    except BaseException:
        with suppress(OSError):
            os.write(2, traceback.format_exc().encode(errors="replace"))
    os._exit(1)


def start(log: int, libdevice: str | None) -> Child:
    """A worker, by the cheaper way where it is safe."""
    return (Forked if may_fork() else Spawned)(log, libdevice)

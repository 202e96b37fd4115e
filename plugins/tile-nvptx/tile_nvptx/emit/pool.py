"""The caller's side of the code generation worker: start early, keep warm, survive its death."""

from __future__ import annotations

import atexit
import os
import re
import select
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tile_core.diagnostics import CompileError
from tile_core.own_process import may_fork, waits
from tile_core.pipe_messages import read_message, write_message
from tile_nvptx.emit import child, toolchain
from tile_nvptx.emit.worker import FAILED, LOAD_MLIR, REFUSED

#: How many compilations may run at once in one process.
MAX_WORKERS = 4


class WorkerFailure(CompileError):
    """LLVM or MLIR ended the worker process, or refused the module."""


class Worker:
    """One running worker process."""

    def __init__(self, libdevice: Path | None = None) -> None:
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self.process = child.start(self.log.fileno(), str(libdevice) if libdevice else None)
        self._log_read = 0
        self._knows_mlir = False
        self.usable = True

    def load_mlir(self) -> None:
        """Let the worker load MLIR before it is asked; returns at once."""
        if not self._knows_mlir:
            self._knows_mlir = True
            with suppress(OSError):  # it is gone: whoever asks will see
                write_message(self.process.requests, LOAD_MLIR)

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Send `request` and wait for the answer, at most `timeout` seconds.

        Raises:
            WorkerFailure: LLVM refused the module, or died of it; only if `usable` still holds
                may the worker be asked again.
            TileError: what the work itself found wrong.
        """
        try:
            write_message(self.process.requests, request)
            if not select.select([self.process.replies], [], [], timeout)[0]:
                self.kill()
                raise WorkerFailure(f"LLVM did not finish within {timeout:g} s")
            status, value = read_message(self.process.replies)
        except (EOFError, OSError):
            raise self._post_mortem() from None
        except BaseException:
            self.kill()  # an answer that nobody waits for must not meet the next question
            raise
        if status == FAILED:
            message, notes = value
            raise WorkerFailure(message, notes=tuple(notes))
        if status == REFUSED:
            raise value
        return {**value, "warnings": self._new_log()}

    def _post_mortem(self) -> WorkerFailure:
        status = self.kill()
        said = self._new_log()
        fatal = next((line for line in said if _FATAL.match(line)), None)
        if fatal is not None:
            return WorkerFailure(_FATAL.sub("", fatal), notes=_context(said, fatal))
        broken = next((m for line in said if (m := _ASSERTION.search(line))), None)
        if broken is not None:
            return WorkerFailure(f"LLVM broke its own rule: {broken[1]}", notes=said[-2:])
        ending = f"signal {-status}" if status < 0 else f"exit code {status}"
        return WorkerFailure(
            f"the code generation worker ended unexpectedly ({ending})", notes=tuple(said[-8:])
        )

    def _new_log(self) -> tuple[str, ...]:
        """The lines that LLVM printed since the last call."""
        # The offset of the file is shared with the process that writes: read beside it.
        fd = self.log.fileno()
        data = os.pread(fd, os.fstat(fd).st_size - self._log_read, self._log_read)
        self._log_read += len(data)
        return tuple(line for line in data.decode(errors="replace").splitlines() if line.strip())

    @property
    def alive(self) -> bool:
        return self.usable and self.process.poll() is None

    def kill(self) -> int:
        """End the process now; its exit status."""
        self.usable = False
        return self.process.kill()

    def close(self) -> None:
        """Let go of the pipes: the process sees its input end and exits."""
        self.usable = False
        self.process.close()
        self.log.close()

    def wait(self) -> None:
        """Until the process has ended."""
        self.process.wait()

    def forget(self) -> None:
        """Let go of a worker that belongs to the process that this one was forked from."""
        self.close()
        self.process.forget()


#: How LLVM starts the line before it ends the process.
_FATAL = re.compile(r"^(?:LLVM ERROR|error|<unknown>:0: error): ")


_ASSERTION = re.compile(r"Assertion `(.*)' failed")


def _context(said: tuple[str, ...], fatal: str) -> tuple[str, ...]:
    """What LLVM printed with its fatal error: the instruction tree, `In function: ...`."""
    at = said.index(fatal) + 1
    return tuple(line.strip() for line in said[at : at + 8] if line.strip())


class WorkerPool:
    """Workers of one process. Threads share it; a forked child gets an empty one."""

    def __init__(self, limit: int = MAX_WORKERS) -> None:
        self.limit = limit
        self._all: list[Worker] = []
        self._idle: list[Worker] = []
        self._changed = threading.Condition()

    def prewarm(self, *, translate: bool = False) -> None:
        """Start a worker, unless there is one, and return at once.

        With `translate` it loads MLIR, too, if it is not at work. Where it is to be a fork, only
        then: this process has loaded by now what the worker would have to load again.
        """
        if not translate and may_fork():
            return
        with self._changed:
            if not self._all:
                # 30 ms for what most programs do not call: only where nobody waits for it.
                library = toolchain.find("libdevice") if waits() else None
                self._idle.append(self._start(library.path if library else None))
            if translate and self._idle:
                self._idle[-1].load_mlir()

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """`Worker.ask` on a free worker, waiting for one if all are busy."""
        worker = self._take()
        try:
            return worker.ask(request, timeout)
        finally:
            self._give_back(worker)

    def _start(self, libdevice: Path | None = None) -> Worker:
        worker = Worker(libdevice)
        self._all.append(worker)
        return worker

    def _drop(self, worker: Worker) -> None:
        worker.close()
        self._all.remove(worker)

    def _take(self) -> Worker:
        with self._changed:
            while True:
                while self._idle:
                    worker = self._idle.pop()
                    if worker.alive:
                        return worker
                    self._drop(worker)
                if len(self._all) < self.limit:
                    return self._start()
                self._changed.wait()

    def _give_back(self, worker: Worker) -> None:
        with self._changed:
            if worker.alive:
                self._idle.append(worker)
            else:
                self._drop(worker)
            self._changed.notify()

    def shutdown(self) -> None:
        """End the idle workers; the next request starts another."""
        with self._changed:
            for worker in self._idle:
                self._drop(worker)
                worker.wait()
            self._idle.clear()

    def abandon(self) -> None:
        """Forget inherited workers in a forked child: they belong to the parent."""
        for worker in self._all:
            worker.forget()
        self.__init__(self.limit)


POOL = WorkerPool()
atexit.register(POOL.shutdown)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.abandon)

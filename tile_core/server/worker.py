"""One worker: takes a client's place for the length of one command line, again and again."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tile_core import own_process
from tile_core.cli import output
from tile_core.server import client as wire

#: Messages to the supervisor: the job is done; so is the worker; a file that may be left behind.
DONE, LEAVING, FILE = b"D", b"L", b"F"

#: A client that connects and then says nothing for this many seconds is given up.
_PATIENCE = 10.0
#: Jobs after which a worker makes room for a new one, so that memory stays flat.
_JOBS = 400
_REQUEST_LIMIT = 1 << 26


@dataclass(frozen=True)
class Job:
    """What a client asks for."""

    entry: str
    program: str
    umask: int
    arguments: list[str]
    variables: dict[bytes, bytes]
    streams: list[int]


class Refused(Exception):
    """A request that this server does not take."""


class Worker:
    """The loop of a forked child.

    Args:
        control: to the supervisor; jobs come as open connections.
        memory: address space that it and its tools may use, bytes; 0 for no limit.
        folder: of its temporary files. The supervisor has made it, and removes it after a worker
            that could not, however early that ended.
    """

    def __init__(self, control: socket.socket, memory: int, folder: str) -> None:
        self.control = control
        self.memory = memory
        self.folder = folder
        self.jobs = 0

    def run(self) -> None:
        """Work until the supervisor goes or this worker has grown too large."""
        own_process.claim(serves=True)
        signal.signal(signal.SIGTERM, _leave)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Where a job that does not end hangs, for the server's log; standard error is the client's.
        faulthandler.register(signal.SIGUSR1, file=os.fdopen(os.dup(2), "w"))
        self._limit_memory()
        output.announce = lambda path: self._tell(FILE, os.path.abspath(path))
        tempfile.tempdir = self.folder
        prewarm()
        while True:
            _, fds, _, _ = socket.recv_fds(self.control, 1, 1)
            if not fds:
                break
            with socket.socket(fileno=fds[0]) as connection:
                self._serve(connection)
            if self._finished():
                break
        shutil.rmtree(self.folder, ignore_errors=True)

    def _tell(self, kind: bytes, text: str = "") -> None:
        data = kind + os.fsencode(text)
        self.control.send(len(data).to_bytes(4, "little") + data)

    def _limit_memory(self) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.memory:
            resource.setrlimit(resource.RLIMIT_AS, (self.memory, self.memory))

    def _finished(self) -> bool:
        """Whether to make room for a new worker: memory of long-lived processes only grows."""
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return self.jobs >= _JOBS or (bool(self.memory) and used > self.memory // 2)

    def _serve(self, connection: socket.socket) -> None:
        try:
            job = receive(connection)
        except (Refused, OSError, ValueError):
            answer = wire.reply(wire.AWAY, 0)
        else:
            answer = wire.reply(wire.DONE, perform(job))
        self.jobs += 1
        # First the supervisor: it takes a client that goes before that for one that gave up.
        self._tell(LEAVING if self._finished() else DONE)
        with contextlib.suppress(OSError):  # the client may have gone
            connection.sendall(answer)


def receive(connection: socket.socket) -> Job:
    """The request of a client.

    Raises:
        Refused: it speaks another version, or belongs to another installation.
    """
    connection.settimeout(_PATIENCE)
    data, fds, _, _ = socket.recv_fds(connection, wire.HEAD_BYTES, wire.STREAMS)
    try:
        data += _exactly(connection, wire.HEAD_BYTES - len(data))
        known = wire.MAGIC + bytes([wire.PROTOCOL])
        length = int.from_bytes(data[-4:], "little")
        if data[: len(known)] != known or length > _REQUEST_LIMIT or len(fds) != wire.STREAMS:
            raise Refused("another protocol")
        fields = _exactly(connection, length).split(b"\0")
        identity, entry, program, umask, count = map(os.fsdecode, fields[:5])
        if identity != wire.identity():
            raise Refused("another installation")
        rest = fields[5:]
        arguments = list(map(os.fsdecode, rest[: int(count)]))
        pairs = (v.partition(b"=") for v in rest[int(count) :])
        return Job(entry, program, int(umask), arguments, {k: v for k, _, v in pairs}, list(fds))
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise
    finally:
        connection.settimeout(None)


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = connection.recv(min(count, 1 << 16))
        if not part:
            raise Refused("the client went away")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def perform(job: Job) -> int:
    """Do the job with the client's streams, folder, environment and umask; the exit code."""
    before = os.open(".", os.O_RDONLY)
    own = dict(os.environb)
    try:
        os.fchdir(job.streams[3])
        os.umask(job.umask)
        os.environb.clear()
        os.environb.update(job.variables)
        for target, fd in enumerate(job.streams[:3]):
            os.dup2(fd, target)
        for fd in job.streams:
            os.close(fd)
        return _called(job)
    finally:
        _let_go(before)
        os.environb.clear()
        os.environb.update(own)


def _let_go(folder: int) -> None:
    """Close the client's streams, which its caller may be waiting to see the end of."""
    null = os.open(os.devnull, os.O_RDWR)
    for target in range(3):
        os.dup2(null, target)
    os.close(null)
    os.fchdir(folder)
    os.close(folder)


def _called(job: Job) -> int:
    module, _, name = job.entry.partition(":")
    sys.argv = [job.program, *job.arguments]
    try:
        function: Any = getattr(import_module(module), name)
        code = int(function(job.arguments, job.program))
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
        code = 5
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 2
    return code


def prewarm() -> None:
    """Start what takes long, e.g. the process in which LLVM runs."""
    from tile_core.registry import default_registry

    registry = default_registry()
    for entry in registry.entries("emitter"):
        start = getattr(registry.load("emitter", entry.lazy.name), "prewarm", None)
        if start is not None:
            start()


def _leave(_signal: int, _frame: Any) -> None:
    # Unwinding removes what the job has half done.
    raise SystemExit(1)

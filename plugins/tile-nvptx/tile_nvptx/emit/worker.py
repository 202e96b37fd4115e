"""The process in which LLVM runs: requests on standard input, replies on standard output.

LLVM ends its process on what it cannot select, so it must not be the caller's. The module imports
nothing of tile_core and no MLIR: it starts in the time that llvmlite needs. A request is a pickled
dict, a reply a pickled pair (status, value); both are preceded by their length, 8 bytes little
endian.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import threading
from typing import Any

LENGTH = struct.Struct("<Q")

OK, FAILED = "ok", "failed"


def write_message(fd: int, message: Any) -> None:
    """Send one message; file descriptors, so that nothing lingers in a buffer across a fork."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    rest = memoryview(LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def read_message(fd: int) -> Any:
    """Receive one message.

    Raises:
        EOFError: the other side is gone.
    """
    (length,) = LENGTH.unpack(_read_exactly(fd, LENGTH.size))
    return pickle.loads(_read_exactly(fd, length))


def _read_exactly(fd: int, count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = os.read(fd, count)
        if not part:
            raise EOFError("the other side closed the pipe")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def main(libdevice: str | None = None) -> None:
    """Serve requests until standard input ends, which is when the caller has gone.

    Args:
        libdevice: bitcode to parse before the first request comes.
    """
    # LLVM and its tools may print: keep the reply pipe for replies.
    replies = os.dup(1)
    os.dup2(2, 1)
    _no_core_dumps()
    # Ctrl-C goes to the whole group; the caller decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(0, requests), daemon=True).start()

    from tile_nvptx.emit import codegen

    codegen.initialize(libdevice)
    while True:
        write_message(replies, _answer(codegen, requests.get()))


def _answer(codegen: Any, request: dict[str, Any]) -> tuple[str, Any]:
    try:
        if "host-ir" in request:
            return OK, {"object": codegen.host_object(request["host-ir"], request["triple"])}
        return OK, codegen.generate(codegen.Request(**request))
    except codegen.CodegenFailure as failure:
        return FAILED, (failure.message, failure.notes)


def _receive(fd: int, requests: queue.SimpleQueue[Any]) -> None:
    """Queue requests; end the process at once, even in the middle of a job, when they stop."""
    try:
        while True:
            requests.put(read_message(fd))
    except (EOFError, OSError):
        os._exit(0)


def _no_core_dumps() -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

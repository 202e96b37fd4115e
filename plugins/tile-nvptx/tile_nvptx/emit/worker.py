"""The process in which LLVM runs, MLIR's and llvmlite's: requests on standard input, replies on
standard output.

LLVM ends its process on what it cannot select, and MLIR's bindings on a translation that fails, so
it must not be the caller's. The module imports nothing of tile_core and no MLIR before either is
needed. A request is a pickled dict, a reply a pickled pair (status, value); both are preceded by
their length, 8 bytes little endian.
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

#: A reply holds the answer, what LLVM said (message, notes), or an error to raise as it is.
OK, FAILED, REFUSED = "ok", "failed", "refused"

#: A request without a reply: MLIR will be needed.
LOAD_MLIR = "load-mlir"


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

    work = _Work()
    work.codegen(libdevice)
    while True:
        request = requests.get()
        if request == LOAD_MLIR:
            work.translator()
        else:
            write_message(replies, work.answer(request))


class _Work:
    """What answers requests; each of the two LLVMs is loaded when it is first asked for."""

    def __init__(self) -> None:
        self._codegen: Any = None
        self._translator: Any = None

    def codegen(self, libdevice: str | None = None) -> Any:
        """The module that makes PTX."""
        if self._codegen is None:
            from tile_nvptx.emit import codegen

            codegen.initialize(libdevice)
            self._codegen = codegen
        return self._codegen

    def translator(self) -> Any:
        """What makes LLVM IR of MLIR."""
        if self._translator is None:
            from tile_nvptx.emit import translation

            self._translator = translation.Translator()
        return self._translator

    def answer(self, request: dict[str, Any]) -> tuple[str, Any]:
        """The reply to one request."""
        if "mlir" in request:
            return self._translated(request)
        codegen = self.codegen()
        try:
            if "host-ir" in request:
                return OK, {"object": codegen.host_object(request["host-ir"], request["triple"])}
            return OK, codegen.generate(codegen.Request(**request))
        except codegen.CodegenFailure as failure:
            return FAILED, (failure.message, failure.notes)

    def _translated(self, request: dict[str, Any]) -> tuple[str, Any]:
        from tile_core.diagnostics import TileError

        translator = self.translator()
        from tile_nvptx.emit import translation

        try:
            return OK, {"llvm-ir": translator.llvm_ir(translation.Request(**request))}
        except TileError as error:
            return REFUSED, error


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

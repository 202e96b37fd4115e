"""The process in which LLVM runs, MLIR's and llvmlite's: requests on standard input, replies on
standard output.

LLVM ends its process on what it cannot select, and MLIR's bindings on a translation that fails, so
it must not be the caller's. The module imports no MLIR, and of tile_core nothing but messages,
before either is needed. A request is a dict, a reply a pair (status, value).
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable
from typing import Any

from tile_core.pipe_messages import read_message, write_message

#: A reply holds the answer, what LLVM said (message, notes), or an error to raise as it is.
OK, FAILED, REFUSED = "ok", "failed", "refused"

#: A request without a reply: MLIR will be needed.
LOAD_MLIR = "load-mlir"


def main(libdevice: str | None = None, replied: Callable[[], None] = lambda: None) -> None:
    """Serve requests until standard input ends, which is when the caller has gone.

    Args:
        libdevice: bitcode to parse before the first request comes.
        replied: called after each reply, when the caller goes on.
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
            replied()


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

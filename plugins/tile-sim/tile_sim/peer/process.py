"""The process that runs host callbacks: native code from a file shall not run in the caller's."""

from __future__ import annotations

import atexit
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tile_sim.errors import SimError

_CHILD = Path(__file__).with_name("callback_child.py")
#: Sizes of code, relocations and parameters, where the function starts, the workspace.
REQUEST = struct.Struct("<IIIIQ")
#: The function's result, and how many bytes of parameters follow.
REPLY = struct.Struct("<iI")
RELOCATION = struct.Struct("<QQ")
_SECONDS = 20.0


@dataclass(frozen=True)
class Code:
    """Machine code, the offset of a function in it, and (offset, target) of absolute addresses."""

    image: bytes
    start: int
    absolute: tuple[tuple[int, int], ...] = ()


class HostProcess:
    """A child that loads code and calls it on parameters; started anew after one that died."""

    _one: HostProcess | None = None

    def __init__(self, seconds: float = _SECONDS) -> None:
        self.seconds = seconds
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._lock = threading.Lock()

    @classmethod
    def shared(cls) -> HostProcess:
        """The one of this process."""
        if cls._one is None or cls._one._owner != os.getpid():
            cls._one = cls()
            atexit.register(cls._one.close)
        return cls._one

    def call(self, code: Code, parameters: bytes, workspace: int = 0) -> tuple[int, bytes]:
        """The function's result and the parameters after it.

        The function gets (0, address of a context, 0, address of the parameters); the second word
        of the context is the address of device memory for the kernel, `workspace`. Raises SimError
        (`host`) where it ends its process or does not return.
        """
        relocations = b"".join(RELOCATION.pack(*pair) for pair in code.absolute)
        head = REQUEST.pack(
            len(code.image), len(relocations), len(parameters), code.start, workspace
        )
        with self._lock:
            child = self._started()
            assert child.stdin is not None
            try:
                child.stdin.write(head + code.image + relocations + parameters)
                child.stdin.flush()
                result, size = REPLY.unpack(self._read(child, REPLY.size))
                return result, self._read(child, size)
            except (BrokenPipeError, EOFError):
                raise SimError("host", f"the host callback {self._ending(child)}") from None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            # Isolated, without site: nothing but the few lines of the child is imported.
            self._child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_CHILD)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={},
            )  # fmt: skip
        return self._child

    def _read(self, child: subprocess.Popen[bytes], size: int) -> bytes:
        assert child.stdout is not None
        descriptor, end, data = child.stdout.fileno(), time.monotonic() + self.seconds, b""
        while len(data) < size:
            ready, _, _ = select.select([descriptor], [], [], max(end - time.monotonic(), 0))
            if not ready:
                self.close()
                raise SimError("host", f"the host callback did not return in {self.seconds:g} s")
            piece = os.read(descriptor, size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def _ending(self, child: subprocess.Popen[bytes]) -> str:
        self.close(kill=False)
        status = child.returncode
        if status is not None and status < 0:
            return f"ended its process: {signal.strsignal(-status) or f'signal {-status}'}"
        return f"ended its process with status {status}"

    def close(self, kill: bool = True) -> None:
        child, self._child = self._child, None
        if child is None or self._owner != os.getpid():
            return
        if kill:
            child.kill()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

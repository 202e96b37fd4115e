"""Messages between a process and the one that it has work done in: Python objects through a pipe.

A message is a pickled object after its length, 8 bytes little endian. Only for processes of one's
own: who reads one runs what it says.
"""

from __future__ import annotations

import os
import pickle
import struct
from typing import Any

_LENGTH = struct.Struct("<Q")


def write_message(fd: int, message: Any) -> None:
    """Send one message; file descriptors, so that nothing lingers in a buffer across a fork."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    rest = memoryview(_LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def read_message(fd: int) -> Any:
    """Receive one message.

    Raises:
        EOFError: the other side is gone.
    """
    (length,) = _LENGTH.unpack(_read_exactly(fd, _LENGTH.size))
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

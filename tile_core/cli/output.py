"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tile_core.diagnostics import ConfigurationError, UsageError

STDIO = "-"

#: Told of every temporary file before it is written; whoever may kill this process removes it.
announce: Callable[[str], None] = lambda _path: None  # noqa: E731


def read_bytes(path: str) -> bytes:
    """The contents of a file, or of standard input for "-".

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if path == STDIO else Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from error


class Output:
    """An output file, opened before the work and put in place after it.

    Leaving the block without `commit` leaves nothing behind. "-" is standard output.

    Raises:
        ConfigurationError: the file cannot be written; raised on entry, before the work.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # A file that a link leads to is written, and the link stays.
        self._file = Path(os.path.realpath(path))
        self._temporary: str | None = None

    def __enter__(self) -> Self:
        if self._path == STDIO:
            return self
        path = self._file
        try:
            if _is_stream(self._path):
                # A device or pipe cannot be renamed over; a directory is refused here.
                self._file = Path(self._path)
                with self._file.open("ab"):
                    return self
            if path.exists() and not os.access(path, os.W_OK):
                raise PermissionError(13, "Permission denied")
            handle, self._temporary = tempfile.mkstemp(
                prefix=f".{path.name}.", suffix=".part", dir=path.parent
            )
            os.close(handle)
            announce(self._temporary)
        except OSError as error:
            raise self._refused(error) from error
        return self

    def commit(self, data: bytes | str) -> None:
        """Write `data` and put the file in place."""
        raw = data.encode("utf-8") if isinstance(data, str) else data
        if self._path == STDIO:
            sys.stdout.buffer.write(raw)
            sys.stdout.buffer.flush()
            return
        try:
            if self._temporary is None:
                self._file.write_bytes(raw)
                return
            Path(self._temporary).write_bytes(raw)
            Path(self._temporary).chmod(0o666 & ~_umask())
            Path(self._temporary).replace(self._file)
            self._temporary = None
        except OSError as error:
            raise self._refused(error) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                Path(self._temporary).unlink()

    def _refused(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(f"cannot write '{self._path}': {error.strerror}")


def _is_stream(path: str) -> bool:
    """Whether what is there has no place in a folder: devices, pipes, /dev/stdout."""
    there = Path(path)
    if not there.exists():
        return False
    return not there.is_file() or not Path(os.path.realpath(path)).exists()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def write_file(path: str, data: bytes | str) -> None:
    """Write a file whole, or raise and leave nothing."""
    with Output(path) as output:
        output.commit(data)

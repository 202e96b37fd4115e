"""Files that only this user writes, as Python keeps compiled modules.

The first that a command imports: nothing that Python has not loaded by then, but `mmap`.
"""

from __future__ import annotations

import mmap
import os


def cache_folder() -> str:
    """Where this user's files of tilec are kept: TILEC_CACHE_DIR, or `tilec` in XDG_CACHE_HOME."""
    chosen = os.environ.get("TILEC_CACHE_DIR")
    if chosen:
        return chosen
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification: a relative path is to be ignored.
    if base and os.path.isabs(base):
        return os.path.join(base, "tilec")
    return os.path.join(os.path.expanduser("~"), ".cache", "tilec")


def user_folder() -> str:
    """Where snapshots are: what can be made anew, and takes long."""
    return os.path.join(cache_folder(), "snapshots")


def read_own(path: str) -> bytes:
    """What a file of this user's holds; nothing, if anybody else could have written it."""
    try:
        with open(path, "rb") as file:
            return file.read() if _is_own(file.fileno()) else b""
    except OSError:
        return b""


def map_own(path: str) -> memoryview:
    """The same without reading it: a page comes when it is looked at. `write_own` puts a new file
    in the place of the old one, which whoever has it mapped keeps."""
    try:
        with open(path, "rb") as file:
            if _is_own(file.fileno()):
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):
        pass
    return memoryview(b"")


def _is_own(file: int) -> bool:
    status = os.fstat(file)
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def write_own(path: str, data: bytes) -> None:
    """Write such a file; a disk that is full or read-only only makes the next process slower."""
    temporary = f"{path}.{os.getpid()}.part"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)


def append_own(path: str, lines: str) -> None:
    """Add lines to such a file, on the terms of `write_own`; those of several processes do not mix,
    as they are written at once."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "wb", 0) as file:
            file.write(lines.encode())
    except OSError:
        return

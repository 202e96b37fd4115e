"""Artifacts on disk, so that what was compiled once is not compiled again.

The key covers all that decides the bytes: the program, the resolved pipeline with every option, the
target, what is installed (`fingerprint`), the tools that emitters run, and the environment
variables that passes read. Files appear whole or not at all; a damaged one is thrown away and made
anew; two processes that want the same artifact make it once.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tile_core.digests import sha256
from tile_core.snapshot import cache_folder

#: Rises when what a file holds changes its form.
FORM = 1
_DEFAULT_LIMIT = 1 << 30
#: The cache is looked through when an entry of one in so many keys is stored.
_LOOK_EVERY = 16
#: What is kept when it has grown too large.
_KEPT_SHARE = 0.8
#: Unfinished files of processes that were killed are removed when they are this old, in seconds.
_ABANDONED = 3600.0


@dataclass(frozen=True)
class Entry:
    """What the cache holds for one key."""

    output: bytes
    text: bool  # whether `output` was text
    remarks: list[dict[str, Any]] = field(default_factory=list)
    about: Mapping[str, Any] = field(default_factory=dict)  # for `tilec cache ls`


@dataclass(frozen=True)
class Listed:
    """An entry as `tilec cache ls` shows it; `used` is seconds since the epoch."""

    key: str
    size: int
    used: float
    about: Mapping[str, Any]


class Cache:
    """A folder of artifacts.

    Args:
        folder: where they are; by default beneath `snapshot.cache_folder()`.
        limit: bytes that they may take together; the longest unused go first.
    """

    def __init__(self, folder: Path | None = None, limit: int = _DEFAULT_LIMIT) -> None:
        self.folder = folder or cache_folder() / "artifacts"
        self.limit = limit

    @classmethod
    def of_environment(cls) -> Cache | None:
        """The user's cache: TILEC_CACHE=off for none, TILEC_CACHE_SIZE for its limit in MiB."""
        if os.environ.get("TILEC_CACHE", "").strip().lower() in ("off", "0", "false"):
            return None
        with suppress(ValueError):
            return cls(limit=int(float(os.environ.get("TILEC_CACHE_SIZE", "")) * (1 << 20)))
        return cls()

    def find(self, key: str) -> Entry | None:
        """The entry of `key`; None if there is none, or it is damaged, which removes it."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        entry = _decoded(data)
        with suppress(OSError):
            if entry is None:
                path.unlink()
            else:
                os.utime(path)
        return entry

    def store(self, key: str, entry: Entry) -> None:
        """Keep `entry`; a disk that is full or read-only keeps nothing, and is no error."""
        path = self._path(key)
        temporary = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(_encoded(entry))
            Path(temporary).replace(path)
        except OSError:
            if temporary is not None:
                with suppress(OSError):
                    Path(temporary).unlink()
            return
        if int(key[:4], 16) % _LOOK_EVERY == 0:
            self.collect()

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Held while the artifact of `key` is made; others that want it wait and then find it."""
        try:
            import fcntl

            folder = self.folder / "locks"
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # A few files for all keys: they need not be removed, and may be shared by chance.
            file = os.open(folder / key[:2], os.O_RDWR | os.O_CREAT, 0o600)
        except (ImportError, OSError):
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def entries(self) -> list[Listed]:
        """Everything in the cache, longest unused first."""
        found: list[Listed] = []
        for path in self._files():
            try:
                status = path.stat()
                with path.open("rb") as file:
                    about = json.loads(file.readline())["about"]
            except (OSError, ValueError, KeyError):
                about, status = {}, None
            if status is not None:
                found.append(Listed(path.name, status.st_size, status.st_mtime, about))
        return sorted(found, key=lambda e: (e.used, e.key))

    def collect(self, limit: int | None = None) -> tuple[int, int]:
        """Remove the longest unused until the rest fits; how many were removed, and their bytes."""
        self._remove_abandoned()
        limit = self.limit if limit is None else limit
        entries = self.entries()
        size = sum(entry.size for entry in entries)
        removed, freed = 0, 0
        if size <= limit:
            return removed, freed
        for entry in entries:
            if size - freed <= limit * _KEPT_SHARE:
                break
            with suppress(OSError):
                self._path(entry.key).unlink()
            removed, freed = removed + 1, freed + entry.size
        return removed, freed

    def clear(self) -> tuple[int, int]:
        """Remove everything; how many entries, and their bytes."""
        return self.collect(limit=-1)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def _files(self) -> Iterator[Path]:
        for folder in sorted(self.folder.glob("[0-9a-f][0-9a-f]")):
            yield from sorted(p for p in folder.iterdir() if not p.name.startswith("."))

    def _remove_abandoned(self) -> None:
        for path in self.folder.glob("*/.*.part"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()


def key_of(parts: Mapping[str, Any]) -> str:
    """The key for everything that decides an artifact, as something that JSON can hold."""
    text = json.dumps({"form": FORM, **parts}, sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _encoded(entry: Entry) -> bytes:
    head = asdict(entry) | {"form": FORM, "sha256": sha256(entry.output).hexdigest()}
    del head["output"]
    return json.dumps(head, sort_keys=True).encode() + b"\n" + entry.output


def _decoded(data: bytes) -> Entry | None:
    line, _, payload = data.partition(b"\n")
    try:
        head = json.loads(line)
        whole = head["form"] == FORM and head["sha256"] == sha256(payload).hexdigest()
        return Entry(payload, head["text"], head["remarks"], head["about"]) if whole else None
    except (ValueError, KeyError, TypeError):
        return None

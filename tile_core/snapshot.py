"""What is installed, remembered between processes: answers keyed by the files they came from.

Reading every source file to digest it, or every plugin's metadata, takes longer than a small
compilation. A snapshot holds such an answer with the time and size of each file and folder behind
it; looking at those again takes a millisecond or two, and any difference makes the answer anew.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from tile_core import own_files

#: Path, modification time in ns and size, -1 and -1 for a path that is not there; for a folder a
#: digest of the names in it, else "".
Stamp = tuple[str, int, int, str]

#: Rises when what a snapshot holds changes its form.
_FORM = 3
#: Python makes one in each folder that it imports from, which changes nothing that is installed.
_COMPILED = "__pycache__"


def cache_folder() -> Path:
    """Where this user's files of tilec are kept (`own_files.cache_folder`)."""
    return Path(own_files.cache_folder())


def stamp(path: str | Path) -> Stamp:
    """What a file or folder looks like now."""
    try:
        found = os.stat(path)
        names = _names(path) if S_ISDIR(found.st_mode) else ""
    except OSError:
        return str(path), -1, -1, ""
    return str(path), found.st_mtime_ns, found.st_size, names


def _names(folder: str | Path) -> str:
    text = "\n".join(sorted(name for name in os.listdir(folder) if name != _COMPILED))
    return _digest(text)


def renewed(stamps: Iterable[Stamp]) -> list[Stamp] | None:
    """The stamps as they would be made now, if they mean the same; None if something has changed.

    A file means the same by its time and size, a folder by the names in it.
    """
    now: list[Stamp] = []
    for old in stamps:
        new = old if _untouched(old) else stamp(old[0])
        if new != old and (not new[3] or new[3] != old[3]):
            return None
        now.append(new)
    return now


def _untouched(old: Stamp) -> bool:
    try:
        found = os.stat(old[0])
    except OSError:
        return old[1] == -1
    return (found.st_mtime_ns, found.st_size) == old[1:3]


def installation() -> str:
    """A digest that tells installations apart: interpreter and search path."""
    return _digest("\n".join((sys.version, sys.prefix, *sys.path)))


def _digest(text: str) -> str:
    """A digest against chance, not against malice; `hashlib` loads OpenSSL for better ones."""
    data = text.encode("utf-8", "surrogateescape")
    return f"{zlib.crc32(data):08x}{zlib.adler32(data):08x}"


#: The stamps behind the answers of this process, by name.
_behind: dict[str, list[Stamp]] = {}


def behind(name: str) -> list[Stamp]:
    """The files and folders behind a remembered answer; none where somebody else watches them."""
    return _behind.get(name, [])


#: What this process has been told, where somebody else watches the files.
_told: dict[str, Any] | None = None


def trust() -> None:
    """From now on an answer holds for the life of this process.

    For workers of the compile server, whose supervisor looks at the files before every job.
    """
    global _told
    _told = {}


def watched_folders() -> list[Stamp]:
    """The folders of the search path: installing and removing something changes them."""
    return [stamp(folder) for folder in sys.path if folder]


def remembered(name: str, make: Callable[[], tuple[Any, Iterable[str | Path]]]) -> Any:
    """The answer called `name`, from the snapshot if nothing behind it has changed.

    Args:
        name: of the answer, and of its file.
        make: returns the answer, of what JSON can hold, and the files and folders behind it.
            Folders of the search path belong to every answer.
    """
    if _told is not None:
        if name not in _told:
            _told[name] = make()[0]
        return _told[name]
    path = cache_folder() / "snapshots" / f"{name}-{installation()}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(path.read_bytes())
        if kept["form"] == _FORM:
            now = renewed(map(tuple, kept["stamps"]))
            if now is not None:
                _behind[name] = now
                if now != [tuple(s) for s in kept["stamps"]]:
                    _write(path, kept | {"stamps": now})
                return kept["answer"]
    stamps = watched_folders()
    answer, files = make()
    stamps += [stamp(file) for file in files]
    _behind[name] = stamps
    _write(path, {"form": _FORM, "answer": answer, "stamps": stamps})
    return answer


def _write(path: Path, value: Any) -> None:
    """Best effort: a disk that is full or read-only only makes the next process slower."""
    temporary = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_text(json.dumps(value), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()

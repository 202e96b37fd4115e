"""The modules of a command in one file, instead of looking for and opening 600.

A command without a server imports the same modules each time. Python looks for each in the folders
of its package, compares times, opens a file, and makes names that every module has anew: a fifth of
a small compilation together. An image holds their compiled code in one file of this user's own,
with what the sources and their folders looked like; whatever has changed since is imported as ever,
and the image is written anew.

Only what Python itself has compiled and kept (`__pycache__`) comes into an image. Modules that one
process has added are a group: they are unpacked together, since who needs one needs most of them.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from tile_core.generated_code import map_own, read_own, user_folder, write_own

#: A compiled file starts with the magic number, flags, the source's time and size: 4 bytes each.
_HEAD = 16
#: With more bytes than these nothing is added any more.
_LIMIT = 1 << 26
#: More groups than these are made one.
_GROUPS = 8
#: A module that is to be added: name, source ("" for what is none, as itself), compiled file,
#: whether it is a package.
Described = tuple[str, str, str, bool]
#: What `marshal` raises for bytes that it has not written.
_BROKEN = (EOFError, ValueError, TypeError, KeyError, IndexError)


class Entry(NamedTuple):
    """A module of an image: its files, the source's time (ns) and size, and its group."""

    source: str
    compiled: str
    package: bool
    time: int
    size: int
    group: int


class ModuleImage:
    """A finder of modules, in front of Python's own.

    Args:
        path: the file; one that anybody else could have written is not read.
        search: the interpreter and its search path, which an image is for.
    """

    def __init__(self, path: str, search: str) -> None:
        self.path = path
        self.search = search
        self._index: dict[str, Entry] = {}
        self._packed: list[memoryview] = []
        self._code: dict[int, dict[str, CodeType]] = {}  # of groups that are unpacked
        self._folders: dict[str, int] = {}  # time of last change, when the image was written
        self._checked: dict[str, bool] = {}
        self._absent: frozenset[str] = frozenset()  # asked for, and no source that can be kept
        self._missed: set[str] = set()
        with suppress(*_BROKEN):
            self._read(map_own(path))

    def _read(self, data: memoryview) -> None:
        at = 8 + int.from_bytes(data[:8], "little")
        made_for, folders, lengths, index, absent = marshal.loads(data[8:at])
        if made_for != self.search or at + sum(lengths) != len(data):
            return
        if any(_changed(folder) != folders[folder] for folder in _search_path()):
            return
        for length in lengths:
            self._packed.append(data[at : at + length])
            at += length
        self._folders, self._absent = folders, absent
        self._index = {name: Entry(*entry) for name, entry in index.items()}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As Python asks its finders; None where the image does not know, or no longer."""
        del path, target
        code = self._current(name)
        if code is None:
            self._missed.add(name)
            return None
        entry = self._index[name]
        # `spec_from_file_location` would work out again what is known here.
        loader = _Loader(name, entry.source, code)
        spec = ModuleSpec(name, loader, origin=entry.source, is_package=entry.package)
        spec.has_location = True
        spec.cached = entry.compiled
        if entry.package:
            spec.submodule_search_locations = [os.path.dirname(entry.source)]
        return spec

    def _current(self, name: str) -> CodeType | None:
        """A module's code, where nothing has changed that could make it another."""
        entry = self._index.get(name)
        if entry is None:
            return None
        try:
            found = os.stat(entry.source)
        except OSError:
            return None
        if (found.st_mtime_ns, found.st_size) != (entry.time, entry.size):
            return None
        return self._unpacked(entry.group).get(name) if self._same(entry.source) else None

    def _unpacked(self, group: int) -> dict[str, CodeType]:
        code = self._code.get(group)
        if code is None:
            code = {}
            with suppress(*_BROKEN):
                code = marshal.loads(self._packed[group])
            self._code[group] = code
        return code

    def _same(self, source: str) -> bool:
        """Whether nothing was added to or taken from the folder of `source`."""
        folder = os.path.dirname(source)
        same = self._checked.get(folder)
        if same is None:
            same = self._checked[folder] = _changed(folder) == self._folders.get(folder)
        return same

    # --- what it lacks ---------------------------------------------------------------------------

    def report(self) -> None:
        """Leave word of modules that it lacks, for the next `save` of another process: of forks,
        which may end at any time, and so had better not write the image themselves."""
        missed, self._missed = self._missed - self._absent, set()
        if missed:
            lines = "".join(f"{marshal.dumps(item).hex()}\n" for item in _described(missed))
            with suppress(OSError):
                os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
                file = os.open(self._reports, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                try:
                    os.write(file, lines.encode())
                finally:
                    os.close(file)

    @property
    def _reports(self) -> str:
        return f"{self.path}.lacks"

    def _reported(self) -> Iterator[Described]:
        """What forks have left word of; only once."""
        lines = read_own(self._reports).split()
        if lines:
            with suppress(OSError):
                os.unlink(self._reports)
        with suppress(*_BROKEN):
            for line in lines:
                yield marshal.loads(bytes.fromhex(line.decode()))

    def save(self) -> None:
        """Write the image, if modules were imported that it does not have."""
        described = {item[0]: item for item in self._reported()}
        described |= {item[0]: item for item in _described(self._missed - self._absent)}
        if described:  # another process may have written the image since
            ModuleImage(self.path, self.search).add(described.values())

    def add(self, described: Iterable[Described]) -> None:
        """Write the image with more modules, as far as Python has compiled and kept them."""
        groups = [self._unpacked(number) for number in range(len(self._packed))]
        absent = set(self._absent)
        index: dict[str, Entry] = {}
        added: dict[str, CodeType] = {}
        for name, source, compiled, package in described:
            if not source:
                absent.add(name)
            elif found := _compiled(source, compiled):
                stamp, added[name] = found
                index[name] = Entry(source, compiled, package, *stamp, len(groups))
        if not added and absent == self._absent:
            return
        index |= {n: e for n, e in self._index.items() if n not in added and self._current(n)}
        groups.append(added)
        if len(groups) > _GROUPS:
            groups = [{n: groups[e.group][n] for n, e in index.items()}]
            index = {n: e._replace(group=0) for n, e in index.items()}
        self._write(index, groups, frozenset(absent - index.keys()))

    def _write(
        self, index: dict[str, Entry], groups: list[dict[str, CodeType]], absent: frozenset[str]
    ) -> None:
        of_group: list[dict[str, CodeType]] = [{} for _ in groups]
        for name, entry in index.items():
            of_group[entry.group][name] = groups[entry.group][name]
        packed = [marshal.dumps(group) for group in of_group]
        if sum(map(len, packed)) > _LIMIT:
            return
        folders = {os.path.dirname(e.source) for e in index.values()} | set(_search_path())
        times = {folder: _changed(folder) for folder in folders}
        entries = {name: tuple(entry) for name, entry in index.items()}
        head = marshal.dumps((self.search, times, [len(p) for p in packed], entries, absent))
        write_own(self.path, b"".join((len(head).to_bytes(8, "little"), head, *packed)))


class _Loader(SourceFileLoader):
    """Loads a module whose compiled code is in an image."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname: str) -> CodeType:
        """The compiled code."""
        del fullname
        return self.code


#: The image that this process takes modules from.
_kept: ModuleImage | None = None


def keep_modules() -> ModuleImage:
    """From now on, modules are taken from this user's image where it has them."""
    global _kept
    search = "\n".join((sys.version, sys.prefix, *sys.path))
    number = zlib.crc32(search.encode("utf-8", "surrogateescape"))
    _kept = ModuleImage(os.path.join(user_folder(), f"modules-{number:08x}.marshal"), search)
    sys.meta_path.insert(0, _kept)
    return _kept


def report_missed() -> None:
    """`ModuleImage.report` of this process's image, if it has one."""
    if _kept is not None:
        _kept.report()


def _described(names: Iterable[str]) -> Iterator[Described]:
    """Where modules of this process are from."""
    for name in sorted(names):
        spec: Any = getattr(sys.modules.get(name), "__spec__", None)
        if (
            spec is not None and spec.name == name and isinstance(spec.loader, SourceFileLoader)
            and isinstance(spec.origin, str) and os.path.isabs(spec.origin) and spec.cached
        ):  # fmt: skip
            yield name, spec.origin, spec.cached, spec.submodule_search_locations is not None
        else:
            yield name, "", "", False


def _compiled(source: str, compiled: str) -> tuple[tuple[int, int], CodeType] | None:
    """Time and size of a source, and its code; None where Python has not kept it compiled."""
    try:
        found = os.stat(source)
        with open(compiled, "rb") as file:
            data = file.read()
        expected = (0, int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
        words = (int.from_bytes(data[i : i + 4], "little") for i in (4, 8, 12))
        if data[:4] != MAGIC_NUMBER or tuple(words) != expected:
            return None
        return (found.st_mtime_ns, found.st_size), marshal.loads(data[_HEAD:])
    except (OSError, *_BROKEN):
        return None


def _search_path() -> list[str]:
    return [folder for folder in sys.path if folder]


def _changed(folder: str) -> int:
    """When something was added to a folder or taken from it, ns; -1 where there is none."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return -1

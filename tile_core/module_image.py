"""The modules of a command in one file, instead of looking for and opening 600.

A command without a server imports the same modules each time. Python looks for each in the folders
of its package, compares times, and opens a file: a tenth of a small compilation together. An image
holds their compiled code in one file of this user's own, with what the sources and their folders
looked like; whatever has changed since is imported as ever, and the image is written anew.

Only what Python itself has compiled and kept (`__pycache__`) comes into an image. Code is unpacked
when its module is imported, and not before: what is unpacked before a fork is copied, page by page,
when its counts of references change.

An image is there before `site` has completed the search path, for modules of the standard library.
So this module imports nothing that Python has not loaded at its start.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from _thread import RLock
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType

from tile_core.own_files import append_own, map_own, read_own, user_folder, write_own

TYPE_CHECKING = False  # without `typing`
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType
    from typing import Any

    #: Source, time (ns) and size of it, its compiled file ("": where Python puts it), whether it is
    #: a package, place and length of its code.
    Entry = tuple[str, int, int, str, bool, int, int]
    #: A module that is to be added: name, source ("" for what is none, as itself), compiled file,
    #: whether it is a package.
    Described = tuple[str, str, str, bool]

#: A compiled file starts with the magic number, flags, the source's time and size: 4 bytes each.
_HEAD = 16
#: Modules of the standard library that others import for what most commands never do: of a
#: command that only imports them they are not loaded. Not so of `from inspect import ...`.
_ON_USE = frozenset(
    [
        "bz2",
        "copy",
        "inspect",
        "ipaddress",
        "locale",
        "lzma",
        "queue",
        "signal",
        "traceback",
        "zipfile",
    ]
)
#: With more bytes than these nothing is added any more.
_LIMIT = 1 << 26
#: What `marshal` raises for bytes that it has not written.
_BROKEN = (EOFError, ValueError, TypeError, KeyError, IndexError)


class ModuleImage:
    """A finder of modules, in front of Python's own.

    Args:
        path: the file; one that anybody else could have written is not read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._made_for = ""
        self._index: dict[str, Entry] = {}
        self._code = memoryview(b"")
        self._folders: dict[str, int] = {}  # time of last change, when the image was written
        self._checked: dict[str, bool] = {}
        self._absent: frozenset[str] = frozenset()  # asked for, and no source that can be kept
        self._missed: set[str] = set()
        self._is_complete = False
        try:
            self._read(map_own(path))
        except _BROKEN:
            self._index = {}

    def _read(self, data: memoryview) -> None:
        at = 8 + int.from_bytes(data[:8], "little")
        made_for, folders, length, index, absent = marshal.loads(data[8:at])
        if at + length != len(data) or not _unchanged(folders):
            return
        self._code = data[at:]
        self._made_for, self._folders = made_for, folders
        self._index, self._absent = index, absent

    def complete(self) -> None:
        """The search path is complete: if the image was made for another one, only modules that
        were there before come from it."""
        if self._made_for != _search() or not _unchanged(self._folders):
            self._index = {}
            self._absent = frozenset()
        self._made_for = _search()
        self._is_complete = True

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As Python asks its finders; None where the image does not know, or no longer."""
        del path, target
        if not self._is_complete and name.partition(".")[0] not in sys.stdlib_module_names:
            return None  # who knows where it will be looked for
        entry = self._current(name)
        if entry is None:
            self._missed.add(name)
            return None
        source, _, _, compiled, package, at, length = entry
        code = self._code[at : at + length]
        loader = (_LoaderOnUse if name in _ON_USE else _Loader)(name, source, code)
        # `spec_from_file_location` would work out again what is known here.
        spec = ModuleSpec(name, loader, origin=source, is_package=package)
        spec.has_location = True
        spec.cached = compiled or _usual(source)
        if package:
            spec.submodule_search_locations = [os.path.dirname(source)]
        return spec

    def _current(self, name: str) -> Entry | None:
        """What it holds of a module, where nothing has changed that could make it another."""
        entry = self._index.get(name)
        if entry is None:
            return None
        try:
            found = os.stat(entry[0])
        except OSError:
            return None
        same = (found.st_mtime_ns, found.st_size) == entry[1:3] and self._same(entry[0])
        return entry if same else None

    def _same(self, source: str) -> bool:
        """Whether nothing was added to or taken from the folder of `source`."""
        folder = source.rpartition(os.sep)[0]
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
            append_own(self._reports, lines)

    @property
    def _reports(self) -> str:
        return f"{self.path}.lacks"

    def _reported(self) -> list[Described]:
        """What forks have left word of; only once."""
        lines = read_own(self._reports).split()
        if not lines:
            return []
        try:
            os.unlink(self._reports)
            return [marshal.loads(bytes.fromhex(line.decode())) for line in lines]
        except (OSError, *_BROKEN):
            return []

    def save(self) -> None:
        """Write the image, if modules were imported that it does not have."""
        described = {item[0]: item for item in self._reported()}
        described |= {item[0]: item for item in _described(self._missed - self._absent)}
        if described:
            newest = ModuleImage(self.path)  # another process may have written it since
            newest.complete()
            newest.add(described.values())

    def add(self, described: Iterable[Described]) -> None:
        """Write the image with more modules, as far as Python has compiled and kept them."""
        absent = set(self._absent)
        index: dict[str, Entry] = {}
        parts: list[bytes] = []
        at = 0
        for name, source, compiled, package in described:
            if not source:
                absent.add(name)
            elif found := _compiled(source, compiled):
                time, size, code = found
                usual = "" if compiled == _usual(source) else compiled
                index[name] = source, time, size, usual, package, at, len(code)
                parts.append(code)
                at += len(code)
        if not parts and absent == self._absent:
            return
        for name, (source, time, size, compiled, package, begin, length) in self._index.items():
            if name not in index and self._current(name):
                index[name] = source, time, size, compiled, package, at, length
                parts.append(bytes(self._code[begin : begin + length]))
                at += length
        if at <= _LIMIT:
            self._write(index, parts, frozenset(absent - index.keys()))

    def _write(self, index: dict[str, Entry], parts: list[bytes], absent: frozenset[str]) -> None:
        folders = {os.path.dirname(entry[0]) for entry in index.values()} | set(_search_path())
        times = {folder: _changed(folder) for folder in folders}
        head = marshal.dumps((self._made_for, times, sum(map(len, parts)), index, absent))
        write_own(self.path, b"".join((len(head).to_bytes(8, "little"), head, *parts)))


class _Loader(SourceFileLoader):
    """Loads a module whose compiled code is in an image."""

    def __init__(self, name: str, path: str, code: memoryview) -> None:
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname: str) -> CodeType:
        """The compiled code."""
        del fullname
        return marshal.loads(self.code)


class _LoaderOnUse(_Loader):
    """Loads it when somebody asks for one of its names. What it imports itself must not ask for
    them while it is imported: then threads cannot wait for each other."""

    def __init__(self, name: str, path: str, code: memoryview) -> None:
        super().__init__(name, path, code)
        self._lock = RLock()
        self._runs = False

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module to whoever uses it first."""
        module.__class__ = _NotLoaded

    def run(self, module: _NotLoaded) -> None:
        """Run it, once; another thread that asks for a name waits."""
        with self._lock:
            if self._runs:
                return  # it is done, or this thread is at it
            self._runs = True
            try:
                super().exec_module(module)
                object.__setattr__(module, "__class__", ModuleType)
            finally:
                self._runs = object.__getattribute__(module, "__class__") is ModuleType


class _NotLoaded(ModuleType):
    """A module that has not run."""

    def __getattribute__(self, name: str) -> Any:
        """As of the module: runs it, but for what Python asks of each at an import statement."""
        if name not in _OF_IMPORT:
            object.__getattribute__(self, "__spec__").loader.run(self)
        return object.__getattribute__(self, name)


#: What import statements and finders look at.
_OF_IMPORT = ("__spec__", "__class__", "__name__")

#: The image that this process takes modules from.
_kept: ModuleImage | None = None


def keep_modules(*, complete: bool = True) -> ModuleImage:
    """From now on, modules are taken from this user's image where it has them.

    Args:
        complete: the search path is. Else `ModuleImage.complete` has to be called when it is.
    """
    global _kept
    for_whom = "\n".join((sys.version, sys.executable, *(() if complete else sys.path)))
    number = zlib.crc32(for_whom.encode("utf-8", "surrogateescape"))
    _kept = ModuleImage(os.path.join(user_folder(), f"modules-{number:08x}.marshal"))
    if complete:
        _kept.complete()
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


def _usual(source: str) -> str:
    """Where Python keeps a compiled module."""
    folder, _, file = source.rpartition(os.sep)
    stem = file.removesuffix(".py")
    return f"{folder}{os.sep}__pycache__{os.sep}{stem}.{sys.implementation.cache_tag}.pyc"


def _compiled(source: str, compiled: str) -> tuple[int, int, bytes] | None:
    """Time and size of a source, and its code; None where Python has not kept it compiled."""
    from importlib.util import MAGIC_NUMBER  # brings much that is needed only here

    try:
        found = os.stat(source)
        with open(compiled, "rb") as file:
            data = file.read()
        expected = (0, int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
        words = (int.from_bytes(data[i : i + 4], "little") for i in (4, 8, 12))
        if data[:4] != MAGIC_NUMBER or tuple(words) != expected:
            return None
        return found.st_mtime_ns, found.st_size, data[_HEAD:]
    except OSError:
        return None


def _search() -> str:
    """What an image is made for: the interpreter and its search path."""
    return "\n".join((sys.version, sys.prefix, *sys.path))


def _search_path() -> list[str]:
    return [folder for folder in sys.path if folder]


def _unchanged(folders: dict[str, int]) -> bool:
    """Whether nothing was added to or taken from the folders of the search path."""
    return all(_changed(folder) == folders.get(folder) for folder in _search_path())


def _changed(folder: str) -> int:
    """When something was added to a folder or taken from it, ns; -1 where there is none."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return -1

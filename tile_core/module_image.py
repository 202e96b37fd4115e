"""The modules of a command in one file, instead of looking for and opening 600.

A command without a server imports the same modules each time. Python looks for each in the folders
of its package, compares times, and opens a file: a tenth of a small compilation together. An image
holds their compiled code in one file of this user's own, with what the sources and their folders
looked like; whatever has changed since is imported as ever, and the image is written anew.

Only what Python itself has compiled and kept (`__pycache__`) comes into an image.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER, spec_from_file_location
from types import CodeType, ModuleType
from typing import Any

from tile_core.generated_code import map_own, user_folder, write_own

#: Name -> source file, whether it is a package, time and size of the source, offset, length.
Index = dict[str, tuple[str, bool, int, int, int, int]]

#: A compiled file starts with the magic number, flags, the source's time and size: 4 bytes each.
_HEAD = 16
#: With more bytes than these nothing is added any more.
_LIMIT = 1 << 26


class ModuleImage:
    """A finder of modules, in front of Python's own.

    Args:
        path: the file; one that anybody else could have written is not read.
        search: the interpreter and its search path, which an image is for.
    """

    def __init__(self, path: str, search: str) -> None:
        self.path = path
        self.search = search
        self._index: Index = {}
        self._code = memoryview(b"")
        self._folders: dict[str, int] = {}  # time of last change, when the image was written
        self._checked: dict[str, bool] = {}
        #: Modules that nobody will ask an image for: they are loaded before there is one.
        self._before = frozenset(sys.modules)
        data = map_own(path)
        try:
            length = int.from_bytes(data[:8], "little")
            made_for, folders, index = marshal.loads(data[8 : 8 + length])
            if made_for == search and all(_changed(f) == folders[f] for f in _search_path()):
                self._folders, self._index = folders, index
                self._code = data[8 + length :]
        except (EOFError, ValueError, TypeError, KeyError):
            pass

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As Python asks its finders; None where the image does not know, or no longer."""
        del path, target
        known = self._index.get(name)
        if known is None:
            return None
        source, package, time, size, at, length = known
        try:
            found = os.stat(source)
        except OSError:
            return None
        if (found.st_mtime_ns, found.st_size) != (time, size) or not self._same(source):
            return None
        loader = _Loader(name, source, self._code[at : at + length])
        folder = [os.path.dirname(source)] if package else None
        return spec_from_file_location(
            name, source, loader=loader, submodule_search_locations=folder
        )

    def _same(self, source: str) -> bool:
        """Whether nothing was added to or taken from the folder of `source`."""
        folder = os.path.dirname(source)
        same = self._checked.get(folder)
        if same is None:
            same = self._checked[folder] = _changed(folder) == self._folders.get(folder)
        return same

    def save(self) -> None:
        """Write the image, if modules were imported that it does not have."""
        new = {
            name: module
            for name, module in list(sys.modules.items())
            if name not in self._before and _is_source(module, name)
        }
        # One that another finder has loaded may be in the image, too.
        if all(_is_kept(module) or self.find_spec(name) for name, module in new.items()):
            return
        kept = {n: e for n, e in self._index.items() if n not in new and self.find_spec(n)}
        parts: list[bytes] = []
        index: Index = {}
        at = 0
        for name, (source, package, time, size, begin, length) in kept.items():
            parts.append(bytes(self._code[begin : begin + length]))
            index[name] = (source, package, time, size, at, length)
            at += length
        for name, module in new.items():
            found = self._compiled(name, module)
            if found is not None and at < _LIMIT:
                source, package, time, size, code = found
                parts.append(code)
                index[name] = (source, package, time, size, at, len(code))
                at += len(code)
        folders = {os.path.dirname(entry[0]) for entry in index.values()} | set(_search_path())
        head = marshal.dumps((self.search, {f: _changed(f) for f in folders}, index))
        write_own(self.path, b"".join((len(head).to_bytes(8, "little"), head, *parts)))

    def _compiled(self, name: str, module: Any) -> tuple[str, bool, int, int, bytes] | None:
        """What the image holds of a module; None where Python has not kept it compiled."""
        loader, source = module.__spec__.loader, module.__spec__.origin
        package = module.__spec__.submodule_search_locations is not None
        try:
            found = os.stat(source)
            if isinstance(loader, _Loader):
                code = bytes(loader.code)
            else:
                with open(module.__spec__.cached, "rb") as file:
                    data = file.read()
                expected = (0, int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
                words = (int.from_bytes(data[i : i + 4], "little") for i in (4, 8, 12))
                if data[:4] != MAGIC_NUMBER or tuple(words) != expected:
                    return None
                code = data[_HEAD:]
        except (OSError, TypeError):
            return None
        return source, package, found.st_mtime_ns, found.st_size, code


class _Loader(SourceFileLoader):
    """Loads a module whose compiled code is in an image."""

    def __init__(self, name: str, path: str, code: memoryview) -> None:
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname: str) -> CodeType:
        """The compiled code."""
        del fullname
        return marshal.loads(self.code)


def keep_modules() -> ModuleImage:
    """From now on, modules are taken from this user's image where it has them."""
    search = "\n".join((sys.version, sys.prefix, *sys.path))
    number = zlib.crc32(search.encode("utf-8", "surrogateescape"))
    image = ModuleImage(os.path.join(user_folder(), f"modules-{number:08x}.marshal"), search)
    sys.meta_path.insert(0, image)
    return image


def _is_kept(module: Any) -> bool:
    """Whether a module came from the image."""
    return isinstance(module.__spec__.loader, _Loader)


def _is_source(module: Any, name: str) -> bool:
    """Whether a module came from a source file, as itself."""
    spec = getattr(module, "__spec__", None)
    return (
        spec is not None and spec.name == name and isinstance(spec.loader, SourceFileLoader)
        and isinstance(spec.origin, str) and os.path.isabs(spec.origin)
    )  # fmt: skip


def _search_path() -> list[str]:
    return [folder for folder in sys.path if folder]


def _changed(folder: str) -> int:
    """When something was added to a folder or taken from it, ns; -1 where there is none."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return -1

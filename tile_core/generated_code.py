"""The methods of dataclasses, compiled once and not in every process.

`dataclasses` writes each method as text and compiles that when its class is made: some 1,300 texts
for a compilation, a fifth of a second together. The compiled code is kept on disk by its text, so
nothing can be out of date, in a file of this user's own, as Python keeps compiled modules.
"""

from __future__ import annotations

import dataclasses
import marshal
import os
import sys
from contextlib import suppress
from types import CodeType
from typing import Any

#: With more texts than these the file is begun anew: most of them are of versions long gone.
_LIMIT = 10_000


class GeneratedCode:
    """Code by its text, from a file, which `save` writes if there is more than it held.

    Args:
        path: the file; one that anybody else could have written is not read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.known: dict[str, CodeType] = {}
        with suppress(OSError, EOFError, ValueError, TypeError), open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid == os.getuid() and not status.st_mode & 0o022:
                self.known = dict(marshal.loads(file.read()))
        self._held = len(self.known)

    def execute(
        self, text: str | CodeType, names: dict[str, Any] | None = None, made: Any = None, /
    ) -> None:
        """`exec(text, names, made)`, as `dataclasses` calls it."""
        code = self.known.get(text) if isinstance(text, str) else text
        if code is None:
            assert isinstance(text, str)
            code = self.known[text] = compile(text, "<string>", "exec", dont_inherit=True)
        exec(code, names, made)

    def save(self) -> None:
        """Write the file; a disk that is full or read-only only makes the next process slower."""
        if len(self.known) == self._held:
            return
        kept = self.known if len(self.known) <= _LIMIT else {}
        temporary = f"{self.path}.{os.getpid()}.part"
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(marshal.dumps(kept))
            os.replace(temporary, self.path)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)


def keep() -> GeneratedCode:
    """From now on `dataclasses` takes its methods from the user's file.

    Its name has the version of Python, whose `marshal` reads no other's code.
    """
    version = f"{sys.implementation.cache_tag}-{sys.hexversion:x}"
    code = GeneratedCode(os.path.join(_folder(), "snapshots", f"methods-{version}.marshal"))
    # A global of that name goes before the builtin; a version that calls none is as it was.
    setattr(dataclasses, "exec", code.execute)  # noqa: B010 - no attribute that it declares
    return code


def _folder() -> str:
    from tile_core.snapshot import cache_folder

    return str(cache_folder())

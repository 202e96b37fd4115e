"""Methods of dataclasses, regular expressions and TOML, compiled once and not in every process.

`dataclasses` writes each method as text and compiles that when its class is made: some 1,300 texts
for a compilation, a fifth of a second together (`deferred_methods.py` makes fewer); a hundred
expressions take a tenth of that, and TOML, with its parser, as much. What they compile to is kept
on disk by its text, so nothing can be out of date, in a file of this user's own, as Python keeps
compiled modules.
"""

from __future__ import annotations

import dataclasses
import marshal
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import CodeType
from typing import Any

from tile_core import toml_text
from tile_core.deferred_methods import DeferredMethods
from tile_core.own_files import read_own, user_folder, write_own

#: What `re.compile` turns a text and its flags into: arguments of `_sre.compile` behind the text.
Program = tuple[int, list[int], int, dict[str, int], tuple[str | None, ...]]

#: With more texts than these the file is begun anew: most of them are of versions long gone.
_LIMIT = 10_000


class GeneratedCode:
    """Code by its text, from a file, which `save` writes if there is more than it held.

    Args:
        path: the file; one that anybody else could have written is not read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.known: dict[str, bytes] = {}  # as `marshal` has it: most are not asked for
        self.expressions: dict[tuple[str | bytes, int], Program] = {}
        self.tables: dict[str, bytes] = {}  # of TOML
        with suppress(EOFError, ValueError, TypeError):
            known, expressions, tables = marshal.loads(read_own(path))
            self.known, self.expressions, self.tables = dict(known), dict(expressions), dict(tables)
        self._held = self._count()

    def _count(self) -> int:
        return len(self.known) + len(self.expressions) + len(self.tables)

    def execute(
        self, text: str | CodeType, names: dict[str, Any] | None = None, made: Any = None, /
    ) -> None:
        """`exec(text, names, made)`, as `dataclasses` calls it."""
        exec(self._code(text) if isinstance(text, str) else text, names, made)

    def _code(self, text: str) -> CodeType:
        packed = self.known.get(text)
        if packed is not None:
            return marshal.loads(packed)
        code = compile(text, "<string>", "exec", dont_inherit=True)
        self.known[text] = marshal.dumps(code)
        return code

    def expression(
        self, compiler: Any, real: Callable[..., Any], text: Any, flags: int = 0
    ) -> re.Pattern[Any]:
        """`re`'s own compilation of `text`, from what is known.

        Args:
            compiler: the module of `re` that holds it.
            real: what it is called there.
        """
        key = (text, int(flags))
        if type(text) not in (str, bytes) or flags & re.DEBUG:
            return real(text, flags)
        program = self.expressions.get(key)
        if program is None:
            made = real(text, flags)
            parsed = compiler._parser.parse(text, int(flags))
            names = parsed.state.groupdict
            of_groups: list[str | None] = [None] * parsed.state.groups
            for name, at in names.items():
                of_groups[at] = name
            self.expressions[key] = (
                int(flags) | int(parsed.state.flags),
                [int(word) for word in compiler._code(parsed, int(flags))],
                parsed.state.groups - 1, names, tuple(of_groups),
            )  # fmt: skip
            return made
        return compiler._sre.compile(text, *program)

    def save(self) -> None:
        """Write the file; a disk that is full or read-only only makes the next process slower."""
        if self._count() == self._held:
            return
        kept = (self.known, self.expressions, self.tables)
        kept = kept if self._count() <= _LIMIT else ({}, {}, {})
        write_own(self.path, marshal.dumps(kept))


def keep() -> GeneratedCode:
    """From now on `dataclasses` takes its methods from the user's file, and `re` its programs.

    Its name has the version of Python, whose `marshal` reads no other's code.
    """
    version = f"{sys.implementation.cache_tag}-{sys.hexversion:x}"
    code = GeneratedCode(os.path.join(user_folder(), f"generated-{version}.marshal"))
    # A global of that name goes before the builtin; a version that calls none is as it was.
    setattr(dataclasses, "exec", code.execute)  # noqa: B010 - no attribute that it declares
    dataclasses.dataclass = DeferredMethods(code.execute).dataclass
    toml_text.keep(code.tables)
    _keep_expressions(code)
    return code


def _keep_expressions(code: GeneratedCode) -> None:
    """Have `re` ask `code`, where its inside is as it is in Python 3.11 to 3.14."""
    compiler: Any = getattr(re, "_compiler", None)
    if not all(hasattr(compiler, name) for name in ("compile", "_parser", "_code", "_sre")):
        return
    compiler.compile = partial(code.expression, compiler, compiler.compile)

"""Edits of PTX text, on its directives and never inside function bodies."""

from __future__ import annotations

import re

#: `.language` values that ptxas writes as EIATTR_LANGUAGE; 7 is Tile IR.
LANGUAGE_TILE_IR = 7

#: The first PTX ISA version (x10) whose ptxas takes `.language`.
LANGUAGE_SINCE = 92

_VERSION = re.compile(r"^\.version (\d+)\.(\d+)", re.MULTILINE)
_ENTRY = re.compile(r"^(?:\.visible |\.weak )?\.entry ([\w$]+)", re.MULTILINE)
_REQNTID = re.compile(r"^\.reqntid [^\n]*\n", re.MULTILINE)
_LANGUAGE = re.compile(r"^\.language \d", re.MULTILINE)
_BODY = re.compile(r"^\{", re.MULTILINE)


def version_of(ptx: str) -> int:
    """The `.version` of `ptx`, x10; 0 when it has none."""
    found = _VERSION.search(ptx)
    return int(found[1]) * 10 + int(found[2]) if found else 0


def entries_of(ptx: str) -> tuple[str, ...]:
    """The kernels of `ptx`, in order."""
    return tuple(found[1] for found in _ENTRY.finditer(ptx))


def has_tile_kernels(ptx: str) -> bool:
    """Whether a kernel of `ptx` has a mark of its language."""
    return _LANGUAGE.search(ptx) is not None


def with_version(ptx: str, version: int) -> str:
    """`ptx` with `.version` at least `version` (x10)."""
    version = max(version, version_of(ptx))
    return _VERSION.sub(f".version {version // 10}.{version % 10}", ptx, count=1)


def as_tile_kernels(ptx: str) -> str:
    """`ptx` with every kernel of a fixed block size marked as a Tile IR kernel.

    The driver launches such a kernel with a block of (1, 1, 1) and supplies the real size from
    `.reqntid`, so a kernel without `.reqntid` stays what it is. PTX 9.2 or later.
    """
    parts: list[str] = []
    done = 0
    for entry in _ENTRY.finditer(ptx):
        body = _BODY.search(ptx, entry.end())
        header_end = body.start() if body else len(ptx)
        size = _REQNTID.search(ptx, entry.end(), header_end)
        if size is not None:
            parts += [ptx[done : size.end()], f".language {LANGUAGE_TILE_IR}\n"]
            done = size.end()
    return with_version("".join([*parts, ptx[done:]]), LANGUAGE_SINCE)

"""Tile IR as the source between the user's and the machine's code.

It is an attribute in MLIR, a comment in LLVM IR, directives in PTX, and sections of the cubin that
ptxas makes of them.

`.loc_intermediate` behind a `.loc` says the line of the text that is in the section at the end
(page 084 of the specification; in the forms of the released compiler, for ptxas 13.5 on). A
program that comes as MLIR has no such text.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tile_core.digests import md5
from tile_nvptx.emit import ptx_text

if TYPE_CHECKING:
    from tile_core.mlir import ir

#: Attribute of the builtin.module, which the front end writes.
ATTRIBUTE = "tile.source"
#: PTX from which ptxas takes the directives, x10 (its own message says so).
SINCE = 94
_MARK = "; intermediate-source "
_LOC = re.compile(r"^([ \t]*)\.loc[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+).*$", re.MULTILINE)
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+)[ \t]+"((?:[^"\\]|\\.)*)"', re.MULTILINE)


def note(module: ir.Operation) -> str:
    """The comment of LLVM IR that says the source of a builtin.module; empty without one."""
    from tile_core.mlir import ir  # PTX is made without it

    if ATTRIBUTE not in module.attributes:
        return ""
    return _MARK + ir.StringAttr(module.attributes[ATTRIBUTE]).value + "\n"


def with_source(ptx: str, llvm: str, highest: int | None) -> str:
    """`ptx` with the source that LLVM IR tells of, and for each `.loc` the line that comes from
    there: the last one, since an expression's operands are made before it.

    Args:
        highest: the newest PTX that ptxas reads, x10; the text stays as it is where that is too
            old, or nothing is known of it.
    """
    start = llvm.rfind("\n" + _MARK)
    if start < 0 or highest is None or highest < SINCE:
        return ptx
    record = json.loads(llvm[start + 1 + len(_MARK) : llvm.index("\n", start + 1)])
    files = {int(number): name for number, name in _FILE.findall(ptx)}
    own = max(files, default=0) + 1
    lines = _lines(record["places"])

    def behind(match: re.Match[str]) -> str:
        name = files.get(int(match[2]), "").rpartition("/")[2]
        line = lines.get((name, int(match[3]), int(match[4])))
        more = "" if line is None else f"\n{match[1]}.loc_intermediate {own} {line} 1"
        return match[0] + more

    text = _LOC.sub(behind, ptx)
    return ptx_text.with_version(text.rstrip("\n") + "\n" + _section(record["text"], own), SINCE)


def _lines(places: list[list[Any]]) -> dict[tuple[str, int, int], int]:
    """(file without its folder, line, column) of the user's source -> line of the text."""
    return {(file.rpartition("/")[2], line, column): own for own, file, line, column in places}


def _section(text: str, file: int) -> str:
    """The file's name is that of its contents, so that equal programs have equal names."""
    name = md5(text.encode())
    return (
        f'.file {file} "{name}"\n'
        ".nv_intermediate_source_section {\n.code_block {\n"
        f'.ir_name: "tile ir"\n.sourceFileName: {file}\n'
        f".source_begin\n{text}.source_end\n}}\n}}\n"
    )

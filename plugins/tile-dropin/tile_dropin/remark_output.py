"""Remarks as `tileiras` gives them: chosen by kind and category, on the screen or as YAML.

Categories are "Memory" and "Tensor-core". A remark of ours belongs to the second when it is about a
product of matrices and to the first otherwise.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tile_core.cli.output import write_file

if TYPE_CHECKING:
    from tile_core.pipeline.remarks import Remark
    from tile_dropin.command_line import Given

_DEFAULT_FILE = "tileir_remarks.yaml"
#: Kind of remark -> the option that chooses its category, and the tag of its YAML document.
_KINDS = {
    "passed": ("remarks-passed", "Passed"),
    "missed": ("remarks-missed", "Missed"),
    "failed": ("remarks-failed", "Failure"),
    "analysis": ("remarks-analysis", "Analysis"),
    "warning": ("remarks-analysis", "Analysis"),
}
_TENSOR_CORE = ("dot", "mma")
_CATEGORIES = {"memory": "Memory", "tensorcore": "Tensor-core"}


@dataclass(frozen=True)
class RemarkOutput:
    """Which remarks are wanted and where they go; `file` is None for the screen, or for none."""

    wanted: dict[str, str]  # kind -> "all", "memory", "tensorcore"
    file: str | None

    @classmethod
    def of(cls, given: Given) -> Self:
        """What a command line asks for; an option of one kind counts more than `--remarks`."""
        wanted: dict[str, str] = {}
        for kind, (option, _) in _KINDS.items():
            choice = given[option] or given["remarks"] or "none"
            if choice != "none":
                wanted[kind] = choice
        yaml = given["remark-format"] == "yaml" and bool(wanted)
        return cls(wanted, (given["remarks-output-file"] or _DEFAULT_FILE) if yaml else None)

    def problem(self) -> str:
        """Why the file cannot be written; empty when it can, or there is none."""
        if self.file is None:
            return ""
        path = Path(self.file)
        if path.is_dir():
            return os.strerror(21)
        folder = path if path.exists() else path.parent
        if not folder.exists():
            return os.strerror(2)
        return "" if os.access(folder, os.W_OK) else os.strerror(13)

    def write(self, remarks: Iterable[Remark]) -> None:
        """Write those of `remarks` that are wanted, in the order in which they were made."""
        if not self.wanted:
            return
        chosen = [remark for remark in remarks if self._wants(remark)]
        if self.file is not None:
            text = "".join(_document(n, remark) for n, remark in enumerate(chosen, 1))
            write_file(self.file, text)
        else:
            sys.stdout.write(_listing(chosen))

    def _wants(self, remark: Remark) -> bool:
        choice = self.wanted.get(remark.kind)
        return choice == "all" or (choice is not None and _CATEGORIES[choice] == category(remark))


def category(remark: Remark) -> str:
    """ "Tensor-core" for products, else "Memory"."""
    name = remark.op.rpartition(".")[2]
    return _CATEGORIES["tensorcore" if name.startswith(_TENSOR_CORE) else "memory"]


def _name(remark: Remark) -> str:
    words = remark.pass_name.replace("_", "-").split("-")
    return "Remark" + "".join(word.capitalize() for word in words)


def _document(number: int, remark: Remark) -> str:
    """LLVM's form of a remark, in the shape that the released tool gives it."""
    lines = [
        f"--- !{_KINDS[remark.kind][1]}",
        f"Pass:            {category(remark)}",
        f"Name:            {_name(remark)}",
    ]
    if remark.where is not None:
        where = remark.where
        lines.append(
            f"DebugLoc:        {{ File: {_quoted(where.file)}, "
            f"Line: {where.line}, Column: {where.column} }}"
        )
    lines += [
        f"Function:        {remark.function}",
        "Args:",
        f"  - RemarkId:    {number}",
        f"  - Remark:      {_quoted(remark.message)}",
        "...",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''").replace("\n", " ") + "'"


def _listing(remarks: list[Remark]) -> str:
    """Remarks grouped by function and category, as on the screen."""
    lines: list[str] = []
    for function in dict.fromkeys(remark.function for remark in remarks):
        lines.append(f"in function: {function}:")
        of_function = [r for r in remarks if r.function == function]
        for group in dict.fromkeys(map(category, of_function)):
            lines.append(f"  category: {group}")
            for remark in of_function:
                if category(remark) == group:
                    lines += _shown(remark)
    return "".join(f"{line}\n" for line in lines)


def _shown(remark: Remark) -> list[str]:
    kind = "analysis" if remark.kind == "warning" else remark.kind
    lines = [f"    remark[{kind}]: {remark.message}"]
    if remark.where is not None:
        where = remark.where
        lines.append(f'      --> "{where.file}":{where.line}:{where.column}')
    return [*lines, "       |", f"       = name: {_name(remark)}"]

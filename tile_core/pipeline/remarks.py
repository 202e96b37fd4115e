"""What passes say about what they did and did not do, and YAML for tools that read remarks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tile_core.diagnostics import SourceLocation


@dataclass(frozen=True)
class Remark:
    """One remark; `kind` is "passed", "missed", "analysis" or "warning"."""

    kind: str
    pass_name: str
    op: str  # operation name
    function: str  # symbol of the anchor, "" for a module
    message: str
    where: SourceLocation | None = None

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.kind}: {self.message} [{self.pass_name}]"


def as_yaml(remarks: Iterable[Remark]) -> str:
    """LLVM's optimization record format, one document per remark."""
    return "".join(_document(remark) for remark in remarks)


def _document(remark: Remark) -> str:
    tag = {"passed": "Passed", "missed": "Missed"}.get(remark.kind, "Analysis")
    lines = [f"--- !{tag}", f"Pass:            {_quoted(remark.pass_name)}"]
    lines.append(f"Name:            {_quoted(remark.op)}")
    if remark.where is not None:
        where = remark.where
        lines.append(
            f"DebugLoc:        {{ File: {_quoted(where.file)}, "
            f"Line: {where.line}, Column: {where.column} }}"
        )
    lines.append(f"Function:        {_quoted(remark.function)}")
    lines.append("Args:")
    lines.append(f"  - String:          {_quoted(remark.message)}")
    lines.append("...")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''").replace("\n", " ") + "'"

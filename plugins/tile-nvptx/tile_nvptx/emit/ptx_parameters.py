"""Parameters of kernels in PTX text: where each lies in a launch, and which are hidden."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tile_core.diagnostics import CompileError

_HEAD = re.compile(
    r"^(?:\.visible |\.weak )?\.entry (?P<name>[\w$]+)\((?P<list>[^)]*)\)", re.MULTILINE
)
_PARAMETER = re.compile(
    r"^\s*(?P<hidden>\.hidden\s+)?\.param\s+(?:\.align (?P<align>\d+)\s+)?\.(?P<kind>[a-z]\d+)\b"
    r"[^\[]*?(?:\[(?P<count>\d+)\])?\s*$"
)


@dataclass(frozen=True)
class Parameter:
    """One parameter: bytes behind the first one, and how many it takes."""

    offset: int
    size: int
    hidden: bool


def parameters_of(ptx: str, base: int) -> dict[str, tuple[Parameter, ...]]:
    """Kernel -> its parameters, as ptxas places them.

    Args:
        base: where parameters begin in their constant bank, by which alignment counts.

    Raises:
        CompileError: a parameter that this does not know.
    """
    return {head["name"]: _placed(head["name"], head["list"], base) for head in _HEAD.finditer(ptx)}


def _placed(kernel: str, listed: str, base: int) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    end = base
    for text in filter(str.strip, listed.split(",")):
        match = _PARAMETER.match(text)
        if match is None:
            raise CompileError(
                f"kernel {kernel}: cannot tell the size of parameter '{text.strip()}'"
            )
        element = int(match["kind"][1:]) // 8
        align = max(element, int(match["align"] or 1))
        size = element * int(match["count"] or 1)
        start = -(-end // align) * align
        found.append(Parameter(start - base, size, match["hidden"] is not None))
        end = start + size
    return tuple(found)


def with_hidden(ptx: str, hidden: Mapping[str, Collection[int]]) -> str:
    """`ptx` with parameters that a launch does not pass marked `.hidden`: kernel -> which ones.

    Raises:
        CompileError: there is no such kernel or parameter.
    """
    missing = set(hidden) - {head["name"] for head in _HEAD.finditer(ptx)}
    if missing:
        raise CompileError(f"there is no kernel '{min(missing)}' to take tensor maps")

    def marked(head: re.Match[str]) -> str:
        parts = head["list"].split(",")
        for index in hidden.get(head["name"], ()):
            if index >= len(parts) or ".param" not in parts[index]:
                raise CompileError(f"kernel {head['name']} has no parameter {index}")
            if ".hidden" not in parts[index]:
                parts[index] = parts[index].replace(".param", ".hidden .param", 1)
        return head[0].replace(head["list"], ",".join(parts), 1) if head["list"] else head[0]

    return _HEAD.sub(marked, ptx)

"""Why a test failed, in words that are the same for the same cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tile_core.diagnostics import TileError
from tile_sim.errors import SimError

#: Kinds, in the order of a report.
COMPILE, NUMBERS, SIMULATOR, TIMEOUT, MEMORY, CRASH, COLLECTION, OTHER = (
    "compile error", "wrong numbers", "simulator", "timeout", "memory", "crash", "not collected",
    "other",
)  # fmt: skip
_REPLACED = (
    (re.compile(r"loc\([^)]*\):?"), ""),
    (re.compile(r"(/[\w.\-]+)+"), "PATH"),
    (re.compile(r"0x[0-9a-f]+"), "N"),
    (re.compile(r"%\w+"), "%"),
    (re.compile(r"(?<=[<\[x,( ])\d+(?=[x>\],) :])"), "N"),
    (re.compile(r"(?<![\w.])-?\d+(\.\d+)?(e[+-]?\d+)?(?![\w.])"), "N"),
    (re.compile(r"N(x N|xN|, N)+"), "N.."),
    (re.compile(r"\s+"), " "),
)


class TestTimeout(BaseException):
    """A test took longer than it may."""

    __test__ = False


@dataclass(frozen=True)
class Cause:
    """A kind, and a text without the numbers and places of the single test."""

    kind: str
    text: str
    detail: str = ""


def cause_of(error: BaseException) -> Cause:
    """The cause of a failed test, from the exception that ended it."""
    if isinstance(error, TestTimeout):
        return Cause(TIMEOUT, "took too long", str(error))
    if isinstance(error, MemoryError):
        return Cause(MEMORY, "needed too much memory", str(error))
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, TileError):
            return Cause(COMPILE, normalised(inner.message), inner.render())
        if isinstance(inner, SimError):
            return Cause(SIMULATOR, normalised(f"{inner.kind}: {inner.message}"), str(inner))
        inner = inner.__cause__
    return _by_text(error)


def _by_text(error: BaseException) -> Cause:
    try:
        text = str(error)
    except Exception as failure:  # a class of the test's own may raise anything, which ended pytest
        text = f"its text raises {type(failure).__name__}"
    first = next((line for line in text.splitlines() if line.strip()), "")
    if isinstance(error, AssertionError) and re.search(r"Tensor-likes|Scalars|Mismatch", text):
        return Cause(NUMBERS, normalised(first), text[:1500])
    return Cause(OTHER, normalised(f"{type(error).__name__}: {first}")[:200], text[:1500])


def normalised(text: Any) -> str:
    """A message without numbers, names of values and places."""
    result = str(text)
    for pattern, by in _REPLACED:
        result = pattern.sub(by, result)
    return result.strip()

"""The one exception of the simulator, located in the PTX text and in the user's source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Where:
    """A place in PTX text (1-based line and column) and, through `.loc`, in the source."""

    line: int
    column: int
    source: str | None = None

    def __str__(self) -> str:
        text = f"ptx:{self.line}:{self.column}"
        return f"{text} ({self.source})" if self.source else text


class SimError(Exception):
    """PTX that cannot be read, decoded or executed, or that did something illegal.

    `kind` is a stable short name (`syntax`, `unknown-instruction`, `out-of-bounds`,
    `misaligned`, `uninitialised`, `deadlock`, `trap`, `launch`, ...); `where` is the place in the
    PTX text, or None where there is none (a wrong launch argument). `printed` is what the launch
    had printed until then. `address` is the one that was wrong, `block` the tile block (x, y, z)
    of the first thread that had it, `entry` the kernel; None where it is not known.
    """

    def __init__(self, kind: str, message: str, where: Where | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.where = where
        self.printed = ""
        self.address: int | None = None
        self.block: tuple[int, int, int] | None = None
        self.entry: str | None = None

    def at(self, where: Where | None) -> SimError:
        """Add the place unless an inner frame knew better."""
        if self.where is None:
            self.where = where
        return self

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.kind}: {self.message}"

"""Remarks as `tileiras` gives them: chosen by kind and category, on the screen or as YAML.

`tileiras` has the categories "memory" and "tensorcore"; ours of others (layouts, schedules, ...)
come with "all".
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tile_core.cli.output import write_file
from tile_core.remarks import as_listing, as_yaml

if TYPE_CHECKING:
    from tile_core.remarks import Remark
    from tile_dropin.command_line import Given

_DEFAULT_FILE = "tileir_remarks.yaml"
#: Kind of remark -> the option that chooses its category.
_KINDS = {
    "passed": "remarks-passed",
    "missed": "remarks-missed",
    "failed": "remarks-failed",
    "analysis": "remarks-analysis",
    "warning": "remarks-analysis",
}


@dataclass(frozen=True)
class RemarkOutput:
    """Which remarks are wanted and where they go; `file` is None for the screen, or for none."""

    wanted: dict[str, str]  # kind -> "all", "memory", "tensorcore"
    file: str | None

    @classmethod
    def of(cls, given: Given) -> Self:
        """What a command line asks for; an option of one kind counts more than `--remarks`."""
        wanted: dict[str, str] = {}
        for kind, option in _KINDS.items():
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
            write_file(self.file, as_yaml(chosen))
        else:
            sys.stdout.write(as_listing(chosen))

    def _wants(self, remark: Remark) -> bool:
        choice = self.wanted.get(remark.kind)
        return choice == "all" or (choice is not None and choice == remark.category)

"""What the options of `tilec compile` that make a run visible mean for kernels of a program."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_core.cli.observe import Observers, observers

if TYPE_CHECKING:
    from tile_core.artifact import Artifact


@dataclass(frozen=True)
class OneRun:
    """What watches one compilation, and the stage that is printed after it."""

    observers: Observers
    emit: str | None

    def report(self, artifact: Artifact) -> None:
        """Print and write what was asked for."""
        self.observers.report(artifact)
        if self.emit is not None:
            text = artifact.stage(self.emit)
            sys.stderr.write(text if isinstance(text, str) else repr(text))


class Watch:
    """Makes what watches each compilation; several have a folder each below `--dump-dir`."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._count = 0

    def of(self, source: str) -> OneRun:
        """For the compilation of one file."""
        del source
        return OneRun(observers(self._given), self._given["emit"])

    def next(self, name: str) -> OneRun:
        """For the next kernel of a program."""
        values = dict(self._given)
        if values["dump_dir"] is not None:
            plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
            values["dump_dir"] = Path(values["dump_dir"]) / f"{self._count}-{plain}"
        self._count += 1
        return OneRun(observers(values), values["emit"])

"""Reproducers of the compiler's own mistakes, written without being asked for.

A compilation is deterministic, so that the second run, with a reproducer watching, fails as the
first one did; no run pays for it that does not fail.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tile_core.cli.output import write_file
from tile_core.diagnostics import TileError

#: Environment variable: the folder of reproducers, or "off".
VARIABLE = "TILEC_REPRODUCERS"
_INTERNAL = "internal error in "


def is_internal(error: TileError) -> bool:
    """Whether an error is a mistake of the compiler or a plugin (`tile_core.blame`)."""
    return error.message.startswith(_INTERNAL)


def explained(
    error: TileError, again: Callable[[Any, Callable[[str, Any], None]], object], data: bytes
) -> TileError:
    """`error` with a note on the file that replays it, where one could be written.

    Args:
        again: does the work once more, with a further instrumentation and a receiver of stages.
        data: the program, which gives the file its name.
    """
    if not is_internal(error) or os.environ.get(VARIABLE) == "off":
        return error
    try:
        path = _folder() / f"{hashlib.sha256(data).hexdigest()[:12]}.mlir"
        return error.noted(_replay(again, path))
    except Exception as problem:  # the first error is the one to tell
        return error.noted(f"no reproducer could be written: {problem}")


def _folder() -> Path:
    wanted = os.environ.get(VARIABLE)
    folder = Path(wanted or Path(tempfile.gettempdir()) / f"tilec-reproducers-{os.getuid()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _replay(again: Callable[[Any, Callable[[str, Any], None]], object], path: Path) -> str:
    """Fail again; the command that replays it."""
    from tile_core.pipeline.reproducer import Reproducer

    stages: list[tuple[str, Any]] = []
    try:
        again(Reproducer(path), lambda kind, product: stages.append((kind, product)))
    except TileError:
        if path.exists():
            return f"reproducer: tilec opt --run-reproducer {path}"
        if stages:
            kind, product = stages[-1]
            file = path.with_suffix(f".{kind}")
            write_file(str(file), product)
            return f"reproducer: tilec compile {file} --start-at {kind} with the same options"
    raise RuntimeError("the error did not come again")

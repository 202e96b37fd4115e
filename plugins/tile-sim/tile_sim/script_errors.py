"""What a cuTile program did wrong, told by the program's own lines."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from tile_core.diagnostics import SourceLocation, TileError

#: Frames of the program that are named, from the one that raised outwards.
_SHOWN = 3
_FRONT_END = "cuda.tile"


def error_of_script(script: str, error: Exception) -> TileError:
    """The error of a program that ended with `error`, which the caller raises it from.

    It leads with the line of the kernel that cuTile's front end names, or the program's innermost
    frame. Frames of cuTile and of the simulator are left out: `--traceback` shows them.
    """
    frames = _own_frames(script, error)
    calls = tuple(f"called from {place}" for place in frames[1 : 1 + _SHOWN])
    module = type(error).__module__
    places = _places(error) if module.startswith(_FRONT_END) else []
    if places:
        message = str(getattr(error, "message", error)).partition("\n")[0]
        launched = tuple(f"launched from {frame}" for frame in frames[:1])
        inlined = tuple(f"inlined at {site}" for site in places[1 : 1 + _SHOWN])
        return TileError(
            f"{type(error).__name__}: {message}", where=places[0], notes=inlined + launched
        )
    message, *rest = str(error).splitlines() or [""]
    about = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return TileError(
        f"'{script}' raised {about}",
        where=frames[0] if frames else None,
        notes=(*rest[:_SHOWN], *calls),
    )


def _own_frames(script: str, error: BaseException) -> list[SourceLocation]:
    """Frames in the folder of the program, the innermost first."""
    folder = Path(script).resolve().parent
    found = [
        SourceLocation(frame.filename, frame.lineno or 0, (frame.colno or 0) + 1)
        for frame in traceback.extract_tb(error.__traceback__)
        if _is_in(Path(frame.filename), folder)
    ]
    return found[::-1]


def _is_in(file: Path, folder: Path) -> bool:
    """Whether `file`, which may be the name of what is none, such as "<string>", is in `folder`."""
    resolved = file.resolve()
    is_own = resolved.is_relative_to(folder) and "site-packages" not in resolved.parts
    return is_own and file.is_file()


def _places(error: Exception) -> list[SourceLocation]:
    """The line that cuTile blames, and where the functions that it inlined were called from, the
    innermost first; lines of cuTile itself only where there are no others.
    """
    found: list[SourceLocation] = []
    place: Any = getattr(error, "loc", None)
    while place is not None and getattr(place, "filename", None):
        found.append(SourceLocation(place.filename, place.line, place.col))
        place = getattr(place, "call_site", None)
    front_end = sys.modules.get(_FRONT_END)
    folder = Path(getattr(front_end, "__file__", None) or _FRONT_END).resolve().parent
    return [p for p in found if not Path(p.file).resolve().is_relative_to(folder)] or found

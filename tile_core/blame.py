"""Whose mistake an exception is: the plugin whose code raised it."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING

from tile_core.diagnostics import CompileError, TileError

if TYPE_CHECKING:
    from tile_core.plugins import Plugin
    from tile_core.registry import Registry

#: Environment variable that asks for Python tracebacks of internal errors.
TRACEBACK = "TILEC_TRACEBACK"
#: Frames of the plugin that are named beside the one that raised.
_FRAMES = 3


_MISTAKE = "internal error in"


def internal_error(
    what: str,
    error: Exception,
    registry: Registry,
    *,
    owner: Plugin | str,
    kind: type[TileError] = CompileError,
    notes: tuple[str, ...] = (),
    hint: str = "",
) -> TileError:
    """An error of ours for one that nobody expected. The caller raises it `from error`.

    Args:
        what: where it came up, e.g. "pass 'tileas-slicing'".
        owner: who is to blame when no frame of the traceback belongs to a plugin.
        hint: what else can be done.
    """
    frames = list(_frames(error))
    mine = [(frame, line, plugin) for frame, line in frames if (plugin := _owner(frame, registry))]
    reason, *more = str(error).strip().splitlines() or [""]
    place: list[str] = []
    if mine:
        owner = mine[-1][2]
        own = [(frame, line) for frame, line, plugin in mine if plugin == owner][::-1]
        place = [f"raised in {_spelled(*own[0])}"]
        place += [f"called from {_spelled(*frame)}" for frame in own[1 : 1 + _FRAMES]]
    if error.__cause__ is not None:
        place.append(f"caused by {type(error.__cause__).__name__}: {error.__cause__}")
    return kind(
        f"{_MISTAKE} {what}: {type(error).__name__}" + (f": {reason}" if reason else ""),
        notes=(*more, *place, *notes),
        hint=f"this is a mistake in {owner}{hint}; --traceback shows where",
    )


def is_mistake(error: TileError) -> bool:
    """Whether an error is one that `internal_error` made."""
    return error.message.startswith(_MISTAKE)


def _spelled(frame: FrameType, line: int) -> str:
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}, line {line}"


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """Frames of the traceback and lines in them, the innermost last."""
    found: list[tuple[FrameType, int]] = []
    step = error.__traceback__
    while step is not None:
        found.append((step.tb_frame, step.tb_lineno))
        step = step.tb_next
    return found


def _owner(frame: FrameType, registry: Registry) -> Plugin | None:
    """The plugin whose package a frame's code is in; none for the framework's own."""
    module = str(frame.f_globals.get("__name__", ""))
    return registry.plugin_of_package(module.partition(".")[0])

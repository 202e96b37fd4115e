"""The framework of tilec: plugins, passes, pipelines. It knows no dialect."""

from __future__ import annotations

TYPE_CHECKING = False  # without `typing`, which a served command can do without
if TYPE_CHECKING:
    from typing import Any

    from tile_core.api import compile, plan_for  # noqa: A004 - the verb of the field
    from tile_core.artifact import Artifact
    from tile_core.diagnostics import TileError

__all__ = ["Artifact", "TileError", "compile", "plan_for"]

_HOMES = {
    "Artifact": "tile_core.artifact",
    "TileError": "tile_core.diagnostics",
    "compile": "tile_core.api",
    "plan_for": "tile_core.api",
}


def __getattr__(name: str) -> Any:
    # Resolved late, so that `import tile_core.anything` stays cheap.
    if name not in _HOMES:
        raise AttributeError(f"module 'tile_core' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)

"""What can go wrong while a program runs."""

from __future__ import annotations

from tile_core.diagnostics import TileError


class EvaluationError(TileError):
    """The program did something that the language leaves undefined, or cannot be run as asked."""

"""Rules of types."""

from __future__ import annotations

from tile_cudatile.types import Type


def check_type(type_: Type) -> None:
    """Raises `BytecodeError` if the parameters of a type break a rule."""

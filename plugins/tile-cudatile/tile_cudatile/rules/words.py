"""How types and shapes are written in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tile_cudatile.types import Function, Scalar, Type


def long(type_: Type) -> str:
    """A type with the dialect's prefix."""
    if isinstance(type_, Function):
        inputs, results = (", ".join(map(long, types)) for types in (type_.inputs, type_.results))
        return f"({inputs}) -> {results if len(type_.results) == 1 else f'({results})'}"
    return str(type_) if isinstance(type_, Scalar) else f"!cuda_tile.{type_}"


def quote(type_: Type) -> str:
    """A type as diagnostics show it."""
    return f"'{long(type_)}'"


def quote_all(types: Iterable[Type]) -> str:
    """Types, separated by commas."""
    return ", ".join(map(quote, types))


def dims(shape: Sequence[int]) -> str:
    """A shape."""
    return ", ".join(map(str, shape))

"""Operation name -> the function that evaluates it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Handlers get the running block, the operation, and one argument per operand group: a value,
#: None, or a tuple. They return the result, or a tuple of results, or None.
HANDLERS: dict[str, Callable[..., Any]] = {}


def handles(*names: str) -> Callable[[F], F]:
    """Registers the decorated function for the operations of these names."""

    def register(function: F) -> F:
        for name in names:
            assert name not in HANDLERS, name
            HANDLERS[name] = function
        return function

    return register

"""Rules of single operations, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

from tile_cudatile.tree import Op, Value
from tile_cudatile.types import Scalar, Tile

#: Gives what is wrong, in the order in which it is found; the first counts. A text that starts
#: with `!` goes without the operation's name in front.
Rule: TypeAlias = Callable[[Op], Iterator[str]]
R = TypeVar("R", bound=Rule)

RULES: dict[str, list[Rule]] = {}
#: Rules that look at the inside, checked after the operations there.
REGION_RULES: dict[str, list[Rule]] = {}


def rule(*names: str) -> Callable[[R], R]:
    """Registers a rule of the operations of these names."""

    def register(function: R) -> R:
        for name in names:
            RULES.setdefault(name, []).append(function)
        return function

    return register


def region_rule(*names: str) -> Callable[[R], R]:
    """Registers a rule about the regions of these operations."""

    def register(function: R) -> R:
        for name in names:
            REGION_RULES.setdefault(name, []).append(function)
        return function

    return register


def tile_of(op: Op, name: str) -> Tile:
    """The tile type of an operand or result."""
    index = op.spec.operand_index.get(name)
    value = op.results[op.spec.result_index[name]] if index is None else op.operands[index]
    assert isinstance(value, Value)
    assert isinstance(value.type, Tile)
    return value.type


def number_of(op: Op, name: str) -> Scalar:
    """The element type of an operand or result that is a tile of numbers."""
    element = tile_of(op, name).element
    assert isinstance(element, Scalar)
    return element

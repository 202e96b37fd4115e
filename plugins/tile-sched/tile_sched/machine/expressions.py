"""Times as expressions: "pipes.alu.latency + elements / (32 * pipes.alu.rate)".

Names with a dot are numbers of a machine file (`tile_core.machines`), names without are measures
of the operation. Nothing else is known, so a file can compute, but do nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import ceil
from typing import Any

#: What a tile operation is measured by: bytes that move, elements of its result, multiply-adds,
#: instructions per element (1 where its class fits as it is), and warps of its block.
MEASURES = ("bytes", "elements", "products", "scale", "warps")

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
_CALLS: dict[str, Callable[..., float]] = {"max": max, "min": min, "ceil": ceil}


def parse(text: str | int | float) -> ast.expr:
    """The expression of a time.

    Raises:
        ValueError: it is not one, or it names something that cannot be there.
    """
    if isinstance(text, (int, float)):
        return ast.Constant(text)
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"'{text}' is no expression") from error
    for node in _nodes(tree):
        if isinstance(node, ast.Name) and node.id not in MEASURES:
            raise ValueError(f"'{node.id}' in '{text}' is none of {', '.join(MEASURES)}")
    return tree


def value(tree: ast.expr, machine: Any, work: Mapping[str, float]) -> float:
    """The value of an expression, in cycles.

    Raises:
        ValueError: the machine lacks a number it names, or it divides by zero.
    """
    match tree:
        case ast.Constant():
            return float(tree.value)  # pyright: ignore[reportArgumentType]
        case ast.Name():
            return float(work.get(tree.id, 1 if tree.id == "scale" else 0))
        case ast.Attribute():
            return _number(machine, _path(tree))
        case ast.Call(func=ast.Name(id=name)):
            return _CALLS[name](*(value(argument, machine, work) for argument in tree.args))
        case ast.BinOp():
            left, right = value(tree.left, machine, work), value(tree.right, machine, work)
            if isinstance(tree.op, ast.Div) and not right:
                raise ValueError(f"'{ast.unparse(tree)}' divides by 0")
            return _BINARY[type(tree.op)](left, right)
    raise ValueError(f"'{ast.unparse(tree)}' is no time")


def _nodes(tree: ast.expr) -> list[ast.expr]:
    """The parts of an expression that need a look."""
    match tree:
        case ast.BinOp() if type(tree.op) in _BINARY:
            return [tree, *_nodes(tree.left), *_nodes(tree.right)]
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS and not tree.keywords:
            return [tree, *(node for argument in tree.args for node in _nodes(argument))]
        case ast.Attribute() | ast.Name():
            return [tree]
        case ast.Constant(value=int() | float()):
            return [tree]
    raise ValueError(f"'{ast.unparse(tree)}' is more than numbers, names, + - * / max min ceil")


@lru_cache(maxsize=1024)
def _path(tree: ast.Attribute) -> str:
    """ "dram.latency": machine tables, and so their trees, are kept."""
    return ast.unparse(tree)


def _number(machine: Any, path: str) -> float:
    found = machine
    for part in path.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, (int, float)):
        raise ValueError(f"the machine has no number '{path}'")
    return float(found)

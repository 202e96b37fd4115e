"""Attributes of operations, and what they stand in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_core.mlir import ir
from tile_cute.errors import LayoutError

ASYNC_EXEC = "cutlass.async_exec"
#: Warps of a block at most.
MOST_WARPS = 32


def integer(op: ir.OpView | ir.Operation, name: str, default: int | None = None) -> int:
    """An integer attribute; LayoutError where it is missing and has no default."""
    attributes = op.operation.attributes
    if name not in attributes:
        if default is None:
            raise LayoutError(f"expects the integer attribute '{name}'")
        return default
    found = attributes[name]
    if not isinstance(found, ir.IntegerAttr):
        raise LayoutError(f"expects '{name}' to be an integer, but got {found}")
    return found.value


def flag(op: ir.OpView | ir.Operation, name: str) -> bool:
    """A boolean or unit attribute."""
    attributes = op.operation.attributes
    if name not in attributes:
        return False
    found = attributes[name]
    return found.value if isinstance(found, ir.BoolAttr) else True


def word(op: ir.OpView | ir.Operation, name: str, known: tuple[str, ...], default: str = "") -> str:
    """A string attribute that is one of `known`."""
    attributes = op.operation.attributes
    found: Any = attributes.get(name, None)
    value = found.value if isinstance(found, ir.StringAttr) else default
    if value not in known:
        raise LayoutError(f"expects '{name}' to be one of {', '.join(known)}, but got '{value}'")
    return value


def integers(op: ir.OpView | ir.Operation, name: str) -> tuple[int, ...]:
    """An array of integers."""
    attributes = op.operation.attributes
    found = attributes.get(name, None)
    if isinstance(found, ir.DenseI32ArrayAttr | ir.DenseI64ArrayAttr):
        return tuple(found)
    raise LayoutError(f"expects '{name}' to be an array of integers, but got {found}")


def parents(op: ir.OpView | ir.Operation) -> Iterator[ir.Operation]:
    """What an operation stands in, from inside out."""
    parent = op.operation.parent
    while parent is not None:
        yield parent.operation
        parent = parent.operation.parent


def kernel_spec(op: ir.OpView | ir.Operation) -> dict[str, int]:
    """Warps and blocks that the kernel is launched with, where it says so."""
    for parent in parents(op):
        if "nv_tileaa.kernel_spec" in parent.attributes:
            spec = ir.DictAttr(parent.attributes["nv_tileaa.kernel_spec"])
            return {
                item.name: ir.IntegerAttr(item.attr).value
                for item in spec
                if isinstance(item.attr, ir.IntegerAttr)
            }
    return {}


def enclosing_mask(op: ir.OpView | ir.Operation) -> int | None:
    """A bit for each warp that comes to an operation; None where nobody says."""
    for parent in parents(op):
        if parent.name == ASYNC_EXEC and "mask" in parent.attributes:
            return integer(parent, "mask")
    warps = kernel_spec(op).get("num_warps")
    return None if warps is None else (1 << warps) - 1


def constant(value: ir.Value) -> int | None:
    """The number that `arith.constant` makes."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    found = owner.operation.attributes["value"]
    return found.value if isinstance(found, ir.IntegerAttr) else None

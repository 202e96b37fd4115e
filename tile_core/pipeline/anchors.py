"""Finding the operations that passes run on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.diagnostics import ConfigurationError

if TYPE_CHECKING:
    from tile_core.mlir import ir


def anchors(root: ir.Operation, nest: Sequence[str]) -> list[ir.Operation]:
    """The operations that `nest` leads to from `root`, in program order.

    Each step of `nest` names operations directly inside the last; after "*" they may lie at any
    depth, but not inside one another.

    Raises:
        ConfigurationError: a found operation is not isolated from above.
    """
    found = [root]
    deep = False
    for name in nest:
        if name == "*":
            deep = True
            continue
        found = [inner for op in found for inner in _inside(op, name, deep)]
        deep = False
    for op in found[:1]:
        _check_isolated(op, root)
    return found


def _inside(op: ir.Operation, name: str, deep: bool) -> list[ir.Operation]:
    found: list[ir.Operation] = []
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                if inner.name == name:
                    found.append(inner)
                elif deep:
                    found += _inside(inner, name, deep)
    return found


def _check_isolated(op: ir.Operation, root: ir.Operation) -> None:
    from tile_core.mlir import ir
    from tile_core.mlir_substitutes import is_isolated

    if op == root or is_isolated(op, ir.IsIsolatedFromAboveTrait):
        return
    raise ConfigurationError(
        f"nested pipeline anchor must be IsolatedFromAbove, and '{op.name}' is not"
    )


def symbol(op: ir.Operation) -> str:
    """The symbol name of `op`, or ""."""
    if "sym_name" not in op.attributes:
        return ""
    return str(op.attributes["sym_name"]).strip('"')

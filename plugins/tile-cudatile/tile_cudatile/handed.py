"""The tree of a program that its reader hands to the first pass that works on one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tile_cudatile.tree import Module

if TYPE_CHECKING:
    from tile_core.mlir import ir
    from tile_core.passes import PassContext


class Handed:
    """A tree that may be taken once: who takes it changes it."""

    name: ClassVar[str] = "cuda-tile-tree"

    def __init__(self, tree: Module) -> None:
        self._tree: Module | None = tree

    def take(self) -> Module | None:
        """The tree; None if somebody has it."""
        tree, self._tree = self._tree, None
        return tree


def tree_of(program: ir.Operation, cx: PassContext) -> Module:
    """The tree of a `cuda_tile.module`, to be changed: its reader's where that is still true."""
    handed = cx.accepted(Handed.name, program)
    tree = None if handed is None else handed.take()
    if tree is not None:
        return tree
    from tile_cudatile.dialect.read import from_mlir

    return from_mlir(program)

"""Where the kernel makes a tensor map itself: in the block that gives the last of its numbers.

A map of a block that runs again is rewritten each time: all copies by it must be over then. So it
is made for copies of loops inside of that block alone, which wait for what they began, and of which
many share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tile_core.mlir import ir

_LOOPS = ("scf.for", "scf.while")


def home_of(values: Iterable[ir.Value]) -> ir.Block:
    """The innermost block that gives one of the numbers of a map, of which its address is one."""
    blocks = [
        value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
        for value in values
    ]
    return max(blocks, key=lambda block: sum(1 for _ in _around(block)))


def is_in_loop_of(op: ir.OpView | ir.Operation, home: ir.Block) -> bool:
    """Whether a loop that stands in `home`, or further inside, runs `op`."""
    for holder in _around(op.operation.block):
        if _holds(holder, home):
            return False
        if holder.name in _LOOPS:
            return True
    return False


def names_around(home: ir.Block) -> list[str]:
    """What holds a block, inner operations first."""
    return [holder.name for holder in _around(home)]


def holder_in(home: ir.Block, op: ir.OpView | ir.Operation) -> ir.Operation:
    """The operation of `home` that is `op`, or that `op` stands in."""
    if op.operation.block == home:
        return op.operation
    return next(one for one in _around(op.operation.block) if one.block == home)


def _holds(holder: ir.Operation, block: ir.Block) -> bool:
    return any(block == one for region in holder.regions for one in region.blocks)


def _around(block: ir.Block) -> Iterator[ir.Operation]:
    """The operations that hold a block, inner ones first, the function last."""
    holder = block.owner.operation
    while True:
        yield holder
        if holder.name == "func.func":
            return
        parent = holder.parent
        assert parent is not None, "inside of a function"
        holder = parent.operation

"""Sums of tcgen05 in tensor memory of which loops use parts: read once more, or written over."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.dialect.barriers import LEADER
from tile_tileas.dialect.staging import FEW
from tile_tileas.dialect.tensor import ORDERED, UMMA
from tile_tileas.dot_plan import OVER
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.writer import Writer

_DOT, _VIEW = "nv_tileas.dot", "nv_tileas.tmem_view"
_WAIT, _ARRIVE = "nv_tileas.barrier_wait", "nv_tileas.barrier_arrive"


def lay_over(at: Writer, sums: ir.Value, loop: ir.Operation) -> None:
    """Give a buffer that says so (`OVER`) the columns of `sums`. What the loop does to both is in
    order by what it waits for.
    """
    block = loop.regions[0].blocks[0]
    read = [op.operation.operands[0] for op in block.operations if op.operation.name in UMMA]
    read += [op.operation.operands[0] for op in block.operations if op.operation.name == _DOT]
    for value in read:
        made = value.owner
        if not isinstance(made, ir.Block) and OVER in made.attributes:
            assert not isinstance(sums.owner, ir.Block), "allocated just now"
            sums.owner.attributes[ORDERED] = ir.UnitAttr.get()
            same = at.create("nv_tileas.tmem_columns", [sums], [value.type]).result
            value.replace_all_uses_with(same)
            made.erase()
            return


def follows_product(op: ir.OpView) -> bool:
    """Whether one thread begins another product in front of it, and no thread does anything else
    between: whoever that one has waited for is where this one may begin, too.
    """
    ops = [before.operation for before in op.operation.block.operations]
    for before in reversed(ops[: ops.index(op.operation)]):
        if before.name in UMMA:
            return True
        waits = before.name == _WAIT and LEADER in before.attributes
        commits = before.name == _ARRIVE and _is_by_products(before)
        if not (waits or commits or is_pure(before.opview)):
            return False
    return False


def _is_by_products(op: ir.Operation) -> bool:
    """Whether products arrive, and no thread."""
    return ir.StringAttr(op.attributes["kind"]).value == "tcgen05"


def few_of(wait: ir.Operation) -> int:
    """Registers that are read at a time of what is waited for; 0 if all at once."""
    return ir.IntegerAttr(wait.attributes[FEW]).value if FEW in wait.attributes else 0

"""Sums of tcgen05 in tensor memory of which loops use parts: read once more, or written over."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.dialect.barriers import LEADER
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.staging import FEW
from tile_tileas.dialect.tensor import ORDERED, UMMA
from tile_tileas.dot_plan import BEGINS, OVER, tensor_plan_of
from tile_tileas.pipelining.sliced import columns_of
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


def read_parts(at: Writer, sums: ir.Value, wait: ir.Operation) -> None:
    """Read parts of a sum again, for what has been waited for before: of as many columns each, in
    place of slices of the whole.
    """
    for part in [use.owner.operation for use in wait.results[0].uses]:
        width = part.results[0].type.shape[-1]
        number = splat_integer(part.operands[len(part.operands) - 1])
        assert number is not None, "made so"
        whole = Buffer.of(sums.type)
        assert whole is not None
        assert whole.layout is not None, "buffers in tensor memory are made with their layouts"
        some = columns_of(whole, width)
        assert some is not None, "asked before"
        at.move(ir.InsertionPoint(part))
        column = at.constant(number * some.layout.in_size("column"))  # type: ignore[union-attr]
        buffer = at.create(_VIEW, [sums, column], [some.type]).result
        part.results[0].replace_all_uses_with(at.read(buffer, part.results[0].type))
        part.erase()
    wait.erase()


def parts_of(op: ir.OpView, warps: int) -> list[tuple[ir.InsertionPoint, tuple[int, int] | None]]:
    """Where which steps along K of a product begin: those that read what is stored first
    (`BEGINS`) behind that, the others where it stands. None: all of them.
    """
    stored = [
        other
        for use in op.operands[0].uses
        for view in [use.owner.operation]
        if view.name == _VIEW
        for other in [one.owner.operation for one in view.results[0].uses]
        if BEGINS in other.attributes
    ]
    if not stored:
        return [(ir.InsertionPoint(op), None)]
    steps = tensor_plan_of(op, warps).counts[2]
    behind = ir.InsertionPoint.after(stored[0])
    return [(behind, (0, steps // 2)), (ir.InsertionPoint(op), (steps // 2, steps))]


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

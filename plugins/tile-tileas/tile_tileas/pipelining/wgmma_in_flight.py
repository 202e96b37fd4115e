"""Products of warpgroups that stay in flight from one iteration of a loop to the next.

    for i:
        stage i mod S is there; stage (i-2) mod S is filled anew
        begin the product of stage i
        wait until that of iteration i-1 is done
    wait for the last one

Tensor cores have work while threads meet and copies are begun. The accumulator is not touched in
between: it is carried by the loop and nothing else. A stage is read one iteration longer than
otherwise, so that copies run one less ahead (`Multistage` with `in_flight` of 1).
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_tileas.dialect.buffers import BufferType
from tile_tileas.dot_plan import IN_FLIGHT, PROMOTES, family_of
from tile_tileas.mma.warpgroup import FAMILY
from tile_tileas.pipelining.writer import Writer

#: Iterations whose products may be in flight while the next one begins.
LAG = 1
_VIEWS = ("nv_tileas.buffer_view", "nv_tileas.buffer_reinterpret")


def products_to_keep(loop: ir.OpView, filled: Sequence[ir.Value]) -> list[ir.OpView]:
    """The products of `loop` that may stay in flight; `filled` are buffers that it fills ahead.

    Those whose accumulator the loop carries from one to the next and gives to nobody else, and
    whose operands lie in buffers that are filled ahead, or before the loop.
    """
    block = loop.regions[0].blocks[0]
    found = [op for op in block.operations if op.operation.name == "nv_tileas.dot"]
    return [op for op in found if _may_stay(op, block, filled)]


def _may_stay(op: ir.OpView, block: ir.Block, filled: Sequence[ir.Value]) -> bool:
    if family_of(op) != FAMILY or PROMOTES in op.attributes:
        return False
    operands = list(op.operands)[:2]
    return _is_carried(op, block) and all(_stays(value, block, filled) for value in operands)


def _is_carried(op: ir.OpView, block: ir.Block) -> bool:
    """Whether the accumulator comes from the iteration before and goes to the next one only."""
    before, after = op.operands[2], op.results[0]
    if not isinstance(before.owner, ir.Block) or before.owner != block:
        return False
    uses, ends = list(before.uses), list(after.uses)
    if len(uses) != 1 or len(ends) != 1:
        return False
    end = block.operations[len(block.operations) - 1]
    place = ir.BlockArgument(before).arg_number - 1  # behind the induction variable
    return ends[0].owner.operation == end.operation and ends[0].operand_number == place


def _stays(value: ir.Value, block: ir.Block, filled: Sequence[ir.Value]) -> bool:
    """Whether nobody writes the buffer before the next iteration's product has begun."""
    if not isinstance(value.type, BufferType):
        return False
    while not isinstance(value.owner, ir.Block) and value.owner.name in _VIEWS:
        value = value.owner.operands[0]
    if any(value == buffer for buffer in filled):
        return True
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.block != block


def keep_in_flight(loop: ir.Operation, products: Sequence[ir.OpView]) -> None:
    """Begin `products` of the loop without waiting for them; wait for those of the iteration
    before behind the last one, and for all behind the loop.

    The loop goes under a branch that is taken if it has an iteration, and the last wait with it:
    where accumulators come together that products in flight write and others that were set, ptxas
    would let no products overlap at all (its remark C7515).
    """
    for op in products:
        op.attributes[IN_FLIGHT] = ir.UnitAttr.get()
    at = Writer(loop.location)
    at.move(ir.InsertionPoint.after(products[-1]))
    pending = ir.IntegerAttr.get(at.i32, LAG * len(products))
    groups = {"pending": pending, "group": ir.StringAttr.get(FAMILY)}
    at.create("nv_tileas.async_wait", [], [], groups)
    at.move(ir.InsertionPoint(loop))
    lower, upper = list(loop.operands)[:2]
    runs = at.is_less(at.wide(lower), at.wide(upper))
    types = [result.type for result in loop.results]
    branch = at.create("scf.if", [runs], types, regions=2)
    for result, outer in zip(loop.results, branch.results, strict=True):
        result.replace_all_uses_with(outer)
    results = _under(at, loop, branch.regions[0].blocks.append(), _places(products))
    at.create("scf.yield", results)
    at.move(ir.InsertionPoint(branch.regions[1].blocks.append()))
    at.create("scf.yield", list(loop.operands)[3:])


def _under(
    at: Writer, loop: ir.Operation, block: ir.Block, places: Sequence[int]
) -> list[ir.Value]:
    """Move the loop into `block`, and wait behind it for the results at `places`; its results."""
    at.move(ir.InsertionPoint(block))
    at.place.insert(loop.detach_from_parent())
    results: list[ir.Value] = list(loop.results)
    for place in places:
        value = results[place]
        results[place] = at.create("nv_tileas.dot_wait", [value], [value.type]).result
    return results


def _places(products: Sequence[ir.OpView]) -> list[int]:
    """Which results of the loop the accumulators are."""
    return [ir.BlockArgument(op.operands[2]).arg_number - 1 for op in products]

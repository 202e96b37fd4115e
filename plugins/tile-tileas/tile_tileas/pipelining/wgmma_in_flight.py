"""Products of warpgroups that stay in flight from one iteration of a loop to the next.

    for i:
        stage i mod S is there; stage (i-2) mod S is filled anew
        begin the product of stage i
        wait until that of iteration i-1 is done
    wait for the last one

Tensor cores have work while threads meet and copies are begun. The accumulator is not touched in
between: it is carried by the loop and nothing else. A stage is read one iteration longer than
otherwise, so that copies run one less ahead (`Multistage` with `in_flight` of 1). Where warps
release stages, that of iteration i-1 is filled anew behind the wait for it, and copies run no less
ahead.

Where the next iteration works on the accumulator before it adds to it, as attention does, an
earlier product of that iteration that is waited for is waited for by both:

    for i:
        stage i mod S is there; stage (i-2) mod S is filled anew
        s = the product of stage i, waited for: that of iteration i-1 is done, too
        p, scaled accumulator = ..
        begin accumulator + p v
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.dialect.buffers import BufferType
from tile_tileas.dot_plan import DONE, IN_FLIGHT, PROMOTES, family_of
from tile_tileas.mma.families import WARPGROUP as FAMILY
from tile_tileas.pipelining.carrying import under_branch
from tile_tileas.pipelining.writer import Writer

#: Iterations whose products may be in flight while the next one begins.
LAG = 1
_DOT = "nv_tileas.dot"
#: What names stages of a buffer, or parts of it.
VIEWS = ("nv_tileas.buffer_view", "nv_tileas.buffer_reinterpret")


@dataclass(frozen=True)
class Kept:
    """A product that may stay in flight; its accumulator is carried at `place`.

    `meeting` is the product of the next iteration behind which this one is done; None where the
    accumulator is only added to.
    """

    op: ir.OpView
    place: int
    meeting: ir.OpView | None


def products_to_keep(loop: ir.OpView, filled: Sequence[ir.Value]) -> list[Kept]:
    """The products of `loop` that may stay in flight; `filled` are buffers that it fills ahead.

    Those whose result the loop hands to the next iteration and to nobody else, and whose operands
    lie in buffers that are filled ahead, or before the loop.
    """
    block = loop.regions[0].blocks[0]
    order = [op.operation for op in block.operations]
    found: list[Kept] = []
    for op in block.operations:
        if op.operation.name != _DOT or family_of(op) != FAMILY or PROMOTES in op.attributes:
            continue
        place = _handed_on(op, block)
        if place is None or not stays(op.operands[1], block, filled):
            continue
        argument = block.arguments[place + 1]  # behind the induction variable
        if op.operands[2] == argument and len(list(argument.uses)) == 1:
            if stays(op.operands[0], block, filled):
                found.append(Kept(op, place, None))
            continue
        meeting = _meeting(op, argument, block, order)
        if meeting is not None and (
            stays(op.operands[0], block, filled) or _comes_from(op.operands[0], meeting, block)
        ):
            found.append(Kept(op, place, meeting))
    waited = [kept.op.operation for kept in found]
    # What is in flight itself waits for nobody.
    return [k for k in found if k.meeting is None or k.meeting.operation not in waited]


def _handed_on(op: ir.OpView, block: ir.Block) -> int | None:
    """Which carried value the result is, if it is that and nothing else."""
    uses = list(op.results[0].uses)
    end = block.operations[len(block.operations) - 1]
    if len(uses) != 1 or uses[0].owner.operation != end.operation:
        return None
    return uses[0].operand_number


def _meeting(
    op: ir.OpView, argument: ir.Value, block: ir.Block, order: Sequence[ir.Operation]
) -> ir.OpView | None:
    """The first product of the block that is waited for, if all that works on the carried
    accumulator stands behind it.
    """
    for other in block.operations:
        if other.operation == op.operation:
            return None
        if other.operation.name == _DOT and family_of(other) == FAMILY:
            users = [use.owner.operation for use in argument.uses]
            inside = all(user in order for user in users)
            behind = order.index(other.operation)
            return other if inside and all(order.index(u) > behind for u in users) else None
    return None


def _comes_from(value: ir.Value, product: ir.OpView, block: ir.Block) -> bool:
    """Whether registers are computed from a product: then they are not written before it is
    done, wherever code generation moves what computes them.
    """
    pending, seen = [value], set()
    while pending:
        one = pending.pop()
        if one == product.results[0]:
            return True
        owner = one.owner
        if isinstance(owner, ir.Block) or owner.operation.block != block or one in seen:
            continue
        seen.add(one)
        pending += owner.operands
    return False


def stays(value: ir.Value, block: ir.Block, filled: Sequence[ir.Value]) -> bool:
    """Whether nobody writes the buffer before the next iteration's product has begun."""
    if not isinstance(value.type, BufferType):
        return False
    while not isinstance(value.owner, ir.Block) and value.owner.name in VIEWS:
        value = value.owner.operands[0]
    if any(value == buffer for buffer in filled):
        return True
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.block != block


def keep_in_flight(loop: ir.Operation, products: Sequence[Kept]) -> None:
    """Begin `products` of the loop without waiting for them; wait for those of the iteration
    before behind the last one, or where they meet, and for all behind the loop.

    The loop goes under a branch that is taken if it has an iteration, and the last wait with it:
    where accumulators come together that products in flight write and others that were set, ptxas
    would let no products overlap at all (its remark C7515).
    """
    at = Writer(loop.location)
    for kept in products:
        kept.op.attributes[IN_FLIGHT] = ir.UnitAttr.get()
        if kept.meeting is not None:
            argument = loop.regions[0].blocks[0].arguments[kept.place + 1]
            at.move(ir.InsertionPoint.after(kept.meeting))
            unit = {DONE: ir.UnitAttr.get()}
            done = at.create("nv_tileas.dot_wait", [argument], [argument.type], unit)
            argument.replace_all_uses_except(done.result, done)
    if any(kept.meeting is None for kept in products):
        at.move(ir.InsertionPoint.after(products[-1].op))
        pending = ir.IntegerAttr.get(at.i32, LAG * len(products))
        groups = {"pending": pending, "group": ir.StringAttr.get(FAMILY)}
        at.create("nv_tileas.async_wait", [], [], groups)
    _guard(at, loop, [kept.place for kept in products])


def _guard(at: Writer, loop: ir.Operation, places: Sequence[int]) -> None:
    """Put the loop under a branch, with waits for its results at `places`."""
    under_branch(loop)
    at.move(ir.InsertionPoint.after(loop))
    for place in places:
        value = loop.results[place]
        done = at.create("nv_tileas.dot_wait", [value], [value.type])
        value.replace_all_uses_except(done.result, done)

"""Products of warpgroups that are in flight within a step of a loop, until their results are used.

begin S; begin O            each is a group of its own
wait until one is left      S is there: what works on it runs beside O's product
..
wait until none is left     O is there
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.analysis.users import within
from tile_tileas.dialect.buffers import BufferType
from tile_tileas.dot_plan import DONE, IN_FLIGHT, PENDING, PROMOTES, family_of
from tile_tileas.mma.families import WARPGROUP as FAMILY
from tile_tileas.pipelining.slices import move_before, slice_of
from tile_tileas.pipelining.wgmma_in_flight import stays
from tile_tileas.pipelining.writer import Writer

_DOT = "nv_tileas.dot"
_BARRIER_WAIT = "nv_tileas.barrier_wait"


def may_fly(op: ir.OpView, filled: list[ir.Value]) -> bool:
    """Whether nobody writes what a product of warpgroups reads before its iteration ends; `filled`
    are buffers that the loop fills ahead.
    """
    if op.operation.name != _DOT or family_of(op) != FAMILY or PROMOTES in op.attributes:
        return False
    block = op.operation.block
    return all(
        not isinstance(value.type, BufferType) or stays(value, block, filled)
        for value in list(op.operands)[:2]
    )


def fly_within(loop: ir.Operation) -> int:
    """Let products of `loop` be in flight until their results are used; how many are."""
    block = loop.regions[0].blocks[0]
    order = [op.operation for op in block.operations]
    flying = [op for op in block.operations if may_fly(op, [])]
    awaited = sorted(
        (min(order.index(within(use.owner.operation, block)) for use in op.results[0].uses), at)
        for at, op in enumerate(flying)
        if any(True for _ in op.results[0].uses)
    )
    starts = [order.index(op.operation) for op in flying]
    done = -1  # products up to this one have been waited for
    at = Writer(loop.location)
    for place, number in awaited:
        op = flying[number]
        begun = max(other for other, start in enumerate(starts) if start < place)
        how = {DONE: ir.UnitAttr.get()} if number <= done else _pending(at, begun - number)
        op.attributes[IN_FLIGHT] = ir.UnitAttr.get()
        at.move(ir.InsertionPoint(order[place]))
        if done >= 0:
            _hold_back(at, loop, order[place])
        done = max(done, number)
        result = op.results[0]
        held = [] if isinstance(op.operands[0].type, BufferType) else [op.operands[0]]
        made = at.create("nv_tileas.dot_wait", [result, *held], [result.type], how)
        result.replace_all_uses_except(made.result, made)
    return len(awaited)


def _hold_back(at: Writer, loop: ir.Operation, place: ir.Operation) -> None:
    """Wait for the stages of the next step, if there is one, before what is written there.

    The next step's own waits then find the copies done. What this is for is the branch: ptxas moves
    waits for products up over arithmetic that does not need them (attention 128 x 128, depth 128
    on an H100: the wait for the second product went up into the row maximum), and over no branch.
    """
    block = loop.regions[0].blocks[0]
    yielded = list(block.operations)[-1].operands
    following = dict(zip(list(block.arguments)[1:], yielded, strict=True))
    waits = [op for op in block.operations if op.operation.name == _BARRIER_WAIT]
    waits = [op for op in waits if all(value in following for value in list(op.operands)[1:])]
    places = [following[value] for wait in waits for value in list(wait.operands)[1:]]
    stages = slice_of(places, loop.opview)
    if not waits or isinstance(stages, str):
        return
    move_before(place, stages.ops)
    upper, step = loop.operands[1:3]
    now = at.binary("addi", at.wide(block.arguments[0]), at.wide(step))

    def ahead() -> list[ir.Value]:
        for wait in waits:
            operands = [wait.operands[0], *(following[value] for value in list(wait.operands)[1:])]
            at.create(_BARRIER_WAIT, operands)
        return []

    at.choice(at.is_less(now, at.wide(upper)), ahead)


def _pending(at: Writer, groups: int) -> dict[str, ir.Attribute]:
    return {PENDING: ir.IntegerAttr.get(at.i32, groups)} if groups else {}

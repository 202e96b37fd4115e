"""Operands that threads make in each step, of products by tcgen05 that stay in flight.

    for i:
        threads store the operand in buffer i mod 2, and meet
        begin the product of step i
        wait for the product of step i-1

While the product of a step reads one buffer, threads make the operand of the next step in the
other one: the product of the step before that, which read it, has been waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_cute.atoms.records import SHARED
from tile_cute.atoms.records import TENSOR as TENSOR_SPACE

from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import together_with
from tile_tileas.analysis.buffers import ALLOC, stage_bytes
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import tensor_columns
from tile_tileas.dot_plan import family_of
from tile_tileas.mma.families import TENSOR
from tile_tileas.pipelining.carrying import carrying, hand_on
from tile_tileas.pipelining.loops import PRODUCT
from tile_tileas.pipelining.multistage import PIPELINED
from tile_tileas.pipelining.wgmma_in_flight import VIEWS, Kept
from tile_tileas.pipelining.writer import Writer

_COPY = "nv_tileas.copy"
_BUFFERS = 2
#: A and B come first among the operands of a product.
_MULTIPLIED = 2


def made_by_threads(loop: ir.OpView, filled: Sequence[ir.Value]) -> list[ir.OpView]:
    """Buffers that a loop allocates, that threads fill once in a step, and that only products of it
    by tcgen05 read; not those that loads fill ahead (`filled`).
    """
    body = loop.regions[0].blocks[0].operations
    return [
        op
        for op in body
        if op.operation.name == ALLOC and op.results[0] not in filled and _is_made(op)
    ]


def _is_made(alloc: ir.OpView) -> bool:
    buffer = Buffer.of(alloc.results[0].type)
    users = list(_users(alloc.results[0]))
    stores = [op for op in users if op.name == _COPY]
    reads = [op for op in users if op.name == PRODUCT and family_of(op) == TENSOR]
    here = all(op.block == alloc.operation.block for op in users)
    return (
        buffer is not None
        and buffer.space in (SHARED, TENSOR_SPACE)
        and len(stores) == 1
        and not len(stores[0].results)
        and bool(reads)
        and here
        and len(stores) + len(reads) == len(users)
    )


def read_by(made: Sequence[ir.OpView], products: Sequence[Kept]) -> list[ir.OpView]:
    """Those of `made` that `products` read, and no others."""
    kept = [op.operation for one in products for op in together_with(one.op)]
    return [
        op
        for op in made
        if all(user.name == _COPY or user in kept for user in _users(op.results[0]))
    ]


def is_multiplied(alloc: ir.OpView) -> bool:
    """Whether a buffer is A or B of a product, and no block scales."""
    return any(
        use.operand_number < _MULTIPLIED if use.owner.name == PRODUCT else _is_seen(use.owner)
        for use in alloc.results[0].uses
    )


def _is_seen(view: ir.Operation | ir.OpView) -> bool:
    return view.operation.name in VIEWS and is_multiplied(view.operation.opview)


def _users(buffer: ir.Value) -> Iterator[ir.Operation]:
    for use in buffer.uses:
        user = use.owner.operation
        if user.name in VIEWS:
            yield from _users(user.results[0])
        else:
            yield user


def further_bytes(made: Sequence[ir.OpView]) -> int:
    """What the second buffers take of shared memory."""
    found = (Buffer.of(op.results[0].type) for op in made)
    shared = (one for one in found if one is not None and one.space == SHARED)
    return (_BUFFERS - 1) * sum(map(stage_bytes, shared))


def alternate(loop: ir.Operation, made: Sequence[ir.OpView]) -> ir.Operation:
    """The loop, with two buffers for each of `made` in turn."""
    if not made:
        return loop
    at = Writer(loop.location)
    at.move(ir.InsertionPoint(loop))
    new, block, (turn,) = carrying(loop, [at.constant(0)])
    for op in made:
        buffer = Buffer.of(op.results[0].type)
        assert buffer is not None, "asked before"
        at.move(ir.InsertionPoint(new))
        type_ = Buffer(buffer.tile, buffer.space, _BUFFERS).type
        kept = {"alignment": op.attributes["alignment"], PIPELINED: ir.UnitAttr.get()}
        both = at.create(ALLOC, [], [type_], kept).result
        at.move(ir.InsertionPoint(op))
        mine = _in_turn(at, both, turn)
        if buffer.space == TENSOR_SPACE:
            # What read it has been waited for, where the step before ends.
            at.create("nv_tileas.tmem_fence", [], [], {"side": ir.StringAttr.get("after")})
        op.results[0].replace_all_uses_with(mine)
        op.operation.erase()
    at.move(ir.InsertionPoint(block.operations[len(block.operations) - 1]))
    hand_on(block, [at.binary("xori", turn, at.constant(1))])
    return new


def _in_turn(at: Writer, both: ir.Value, turn: ir.Value) -> ir.Value:
    """The buffer whose turn it is."""
    buffer = Buffer.of(both.type)
    assert buffer is not None, "just made"
    if buffer.space == SHARED:
        return at.view(both, turn)
    one = Buffer(buffer.tile, buffer.space, 1)
    column = at.binary("muli", turn, at.constant(tensor_columns(one)))
    return at.create("nv_tileas.tmem_view", [both, column], [one.type]).result

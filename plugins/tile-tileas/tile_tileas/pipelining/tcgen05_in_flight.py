"""Products by tcgen05 that stay in flight from one iteration of a loop to the next.

    for i:
        stage i mod S is there; stage (i-2) mod S is filled anew
        begin the product of stage i; its end arrives at barrier i mod S
        wait for barrier (i-1) mod S
    wait for the last one

The tensor core has the next product queued before one ends. The accumulator stays in tensor memory
(`tileas-place-accumulators`); a stage is read one iteration longer than otherwise, so that copies
run one less ahead (`Multistage` with `in_flight` of 1). Before the first iteration there is nothing
to wait for, which the phase of a fresh barrier says by itself.

Where tensor maps fill all stages and the loop does nothing else, two threads of different warps
lead (one, where blocks of a cluster fill stages of each other), and the others meet them behind the
loop:

    for i:
        the leader: stage i mod S is there
                    begin the product of stage i; its end arrives at barrier i mod S
        the copier: wait for barrier (i-1) mod S; stage (i-1) mod S is filled anew
    the copier: wait for the last one
    all meet

Neither has the other's instructions between its own, which take as long as a product (f16,
256x256x64 of a pair: 540 clk of 512). The leader is held by stages alone, and no more than all of
them are in flight. The copier takes every turn of the products' barriers, so that it cannot mistake
one for another; who has waited for none may not wait for the last.

A pair of blocks that makes its products together has such threads in each: copiers of both begin
copies and wait for products, whose end arrives at the barriers of both; the leader of the first
block waits for the copies of both, and begins the products. Where no thread leads, all threads of
both blocks meet before a product.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import (
    carried_place,
    fit_together,
    is_of_pair,
    sums,
    together_with,
)
from tile_tileas.dialect.barriers import COPIER, LEADER
from tile_tileas.dot_plan import IN_FLIGHT
from tile_tileas.kernel_spec import num_warps
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.multistage import Multistage, is_inside_loop
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.signals import commit_products
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.wgmma_in_flight import Kept, stays
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.barriers import BarrierPlace

#: Shared memory for the barriers of products, bytes: of as many stages as there may be, and of
#: products that are waited for one by one, with the address of tensor memory.
OVERHEAD = 512


def products_to_keep(func: ir.Operation, loop: ir.OpView, filled: Sequence[ir.Value]) -> list[Kept]:
    """The products of `loop` that may stay in flight; `filled` are buffers that it fills ahead.

    Those that the loop adds to and nothing else, and whose operands lie in buffers that are filled
    ahead, or before the loop. None if another product of the loop is waited for in each step.
    """
    block = loop.regions[0].blocks[0]
    found: list[Kept] = []
    for op in sums(loop):
        place = carried_place(op)
        operands = [v for one in together_with(op) for v in [*one.operands[:2], *one.operands[3:]]]
        ready = all(stays(value, block, filled) for value in operands)
        if place is None or not ready or op.operation.block != block:
            return []
        found.append(Kept(op, place, None))
    return found if found and fit_together(func, num_warps(func)) else []


def is_led(
    loop: ir.OpView,
    loads: Sequence[Prefetch],
    kept: Sequence[Kept],
    taken: int,
    numbers: Sequence[ir.OpView] = (),
) -> bool:
    """Whether one thread may run `loop` for all: `taken` of its `loads`, all of them, are copied by
    tensor maps into buffers that products `kept` read, and all else is arithmetic of scalars, or
    loads `numbers` for places of those.
    """
    if taken != len(loads) or not kept or any(load.target is None for load in loads):
        return False
    known = [op.operation for kept_one in kept for op in together_with(kept_one.op)]
    known += [op.operation for op in numbers]
    for load in loads:
        assert load.target is not None
        parts = (load.load, *load.target.views, load.target.copy, load.target.alloc)
        known += [part.operation for part in parts]
    return all(
        op.operation in known or op.operation.name == "scf.yield" or _is_scalar(op)
        for op in loop.regions[0].blocks[0].operations
    )


def _is_scalar(op: ir.OpView) -> bool:
    """Whether an operation has no effect, and gives no tile."""
    tiles = any(isinstance(result.type, ir.RankedTensorType) for result in op.results)
    return is_pure(op) and not tiles and not len(op.regions)


def keep_in_flight(
    func: ir.Operation,
    loop: ir.Operation,
    made: Multistage,
    products: Sequence[Kept],
    *,
    copier: bool = False,
) -> None:
    """Begin `products` of the pipelined `loop` without waiting for them: each iteration waits for
    those of the one before, what follows for the last ones. `copier`: of a loop that is led, a
    thread of its own, and not the one that begins them.
    """
    at = Writer(loop.location)
    again = is_inside_loop(loop.opview) and made.last is None
    place = BarrierPlace(func, again=again)
    at.move(ir.InsertionPoint(loop))
    barrier, pair = place.made(at, made.stages), is_of_pair(products[0].op)
    place.seen(at, in_cluster=pair)
    for kept in products:
        kept.op.attributes[IN_FLIGHT] = ir.UnitAttr.get()
        if pair and not made.led:
            at.move(ir.InsertionPoint(kept.op))
            at.meet(in_cluster=True)
    inside = made.slot_inside(loop)
    at.move(ir.InsertionPoint.after(products[-1].op))
    commit_products(at, barrier, inside.index, pair=pair)
    waiter = [*([LEADER] if made.led else []), *([COPIER] if copier else [])]
    _await(at, barrier, _before(at, made, inside), waiter)
    if made.led:
        _lead(loop)
    at.move(ir.InsertionPoint.after(loop if made.last is None else made.last))
    _await(at, barrier, _before(at, made, made.slot_behind(loop)), waiter)
    if made.led:
        at.sync()  # a commit is a fence before it by itself
    at.create("nv_tileas.tmem_fence", [], [], {"side": ir.StringAttr.get("after")})
    for kept in products:
        result = loop.results[kept.place]
        done = at.create("nv_tileas.dot_wait", [result], [result.type])
        result.replace_all_uses_except(done.result, done)
    place.done(at, [barrier])


def _before(at: Writer, made: Multistage, slot: Slot) -> Slot:
    """The slot of the iteration before that of `slot`."""
    assert slot.phase is not None, "asked for"
    last = at.constant(made.stages - 1)
    index = at.select(slot.index, 0, last, at.plus(slot.index, -1))
    other = at.binary("xori", slot.phase, at.constant(1))
    return Slot(index, at.select(slot.index, 0, other, slot.phase))


def _await(at: Writer, barrier: ir.Value, slot: Slot, waiter: Sequence[str]) -> None:
    """`waiter`: who waits; whoever does for the last product has for all before, as phases take
    turns.
    """
    assert slot.phase is not None, "asked for"
    attributes: dict[str, ir.Attribute] = dict.fromkeys(waiter, ir.UnitAttr.get())
    at.create("nv_tileas.barrier_wait", [barrier, slot.index, slot.phase], [], attributes)


def _lead(loop: ir.Operation) -> None:
    """Let one thread wait in the loop."""
    for op in loop.regions[0].blocks[0].operations:
        if op.operation.name == "nv_tileas.barrier_wait":
            op.attributes[LEADER] = ir.UnitAttr.get()

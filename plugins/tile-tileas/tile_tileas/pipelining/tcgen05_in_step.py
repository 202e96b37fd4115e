"""Products by tcgen05 of a step of a loop, each of them in flight until its result is used.

    for i:
        stage i mod S is there; stage (i-2) mod S is filled anew
        begin S = K Q(i), begin D = V O(i)          what reads nothing but tiles comes first
        wait for S: all is done that the step before began
        P = exp(S); store it; begin dV += P O(i)    by one thread, which has waited for the others
        wait for D                                  P's product is made meanwhile
        E = P D; store it; begin dK += E Q(i)
    wait for all

The tensor core makes them in the order in which they begin, so that what a step has waited for says
the same of all before it (PTX ISA, "tcgen05.commit"): sums that a loop only adds to need no wait,
and what their products read is written again behind the first wait of the next step. So a stage is
read one iteration longer than otherwise.

Where that has no room the last ones of a step are waited for at its end. Order and rounding of sums
do not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tile_cute.atoms.records import TENSOR as TENSOR_SPACE
from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import (
    carried_place,
    columns_together,
    is_of_pair,
    sums,
    tensor_products,
    together_with,
)
from tile_tileas.analysis.buffers import ALLOC, allocation_of
from tile_tileas.analysis.constants import is_zero
from tile_tileas.analysis.users import first_user
from tile_tileas.dialect.barriers import LEADER
from tile_tileas.dialect.buffers import Buffer, BufferType
from tile_tileas.dialect.tensor import tensor_columns
from tile_tileas.dot_plan import IN_FLIGHT
from tile_tileas.kernel_spec import num_ctas, num_warps, occupancy
from tile_tileas.mma.families import TENSOR
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.carrying import under_branch
from tile_tileas.pipelining.chains import trips
from tile_tileas.pipelining.loops import PRODUCT
from tile_tileas.pipelining.multistage import Multistage
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.released import can_be_released
from tile_tileas.pipelining.signals import Signals
from tile_tileas.pipelining.slices import is_pure, move_before
from tile_tileas.pipelining.stage_count import stages_of
from tile_tileas.pipelining.tcgen05_a_step_ahead import LEAST_AHEAD, Ahead, stage_wait
from tile_tileas.pipelining.wgmma_in_flight import LAG, stays
from tile_tileas.pipelining.writer import Writer

_COPY, _WAIT = "nv_tileas.copy", "nv_tileas.dot_wait"
_LANES = 32
#: Iterations from which on one product too many does not matter.
_MANY = 4


@dataclass(frozen=True)
class Step:
    """The products of an iteration, in their order.

    Attributes:
        ready: those that read tiles alone, and no other product's result.
        fresh: whose results the iteration uses, `ready` ones among them.
        kept: that add to what the loop carries and nothing else touches, and where that is.
        stored: the copies by which threads fill buffers for products, in the iteration.
    """

    ready: tuple[ir.OpView, ...]
    fresh: tuple[ir.OpView, ...]
    kept: tuple[tuple[ir.OpView, int], ...]
    stored: tuple[ir.Operation, ...]


@dataclass(frozen=True)
class _How:
    """`stages` of a loop; whether its `ready` products begin a step `ahead`, and whether it `keeps`
    those in flight that are added to what it carries.
    """

    stages: int
    ahead: bool
    keeps: bool


def pipelined(one: Candidate) -> Pipelined | None:
    """Pipeline a loop in which products read nothing but tiles, and threads work on their results;
    None if it is left as it is.
    """
    step = _step(one)
    if step is None or _columns(one) > COLUMNS // occupancy(one.func):
        return None
    how = _how(one, step)
    if how is None:
        return None
    for copy in step.stored:
        # What products in flight read has no other use meanwhile.
        alloc = copy.operands[1].owner
        assert not isinstance(alloc, ir.Block), "asked before"
        alloc.operation.move_before(one.loop)
    lag = LAG if how.keeps else 0
    # Stages that nobody reads but products have been read when those are done, as all threads know.
    alone = can_be_released(one.loads, one.maps, (TENSOR,))
    fillings = one.engines.fillings(one.loads)
    made = Multistage(one.loop, fillings, how.stages, lag, released=alone)
    new = made.run()
    if alone:
        # A step ahead that thread has waited already, but ptxas moves more over no branch at all:
        # the gradient of queries takes 238 us on a B200 (model) without it, and 226.
        stage_wait(made, new).attributes[LEADER] = ir.UnitAttr.get()
    _fly(one, made, new, step, how)
    return Pipelined(how.stages, len(step.ready) * how.ahead + len(step.kept) * how.keeps)


def _how(one: Candidate, step: Step) -> _How | None:
    """None if two stages do not fit, or the only product of a step cannot begin ahead."""
    lag = LAG if step.kept else 0
    stages = stages_of(one, lag)
    if lag and not stages:
        lag, stages = 0, stages_of(one)
    keeps, known = lag > 0, trips(one.loop)
    by_maps = all(load.load.results[0] in one.maps.copies for load in _loads_of(one, step.ready))
    ahead = (
        stages - 1 - lag >= LEAST_AHEAD
        and keeps == bool(step.kept)
        and by_maps
        and all(is_zero(together_with(op)[0].operands[2]) for op in step.ready)
        and (known is None or known >= _MANY)
    )
    alone = len(step.fresh) + len(step.kept) == 1
    return _How(stages, ahead, keeps) if stages and (ahead or not alone) else None


def _loads_of(one: Candidate, products: tuple[ir.OpView, ...]) -> list[Prefetch]:
    """The loads that fill what `products` read."""
    readers = [one.operation for op in products for one in together_with(op)]
    targets = ((load, load.target) for load in one.loads)
    return [
        load
        for load, target in targets
        if target is not None and any(reader in readers for reader in target.readers)
    ]


def _step(one: Candidate) -> Step | None:
    block = one.loop.regions[0].blocks[0]
    every, products = list(tensor_products(one.loop)), sums(one.loop)
    dots = [op for op in block.operations if op.operation.name == PRODUCT]
    if not products or len(dots) != len(every) or num_ctas(one.func) > 1:
        return None
    if any(op.operation.block != block or is_of_pair(op) for op in every):
        return None
    kept = [(op, at) for op in products if (at := carried_place(op)) is not None]
    fresh = [op for op in products if carried_place(op) is None]
    ready = [op for op in fresh if _is_ready(op, block, one.filled)]
    stored = _stored(every, first_user(block, products[0].results), one.filled)
    if not ready or stored is None or ready[0].operation != products[0].operation:
        return None
    if any(first_user(block, op.results) is None for op in fresh):
        return None
    return Step(tuple(ready), tuple(fresh), tuple(kept), tuple(stored))


def _is_ready(op: ir.OpView, block: ir.Block, filled: list[ir.Value]) -> bool:
    """Whether a product reads tiles that are loaded, or there before the loop, and adds to nothing
    that the iteration makes.
    """
    every = together_with(op)
    owner = every[0].operands[2].owner
    outside = owner != block if isinstance(owner, ir.Block) else owner.operation.block != block
    return outside and all(stays(v, block, filled) for one in every for v in one.operands[:2])


def _stored(
    products: list[ir.OpView], first: ir.Operation | None, filled: list[ir.Value]
) -> list[ir.Operation] | None:
    """The copies by which threads fill buffers for `products` in the iteration, one each, behind
    `first`, which uses a product's result; None if there are others.
    """
    block = products[0].operation.block
    order = [op.operation for op in block.operations]
    found: list[ir.Operation] = []
    for op in products:
        for value in [*op.operands[:2], *op.operands[3:]]:
            if not isinstance(value.type, BufferType) or stays(value, block, filled):
                continue
            alloc = allocation_of(value)  # one product may read a tile as it lies, one turned
            if alloc is None or first is None:
                return None
            users = [use.owner.operation for use in alloc.results[0].uses]
            copies = [user for user in users if user.name == _COPY]
            if len(copies) != 1 or copies[0].block != block:
                return None
            if order.index(copies[0]) < order.index(first):
                return None
            if copies[0] not in found:
                found.append(copies[0])
    return found


def _columns(one: Candidate) -> int:
    """Columns of tensor memory of all sums, and of what products read there."""
    held = (
        Buffer.of(op.results[0].type)
        for op in one.loop.regions[0].blocks[0].operations
        if op.operation.name == ALLOC
    )
    own = sum(tensor_columns(b) for b in held if b is not None and b.space == TENSOR_SPACE)
    return own + columns_together(one.func, num_warps(one.func))


def _fly(one: Candidate, made: Multistage, loop: ir.Operation, step: Step, how: _How) -> None:
    """Begin products as soon as they may, and wait for them where their results are used."""
    signals = Signals(one.func, one.warps * _LANES)
    kept = [op for op, _ in step.kept]
    late = list(step.fresh)
    if how.ahead:
        late = [op for op in step.fresh if op not in step.ready]
        under_branch(loop)  # products of the first iteration read its tiles
        loop = Ahead(loop, made, step.ready, kept, step.stored, signals).run()
    else:
        ready = [one for op in step.ready for one in together_with(op)]
        for before, op in pairwise(ready):
            _move_behind(before, op)
    for op in late:
        _put_before(op, kept, step.stored)
        _await_where_used(op)
    at = Writer(loop.location)
    for op in kept:
        op.attributes[IN_FLIGHT] = ir.UnitAttr.get()
    if kept and not how.keeps:
        at.move(ir.InsertionPoint.after(kept[-1]))
        _await_all(at, signals)
    at.move(ir.InsertionPoint.after(loop))
    if how.ahead or (kept and how.keeps):
        _await_all(at, signals)
    for _, place in step.kept:
        result = loop.results[place]
        behind = at.create(_WAIT, [result], [result.type])
        result.replace_all_uses_except(behind.result, behind)


def _await_where_used(op: ir.OpView) -> None:
    user = first_user(op.operation.block, op.results)
    assert user is not None, "asked before"
    at = Writer(op.location)
    at.move(ir.InsertionPoint(user))
    op.attributes[IN_FLIGHT] = ir.UnitAttr.get()
    done = at.create(_WAIT, [op.results[0]], [op.results[0].type])
    op.results[0].replace_all_uses_except(done.result, done)


def _await_all(at: Writer, signals: Signals) -> None:
    """Until all is done that has begun."""
    done = signals.barrier()
    signals.commit(at, done)
    signals.wait(at, done)


def _put_before(op: ir.OpView, kept: list[ir.OpView], stored: tuple[ir.Operation, ...]) -> None:
    """Begin a product whose result is waited for before those of `kept` that stand in front of it,
    back to the last one of those that `stored` what products read.
    """
    order = [inner.operation for inner in op.operation.block.operations]
    place = order.index(op.operation)
    last = max((order.index(copy) for copy in stored if copy in order[:place]), default=0)
    passed = [one for one in kept if last < order.index(one.operation) < place]
    if passed:
        move_before(passed[0].operation, [*_views_of(op), op])


def _move_behind(before: ir.OpView, op: ir.OpView) -> None:
    """Put a product, and what gives its operands, right behind another one."""
    move_before(before.operation, _views_of(op))
    op.operation.move_after(before.operation)


def _views_of(op: ir.OpView) -> list[ir.OpView]:
    """What gives a product's operands in its block, in order."""
    block = op.operation.block
    wanted: list[ir.Operation] = []
    pending = list(op.operands)[:2]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ir.Block) or owner.operation.block != block:
            continue
        if owner.operation not in wanted:
            wanted.append(owner.operation)
            pending += owner.operands
    views = [inner for inner in block.operations if inner.operation in wanted]
    assert all(is_pure(inner) for inner in views), "views of stages"
    return views

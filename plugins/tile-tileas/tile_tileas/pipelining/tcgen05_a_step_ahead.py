"""Products by tcgen05 that read nothing but tiles, begun a step before their results are used.

    begin S = K Q(0), begin D = V O(0)
    for i:
        wait for S; read it; stage i+1 is there; begin S = K Q(i+1)     by one thread
        wait for what was added to sums in the step before
        P = exp(S); store it; begin dV += P O(i)
        wait for D; E = P D; store it; begin dK += E Q(i); begin D = V O(i+1)
    wait for all

As `tcgen05_in_step`, whose steps wait for S and D from their beginning. A sum has one place in
tensor memory, so that the next one begins when all threads have read it: the first of a step at
once, others behind all that the step multiplies. Behind the last iteration the tile of that one is
multiplied once more, and nobody reads the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import together_with
from tile_tileas.analysis.users import first_user
from tile_tileas.dialect.barriers import LEADER
from tile_tileas.dot_plan import IN_FLIGHT
from tile_tileas.pipelining.carrying import carrying, hand_on
from tile_tileas.pipelining.filling import Slot, following
from tile_tileas.pipelining.multistage import Multistage, is_inside_loop
from tile_tileas.pipelining.signals import Signals
from tile_tileas.pipelining.wgmma_in_flight import VIEWS
from tile_tileas.pipelining.writer import Writer

_WAIT, _BARRIER_WAIT = "nv_tileas.dot_wait", "nv_tileas.barrier_wait"
#: Copies that are under way when a step begins: of the stage that it begins products of, and one
#: more.
LEAST_AHEAD = 2


def stage_wait(made: Multistage, loop: ir.Operation) -> ir.OpView:
    """Where a step waits for tiles that tensor maps bring."""
    slot = made.slot_inside(loop)
    ops = loop.regions[0].blocks[0].operations
    waits = (op for op in ops if op.operation.name == _BARRIER_WAIT)
    return next(op for op in waits if op.operands[1] == slot.index)


@dataclass
class Ahead:
    """Rewrites the loop that `made` has pipelined, which has an iteration. Its `ready` products are
    begun a step ahead; `kept` ones are added to what it carries, and `stored` are the copies of
    threads into what products read.
    """

    loop: ir.Operation
    made: Multistage
    ready: Sequence[ir.OpView]
    kept: Sequence[ir.OpView]
    stored: Sequence[ir.Operation]
    signals: Signals

    def run(self) -> ir.Operation:
        """The new loop."""
        at = Writer(self.loop.location)
        block = self.loop.regions[0].blocks[0]
        slot = self.made.slot_inside(self.loop)
        waits = stage_wait(self.made, self.loop)
        first = self._begin_first(at, waits.operands[0], slot)
        new, block, carried = carrying(self.loop, first)
        at.move(ir.InsertionPoint.after(waits))
        later = self._next(at, new, block, waits.operands[0], slot)
        done = self.signals.barrier() if self.kept else None
        for product, argument in zip(self.ready, carried, strict=True):
            self._later(at, block, product, argument, later)
        hand_on(block, [product.results[0] for product in self.ready])
        if is_inside_loop(new.opview):
            # Nobody reads these, but the next run counts turns from here.
            at.move(ir.InsertionPoint.after(new))
            for result in list(new.results)[-len(self.ready) :]:
                at.create(_WAIT, [result], [result.type])
        if done is not None:
            self._keep(at, new, block, done)
        return new

    def _begin_first(self, at: Writer, barrier: ir.Value, slot: Slot) -> list[ir.Value]:
        """The products of the first iteration, in front of the loop."""
        at.move(ir.InsertionPoint(self.loop))
        zero = at.constant(0)
        at.create(_BARRIER_WAIT, [barrier, zero, zero], [], {LEADER: ir.UnitAttr.get()})
        return [self._first(at, product, slot.index, zero) for product in self.ready]

    @staticmethod
    def _first(at: Writer, product: ir.OpView, stage: ir.Value, zero: ir.Value) -> ir.Value:
        """What a product, and those before it that add to its sum, give of the first stage."""
        values: dict[ir.Value, ir.Value] = {}
        for one in together_with(product):
            operands = [_in_stage(at, value, stage, zero) for value in one.operands]
            clone = one.operation.clone(ip=at.place)
            for number, operand in enumerate(operands):
                clone.operands[number] = values.get(operand, operand)
            values[one.results[0]] = clone.results[0]
            if one == product:
                clone.attributes[IN_FLIGHT] = ir.UnitAttr.get()
        return values[product.results[0]]

    def _next(
        self, at: Writer, loop: ir.Operation, block: ir.Block, barrier: ir.Value, slot: Slot
    ) -> _Next:
        """The stage of the next iteration, or of this one where that is the last."""
        upper, step = list(loop.operands)[1:3]
        reached = at.binary("addi", at.wide(block.arguments[0]), at.wide(step))
        exists = at.is_less(reached, at.wide(upper))
        after = following(at, slot, self.made.stages)
        assert slot.phase is not None, "phased"
        assert after.phase is not None, "phased"
        index = at.create("arith.select", [exists, after.index, slot.index], [at.i32]).result
        phase = at.create("arith.select", [exists, after.phase, slot.phase], [at.i32]).result
        return _Next(barrier, slot.index, index, phase)

    def _later(
        self, at: Writer, block: ir.Block, product: ir.OpView, argument: ir.Value, later: _Next
    ) -> None:
        """Use what was begun a step before, and begin the next one behind that."""
        user = first_user(block, product.results)
        assert user is not None, "asked before"
        at.move(ir.InsertionPoint(user))
        wait = at.create(_WAIT, [argument], [argument.type])
        product.results[0].replace_all_uses_with(wait.result)
        product.attributes[IN_FLIGHT] = ir.UnitAttr.get()
        leading = product == self.ready[0]
        place = wait if leading else self._last(block, wait)
        at.move(ir.InsertionPoint.after(place))
        if leading:
            how = {LEADER: ir.UnitAttr.get()}
            at.create(_BARRIER_WAIT, [later.barrier, later.index, later.phase], [], how)
        for one in together_with(product):
            operands = [_in_stage(at, value, later.this, later.index) for value in one.operands]
            for number, operand in enumerate(operands):
                one.operands[number] = operand
            at.place.insert(one.operation.detach_from_parent())

    def _last(self, block: ir.Block, wait: ir.Operation) -> ir.Operation:
        """The last product of a step, or the wait for a result where that stands behind it."""
        products = [op.operation for op in (*self.ready, *self.kept)]
        others = [op.operation for op in block.operations if op.operation in (*products, wait)]
        return others[-1]

    def _keep(self, at: Writer, loop: ir.Operation, block: ir.Block, done: ir.Value) -> None:
        """Wait for products of the step before where what they read is written again."""
        at.move(ir.InsertionPoint(loop))
        self.signals.commit(at, done)
        # In front of what ends the next turn of the barrier, too.
        last = self.kept[-1].operation
        behind = [op.operation for op in block.operations if op.operation in (*self.stored, last)]
        at.move(ir.InsertionPoint(behind[0]))
        self.signals.wait(at, done)
        at.move(ir.InsertionPoint.after(self.kept[-1]))
        for product in self.kept:
            product.attributes[IN_FLIGHT] = ir.UnitAttr.get()
        self.signals.commit(at, done)
        at.move(ir.InsertionPoint.after(loop))
        self.signals.wait(at, done)


@dataclass(frozen=True)
class _Next:
    """The stage of the next iteration: its barrier, index and phase; `this`: the index of the one
    that runs.
    """

    barrier: ir.Value
    this: ir.Value
    index: ir.Value
    phase: ir.Value


def _in_stage(at: Writer, value: ir.Value, old: ir.Value, new: ir.Value) -> ir.Value:
    """A view of the stage `old` as one of the stage `new`; anything else is itself."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name not in VIEWS:
        return value
    before = list(owner.operands)
    operands = [new if one == old else _in_stage(at, one, old, new) for one in before]
    if operands == before:
        return value
    clone = owner.operation.clone(ip=at.place)
    for number, operand in enumerate(operands):
        clone.operands[number] = operand
    return clone.results[0]

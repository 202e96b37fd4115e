"""A loop of products by tcgen05 that runs again, with two accumulators in turn, or with one.

Three agents go through its runs, each at its own pace:

    copies                     products                       the rest
    for runs:                  for runs:                      both accumulators are free
      for i:                     wait: an accumulator is free   for runs:
        wait: a stage was read   for i:                           wait: its products are done
        fill it                    wait: a stage is there         read it
                                   begin the product; its end     it is free
                                   says that the stage was read   what follows
                                 the end of all says so

so that products of one run are made while sums of the run before leave tensor memory. Where columns
are for one accumulator, those wait until it has been read, and not until it is stored. That columns
have been taken, and where, is what the first accumulators that are free say, too.

A pair of blocks has these agents in both: each copies what it has of the operands and reads its own
sums, and the first one begins products of both, which waits for both. Of blocks of a cluster that
multiply each for itself, and share tiles, products of all say that a stage was read to all.

Runs may be those of tile blocks that the block takes over (`taken_over`): the agent that copies
asks for the next one when it has begun all copies, as what is taken early waits while others are
idle.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_cute.atoms.records import TENSOR

from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import is_of_pair
from tile_tileas.analysis.users import within
from tile_tileas.dialect.barriers import PAIR
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import GIVES_BACK
from tile_tileas.dot_plan import tensor_plan_of
from tile_tileas.kernel_spec import num_ctas
from tile_tileas.pipelining.apart import PRODUCER, Apart
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.held_columns import scales_of, sums_of
from tile_tileas.pipelining.held_early import compute_early
from tile_tileas.pipelining.opaque import read_or
from tile_tileas.pipelining.question import Question
from tile_tileas.pipelining.signals import commit_products
from tile_tileas.pipelining.turns import BESIDE, Turns
from tile_tileas.pipelining.wgmma_in_flight import Kept
from tile_tileas.tma.barriers import BarrierPlace
from tile_tileas.tma.slices import IN_SLICES, READ_FIRST

#: The number of the agent that begins products.
_MULTIPLIES = 2
_SIGNEDNESS = ("signedness_a", "signedness_b")


def pipelined(one: Candidate, products: Sequence[Kept]) -> Pipelined | None:
    """Let the products of a loop that runs again be begun while sums of the run before leave tensor
    memory; None, and a remark, if they cannot.
    """
    question = Question.around(one.func, one.loop)
    turns = Turns.of(one, products, () if question is None else question.ops)
    if isinstance(turns, str):
        what = "makes products of a run when sums of the one before have been read"
        one.missed(what, turns, "SumsNotInTurn")
        return None
    return rewritten(one, products, turns)


def rewritten(one: Candidate, products: Sequence[Kept], turns: Turns) -> Pipelined:
    """The loop with what it may have."""
    new = InTurn(one, products[0], turns).run()
    held = "two accumulators in turn" if turns.accumulators > 1 else "one accumulator"
    one.cx.passed(
        new,
        f"has {held}, and agents that copy and multiply",
        category="pipeline",
        name="SumsInTurn",
    )
    return Pipelined(turns.stages, len(products))


class InTurn(Apart):
    """Rewrites one `scf.for` whose loads tensor maps copy, and one product reads."""

    def __init__(self, one: Candidate, kept: Kept, turns: Turns) -> None:
        self._func, self._kept, self._turns = one.func, kept, turns
        self._pair = is_of_pair(kept.op)
        shares = one.maps.is_shared and not self._pair
        self._ctas = num_ctas(one.func) if shares else 1
        super().__init__(
            one.func, one.loop, one.loads, one.maps, turns.stages, 0, 1,
            pair=self._pair, together=shares,
        )  # fmt: skip
        self._warps = one.warps
        self._plan = tensor_plan_of(kept.op, self._warps)

    def run(self) -> ir.Operation:
        """The loop that multiplies, behind the one that copies."""
        at = self._at
        at.move(ir.InsertionPoint.at_block_begin(self._entry))
        sums = sums_of(at, self._kept.op, self._plan, self._turns.accumulators)
        self._scales = scales_of(at, self._kept.op, self._plan)
        for load in self.loads:
            self._buffers[load.load.results[0]] = self._allocate(load)
        self.filling.prepare(at, self.stages, self.ahead)
        readers = self._warps * (1 + self._pair)
        place = BarrierPlace(self._func, again=False)
        done, free = (
            place.made_once(at, self._turns.accumulators, count) for count in (1, readers)
        )
        self._give_both(free)
        at.move(ir.InsertionPoint(self.loop))
        self._produce()
        view = self._acquire(sums, free)
        at.move(ir.InsertionPoint(self.block.operations[0]))
        slot = self.filling.to_read(at)
        self.filling.wait(at, slot, 0, leader=True)
        for load in self.loads:
            self._read(load, slot)
        self._multiply(view, slot)
        for load in self.loads:
            load.erase()
        self._hand_over(done, sums, free)
        question = Question.around(self._func, self.loop)
        if question is not None:
            mark = {PRODUCER: ir.UnitAttr.get()}
            question.through_pipe(self._func, self._warps + BESIDE, self.loop, mark)
        return self.loop.operation

    # -- tensor memory ------------------------------------------------------------------------

    def _view(self, sums: ir.Value, turn: ir.Value) -> ir.Value:
        """The accumulator whose turn it is."""
        at, both = self._at, Buffer.of(sums.type)
        assert both is not None
        column = at.binary("muli", turn, at.constant(self._plan.columns))
        type_ = Buffer(both.tile, TENSOR, 1).type
        return at.create("nv_tileas.tmem_view", [sums, column], [type_]).result

    def _fence(self, side: str, *how: str) -> None:
        attributes = {"side": ir.StringAttr.get(side), **dict.fromkeys(how, ir.UnitAttr.get())}
        self._at.create("nv_tileas.tmem_fence", [], [], attributes)

    # -- the agent that begins products -------------------------------------------------------

    def _acquire(self, sums: ir.Value, free: ir.Value) -> ir.Value:
        """Before a run: until the accumulator whose turn it is is free."""
        at, loop = self._at, self.loop.operation
        before = [op.operation for op in loop.block.operations]
        turn = Slot(*at.create("nv_tileas.barrier_next", [free], [at.i32, at.i32]).results)
        assert turn.phase is not None
        at.create("nv_tileas.barrier_wait", [free, turn.index, turn.phase])
        self._fence("after")
        view = self._view(sums, turn.index)
        self._turn = turn.index
        for op in loop.block.operations:
            if op.operation not in before:
                self._mark(op.operation)
        self._mark(loop)
        return view

    def _multiply(self, view: ir.Value, slot: Slot) -> None:
        """Begin the product of a step; the loop carries whether the accumulator holds something."""
        at, op, place = self._at, self._kept.op, self._kept.place
        flag = ir.IntegerType.get_signless(1)
        argument = self.block.arguments[place + 1]
        at.move(ir.InsertionPoint(self.loop))
        nothing = at.constant(0, flag)
        argument.set_type(flag)
        at.move(ir.InsertionPoint(op))
        names = ("atom", *(name for name in _SIGNEDNESS if name in op.attributes))
        attributes = {name: op.attributes[name] for name in names}
        a, b, _, *scales = op.operands
        name = "nv_tileas.umma_scaled" if scales else "nv_tileas.umma"
        at.create(name, [a, b, view, argument, *scales, *self._scales], [], attributes)
        commit_products(at, self.filling.emptied, slot.index, pair=self._pair, ctas=self._ctas)
        end = self.block.operations[len(self.block.operations) - 1]
        end.operands[place] = at.constant(1, flag)
        self._initial = self.loop.operands[3 + place]
        self.loop.operands[3 + place] = nothing
        self._type = op.results[0].type
        op.operation.erase()

    def _mark(self, op: ir.Operation) -> None:
        op.attributes[PRODUCER] = ir.IntegerAttr.get(self._at.i32, _MULTIPLIES)

    # -- the agent that has the rest ----------------------------------------------------------

    def _give_both(self, free: ir.Value) -> None:
        """Before all runs."""
        at, outermost = self._at, within(self.loop.operation, self._entry)
        assert outermost is not None, "inside of the kernel"
        at.move(ir.InsertionPoint(outermost))
        for turn in range(self._turns.accumulators):
            self._give_back(free, at.constant(turn), {})

    def _give_back(self, free: ir.Value, turn: ir.Value, how: dict[str, ir.Attribute]) -> None:
        """Each warp has read the accumulator."""
        by = {"by": ir.StringAttr.get("warp"), "kind": ir.StringAttr.get("generic")}
        pair = {PAIR: ir.UnitAttr.get()} if self._pair else {}
        self._at.create("nv_tileas.barrier_arrive", [free, turn], [], {**by, **how, **pair})

    def _hand_over(self, done: ir.Value, sums: ir.Value, free: ir.Value) -> None:
        """Behind a run: when its products are done, their sums are read."""
        at, result = self._at, self.loop.results[self._kept.place]
        at.move(ir.InsertionPoint.after(self.loop))
        commit_products(at, done, self._turn, pair=self._pair)
        self._mark(at_last(self.loop))
        compute_early(at, self.loop)
        turn = Slot(*at.create("nv_tileas.barrier_next", [done], [at.i32, at.i32]).results)
        assert turn.phase is not None
        at.create("nv_tileas.barrier_wait", [done, turn.index, turn.phase])
        self._fence("after")
        view = self._view(sums, turn.index)
        found = self._read_sums(view)
        self._fence("before", GIVES_BACK)
        how: dict[str, ir.Attribute] = {GIVES_BACK: ir.UnitAttr.get()}
        if self._turns.slices:
            how[IN_SLICES] = ir.IntegerAttr.get(at.i32, self._turns.slices)
        if self._turns.at_once:
            how[READ_FIRST] = ir.UnitAttr.get()
        self._give_back(free, turn.index, how)
        result.replace_all_uses_with(found)
        result.set_type(ir.IntegerType.get_signless(1))

    def _read_sums(self, view: ir.Value) -> ir.Value:
        """The sums; of a run without steps what they begin with."""
        at = self._at
        ran = at.is_less(self.lower, self.upper)
        return read_or(at, ran, lambda: at.read(view, self._type), self._initial)


def at_last(loop: ir.OpView) -> ir.Operation:
    """What stands behind a loop."""
    ops = [op.operation for op in loop.operation.block.operations]
    return ops[ops.index(loop.operation) + 1]

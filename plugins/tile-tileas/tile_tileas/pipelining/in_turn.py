"""A loop of products by tcgen05 that runs again, with two accumulators in turn.

Three agents go through its runs, each at its own pace:

    copies                     products                       the rest
    for runs:                  for runs:                      both accumulators are free
      for i:                     wait: an accumulator is free   for runs:
        wait: a stage was read   for i:                           wait: its products are done
        fill it                    wait: a stage is there         read it
                                   begin the product; its end     it is free
                                   says that the stage was read   what follows
                                 the end of all says so

so that products of one run are made while sums of the run before leave tensor memory. That columns
have been taken, and where, is what the first two accumulators that are free say, too.

A pair of blocks has these agents in both: each copies what it has of the operands and reads its own
sums, and the first one begins products of both, which waits for both.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_cute.atoms.records import TENSOR
from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import is_of_pair, tensor_products
from tile_tileas.analysis.constants import is_zero
from tile_tileas.dialect import distributed
from tile_tileas.dialect.barriers import PAIR
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import GIVES_BACK, LEAST_COLUMNS
from tile_tileas.dot_plan import tensor_plan_of
from tile_tileas.kernel_spec import num_ctas, num_warps, occupancy
from tile_tileas.mma.tensor_scaled import ScaledTensorPlan
from tile_tileas.pipelining.apart import FOR_ALL, PRODUCER, Apart, names_in, refusal
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.signals import commit_products
from tile_tileas.pipelining.stage_count import stages_of
from tile_tileas.pipelining.wgmma_in_flight import Kept
from tile_tileas.tma.barriers import BarrierPlace
from tile_tileas.tma.filling import TmaLoads
from tile_tileas.tma.slices import IN_SLICES, spared_by_slices

#: Accumulators, and the number of the agent that begins products.
_TURNS, _MULTIPLIES = 2, 2
#: Threads of a block at most, and those of the agents beside the one that has the rest.
_MOST_WARPS, _BESIDE = 32, 2
_SIGNEDNESS = ("signedness_a", "signedness_b")


def problem_of(
    func: ir.Operation, loop: ir.OpView, loads: Sequence[Prefetch], products: Sequence[Kept]
) -> str | None:
    """Why the products of `loop`, which runs again, cannot have two accumulators in turn; None if
    they can.
    """
    if len(products) != 1 or len(list(tensor_products(func))) != 1:
        return "the kernel has other products"
    kept, warps = products[0], num_warps(func)
    plan, pair = tensor_plan_of(kept.op, warps), is_of_pair(kept.op)
    if isinstance(plan, ScaledTensorPlan):
        return "its products have block scales"
    if len(loop.results) != 1 or not is_zero(loop.operands[3 + kept.place]):
        return "it begins with other sums than zero"
    if _TURNS * plan.columns > COLUMNS // occupancy(func):
        return f"two accumulators of {plan.columns} columns do not fit into tensor memory"
    if warps + _BESIDE > _MOST_WARPS:
        return "the block has no warps left"
    if pair and num_ctas(func) > _TURNS:
        return "there are several pairs in a cluster"
    found = next((name for name in names_in(func.regions[0]) if name in FOR_ALL), None)
    if found is not None:
        return f"all threads of the block do '{found}'"
    return refusal(func, loop, loads, pair=pair)


def spared(loop: ir.OpView, kept: Kept, func: ir.Operation) -> int:
    """Bytes of shared memory that what is stored of the sums does without in slices."""
    plan = tensor_plan_of(kept.op, num_warps(func))
    return spared_by_slices(loop.results[kept.place], plan.buffer)


def pipelined(one: Candidate, products: Sequence[Kept]) -> Pipelined | None:
    """Let the products of a loop that runs again have two accumulators in turn; None, and a remark,
    if they cannot.
    """
    why = problem_of(one.func, one.loop, one.loads, products)
    number, in_slices = 0, False
    if why is None:
        whole, fewer = (
            stages_of(one, kept=products, led=True, apart=True, spared=saved)
            for saved in (0, spared(one.loop, products[0], one.func))
        )
        number, in_slices = max(whole, fewer), fewer > whole
        why = None if number else "two stages do not fit beside what follows it"
    if why is not None:
        what = "makes products of a run when sums of the one before have been read"
        one.missed(what, why, "SumsNotInTurn")
        return None
    kept = products[0]
    new = InTurn(one.func, one.loop, one.loads, one.maps, number, kept, in_slices=in_slices).run()
    one.cx.passed(
        new,
        "has two accumulators in turn, and agents that copy and multiply",
        category="pipeline",
        name="SumsInTurn",
    )
    return Pipelined(number, len(products))


class InTurn(Apart):
    """Rewrites one `scf.for` whose loads tensor maps copy, and one product reads."""

    def __init__(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: Sequence[Prefetch],
        maps: TmaLoads,
        stages: int,
        kept: Kept,
        *,
        in_slices: bool,
    ) -> None:
        """`in_slices`: what is stored of the sums has memory for some slices alone."""
        self._in_slices = in_slices
        self._pair = is_of_pair(kept.op)
        super().__init__(func, loop, loads, maps, stages, 0, 1, pair=self._pair)
        self._func, self._kept = func, kept
        self._warps = num_warps(func)
        self._plan = tensor_plan_of(kept.op, self._warps)

    def run(self) -> ir.Operation:
        """The loop that multiplies, behind the one that copies."""
        at = self._at
        at.move(ir.InsertionPoint.at_block_begin(self._entry))
        sums = self._sums()
        for load in self.loads:
            self._buffers[load.load.results[0]] = self._allocate(load)
        self.filling.prepare(at, self.stages, self.ahead)
        readers = self._warps * (1 + self._pair)
        place = BarrierPlace(self._func, again=False)
        done, free = (place.made_once(at, _TURNS, count) for count in (1, readers))
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
        return self.loop.operation

    # -- tensor memory ------------------------------------------------------------------------

    def _sums(self) -> ir.Value:
        """Tensor memory for both accumulators."""
        at, tile = self._at, ir.RankedTensorType(self._kept.op.results[0].type)
        plain = ir.RankedTensorType.get(tile.shape, tile.element_type)
        held = ir.RankedTensorType(distributed(plain, self._plan.buffer))
        attributes = {"alignment": ir.IntegerAttr.get(at.i32, LEAST_COLUMNS)}
        type_ = Buffer(held, TENSOR, _TURNS).type
        return at.create("nv_tileas.alloc_tensor", [], [type_], attributes).result

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
        a, b = list(op.operands)[:2]
        at.create("nv_tileas.umma", [a, b, view, argument], [], attributes)
        commit_products(at, self.filling.emptied, slot.index, pair=self._pair)
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
        at, outermost = self._at, self.loop.operation
        while outermost.block != self._entry:
            assert outermost.parent is not None, "inside of the kernel"
            outermost = outermost.parent.operation
        at.move(ir.InsertionPoint(outermost))
        for turn in range(_TURNS):
            self._give_back(free, at.constant(turn))

    def _give_back(self, free: ir.Value, turn: ir.Value, *how: str) -> None:
        """Each warp has read the accumulator."""
        by = {"by": ir.StringAttr.get("warp"), "kind": ir.StringAttr.get("generic")}
        marks = [*how, *([PAIR] if self._pair else [])]
        attributes = {**by, **dict.fromkeys(marks, ir.UnitAttr.get())}
        self._at.create("nv_tileas.barrier_arrive", [free, turn], [], attributes)

    def _hand_over(self, done: ir.Value, sums: ir.Value, free: ir.Value) -> None:
        """Behind a run: when its products are done, their sums are read."""
        at, result = self._at, self.loop.results[self._kept.place]
        at.move(ir.InsertionPoint.after(self.loop))
        commit_products(at, done, self._turn, pair=self._pair)
        self._mark(at_last(self.loop))
        turn = Slot(*at.create("nv_tileas.barrier_next", [done], [at.i32, at.i32]).results)
        assert turn.phase is not None
        at.create("nv_tileas.barrier_wait", [done, turn.index, turn.phase])
        self._fence("after")
        view = self._view(sums, turn.index)
        ran = at.is_less(self.lower, self.upper)
        found = at.choice(ran, lambda: [at.read(view, self._type)], [self._initial])[0]
        self._fence("before", GIVES_BACK)
        how = [GIVES_BACK, *([IN_SLICES] if self._in_slices else [])]
        self._give_back(free, turn.index, *how)
        result.replace_all_uses_with(found)
        result.set_type(ir.IntegerType.get_signless(1))


def at_last(loop: ir.OpView) -> ir.Operation:
    """What stands behind a loop."""
    ops = [op.operation for op in loop.operation.block.operations]
    return ops[ops.index(loop.operation) + 1]

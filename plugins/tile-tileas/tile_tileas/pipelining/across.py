"""A loop that two threads lead and that runs again: its stages go on from run to run.

    the first stages of the first run are filled, if there is one
    for outer, which carries the slot that comes next:
        places of the next run, if there is one
        all meet: sums of the run before have been read
        for i:
            a step as ever; the stage that has been read is filled for the iteration that comes as
            many later as copies run ahead, in this run or the next
        wait for the last product; meet
        what is behind the loop, and copies for the next run beside it

A run with fewer iterations than copies run ahead leaves stages for the next one, which are filled
behind it. All slots but that of the last product are free there. Barriers are made where the kernel
begins, and their phases go on: a run has as many waits for a slot as it has fillings and products
of it. What computes places of the next run stands in a branch that is taken if there is one, as it
may divide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import is_of_pair
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.analysis.tokens import entering
from tile_tileas.dialect.fields import operand_of
from tile_tileas.pipelining import tcgen05_in_flight
from tile_tileas.pipelining.apart import FOR_ALL, names_in
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.loops import PRODUCT
from tile_tileas.pipelining.multistage import Fillings, Multistage
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.slices import Slice, slice_of
from tile_tileas.pipelining.stage_count import stages_of
from tile_tileas.pipelining.wgmma_in_flight import Kept

_FOR = "scf.for"


def pipelined(one: Candidate, products: Sequence[Kept]) -> Pipelined | None:
    """Let the stages of a loop that two threads lead, and that runs again, go on from run to run;
    None, and a remark, if they cannot.
    """
    runs: Runs | str = "blocks of the cluster fill stages of each other"
    if not one.maps.is_shared:
        runs = Runs.of(one.loop, one.loads)
    stages = 0
    if not isinstance(runs, str):
        stages, behind = (
            stages_of(one, kept=products, led=True, apart=beside_all)
            for beside_all in (True, False)
        )
        # Memory that what follows the loop has in common with its stages is theirs alone.
        if stages < behind:
            runs = f"{stages} stages of {behind} fit into shared memory beside what follows it"
    if isinstance(runs, str):
        one.missed("begins each of its runs with empty stages", runs, "RunsNotAhead")
        return None
    if not stages:
        return None
    pair = is_of_pair(products[0].op)
    fillings = one.engines.fillings(one.loads, pair=pair, copier=True, once=True)
    made = Across(one.loop, fillings, stages, runs, pair=pair)
    tcgen05_in_flight.keep_in_flight(one.func, made.run(), made, products, copier=True)
    return Pipelined(stages, len(products))


@dataclass(frozen=True)
class Runs:
    """The runs of a loop: one in each iteration of `outer`, whose body computes bounds and places
    of the loop by `slice`: the values `wanted`.
    """

    outer: ir.OpView
    slice: Slice
    wanted: Sequence[ir.Value]

    @staticmethod
    def of(loop: ir.OpView, loads: Sequence[Prefetch]) -> Runs | str:
        """The runs of `loop`, for whose next one `loads` can be begun; or why they cannot."""
        parent = loop.operation.parent
        assert parent is not None, "inside of a kernel"
        above = parent.parent
        if parent.name != _FOR or "unsignedCmp" in parent.attributes:
            return f"it stands in '{parent.name}'"
        if above is None or above.operation.name != "func.func":
            return "the loop around it runs again itself"
        outer = parent.opview
        body = outer.regions[0].blocks[0]
        if any(op.operation.name == PRODUCT for op in body.operations):
            return "the loop around it multiplies, too"
        shared = next((name for name in names_in(outer.regions[0]) if name in FOR_ALL), None)
        if shared is not None:
            return f"all threads of the block do '{shared}' in the loop around it"
        if any(load.slice.carried for load in loads):
            return "places of its loads are carried from iteration to iteration"
        for load in loads:
            token = operand_of(load.load, "token")
            if token is not None and entering(token, outer) is None:
                return "its loads wait for what the run before has stored"
        if splat_integer(loop.operands[2]) != 1:
            return "its step is not one"
        wanted = _wanted(loop, loads)
        found = slice_of(wanted, outer)
        if isinstance(found, str):
            return found
        if found.carried:
            return "its places depend on the run before"
        if not all(_is_number(result.type) for op in found.ops for result in op.results):
            return "what its loads read is chosen by the loop around it"
        made = {result for op in found.ops for result in op.results}
        changing = [
            value for value in dict.fromkeys(wanted) if value in made or value == body.arguments[0]
        ]
        return Runs(outer, found, changing)


def _wanted(loop: ir.OpView, loads: Sequence[Prefetch]) -> list[ir.Value]:
    """What bounds and places of `loop` are computed from."""
    inner = [operand for load in loads for op in load.slice.ops for operand in op.operands]
    return [*list(loop.operands)[:3], *inner, *(one for x in loads for one in _places(x))]


def _places(load: Prefetch) -> list[ir.Value]:
    """The operands of a load but its token, which nothing is computed from."""
    token = operand_of(load.load, "token")
    return [one for one in load.load.operands if token is None or one != token]


def _is_number(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType | ir.IndexType)


class Across(Multistage):
    """Rewrites one `scf.for` that two threads lead, and the one around it."""

    def __init__(
        self, loop: ir.OpView, fillings: Fillings, stages: int, runs: Runs, *, pair: bool
    ) -> None:
        """`pair`: threads of two blocks have read the sums before a run begins."""
        super().__init__(loop, fillings, stages, phased=True, led=True)
        self._runs, self._outer, self._pair = runs, runs.outer, pair
        self._begins: list[ir.Value] = []
        #: Whether there is a next run (i1), and what the values that it needs are there.
        self._exists: ir.Value | None = None
        self._next: dict[ir.Value, ir.Value] = {}

    def run(self) -> ir.Operation:
        at = self._at
        at.move(ir.InsertionPoint(self._outer))
        for load in self.loads:
            self._buffers[load.load.results[0]] = self._allocate(load)
        for filling, _ in self.fillings:
            filling.prepare(at, self.stages, self.ahead)
        self._fill_first_run()
        self._carry()
        at.move(ir.InsertionPoint(self.loop))
        self._find_next()
        at.meet(in_cluster=self._pair)
        new, slot, _ = self._new_loop([])
        at.move(ir.InsertionPoint(self.block.operations[0]))
        self._step(slot, [])
        self._end(slot, [])
        at.move(ir.InsertionPoint.after(new))
        self.last = self._fill_rest(self.slot_behind(new))
        self._hand_on(self.slot_behind(new))
        for load in self.loads:
            load.erase(met=False)
        return new

    # -- copies -------------------------------------------------------------------------------

    def _fill_first_run(self) -> None:
        """Fill the first stages, if the loop runs at all."""
        at = self._at
        lower, upper = list(self._outer.operands)[:2]
        slot = Slot(at.constant(0), at.constant(0))

        def copies() -> list[ir.Value]:
            place = self._place(self._runs.slice, {self._counter: lower})
            self._outside = place.values
            for ahead in range(self.ahead):
                self._fetch(place.of(self.lower), ahead, self._refilled(slot, ahead), [])
            self._outside = {}
            return []

        at.choice(at.is_less(at.wide(lower), at.wide(upper)), copies)

    def _find_next(self) -> None:
        """What places of the next run are computed from."""
        at, wanted = self._at, self._runs.wanted
        _, upper, step = list(self._outer.operands)[:3]
        now = self._counter
        after = at.binary("addi", at.wide(now), at.wide(step))
        self._exists = at.is_less(after, at.wide(upper))

        def found() -> list[ir.Value]:
            following = at.binary("addi", now, step)
            place = self._place(self._runs.slice, {now: following})
            return [place.of(value) for value in wanted]

        nothing = [at.constant(0, value.type) for value in wanted]
        self._next = dict(zip(wanted, at.choice(self._exists, found, nothing), strict=True))

    def _fetch_next(
        self, slot: Slot, places: list[ir.Value], fillings: Fillings | None = None
    ) -> list[ir.Value]:
        """Load for the iteration that is `ahead` of that of `slot`, in this run or the next."""
        at, now = self._at, self.block.arguments[0]
        refilled = self._refilled(slot)
        index, here = self._later(now, self.ahead)
        lower, upper = (self._next.get(value, value) for value in (self.lower, self.upper))
        beyond = at.binary("subi", index, self.upper)
        other = at.binary("addi", lower, beyond)
        far = at.binary("addi", at.wide(now), at.constant(self.ahead, at.i64))
        far = at.binary("addi", at.wide(lower), at.binary("subi", far, at.wide(self.upper)))
        there = at.binary("andi", self._there, at.is_less(far, at.wide(upper)))
        self._outside = {old: self._either(here, old, new) for old, new in self._next.items()}
        exists = at.binary("ori", here, there)
        index = self._either(here, index, other)
        self._fetch(index, 0, refilled, [], again=True, fillings=fillings, exists=exists)
        self._outside = {}
        return []

    def _fill_rest(self, slot: Slot) -> ir.Operation:
        """Behind a run that had fewer iterations than copies run ahead: the first stages of the
        next one, from `slot` on, that it had none to fill in.
        """
        at = self._at
        ran = at.binary("subi", at.wide(self.upper), at.wide(self.lower))
        none = at.constant(0, at.i64)
        ran = at.create("arith.maxsi", [ran, none], [at.i64]).result
        few = at.is_less(ran, at.constant(self.ahead, at.i64))
        outer = at.place
        few = at.binary("andi", self._there, few)
        branch = at.create("scf.if", [few], [], regions=2)
        at.move(ir.InsertionPoint(branch.regions[0].blocks.append()))
        self._outside = self._next
        lower = self._next.get(self.lower, self.lower)
        for ahead in range(self.ahead):
            left = at.binary("addi", ran, at.constant(ahead, at.i64))
            left = at.is_less(left, at.constant(self.ahead, at.i64))
            exists = at.binary("andi", left, self._later(lower, ahead)[1])
            self._fetch(lower, ahead, self._refilled(slot, ahead), [], exists=exists)
        self._outside = {}
        at.create("scf.yield")
        at.move(outer)
        return branch

    @property
    def _there(self) -> ir.Value:
        assert self._exists is not None, "found before"
        return self._exists

    @property
    def _counter(self) -> ir.Value:
        """The induction variable of the outer loop."""
        return self._outer.regions[0].blocks[0].arguments[0]

    def _either(self, here: ir.Value, one: ir.Value, other: ir.Value) -> ir.Value:
        if one == other:
            return one
        return self._at.create("arith.select", [here, one, other], [one.type]).result

    # -- the slot that the outer loop carries -------------------------------------------------

    def _first_slot(self) -> list[ir.Value]:
        return self._begins

    def _carry(self) -> None:
        """Let the outer loop carry the slot with which a run begins."""
        at, old = self._at, self._outer
        zeros = [at.constant(0) for _ in range(2)]
        types = [*(result.type for result in old.results), *(zero.type for zero in zeros)]
        attributes = {name: old.attributes[name] for name in old.attributes}
        new = at.create(_FOR, [*old.operands, *zeros], types, attributes, regions=1)
        old.regions[0].blocks[0].append_to(new.regions[0])
        block = new.regions[0].blocks[0]
        self._begins = [block.add_argument(zero.type, old.location) for zero in zeros]
        for before, result in zip(old.results, new.results, strict=False):
            before.replace_all_uses_with(result)
        old.operation.erase()
        self._outer = new.opview

    def _hand_on(self, slot: Slot) -> None:
        """The next run begins with `slot`."""
        assert slot.phase is not None, "phased"
        at, block = self._at, self._outer.regions[0].blocks[0]
        end = block.operations[len(block.operations) - 1]
        at.move(ir.InsertionPoint(end))
        at.create("scf.yield", [*end.operands, slot.index, slot.phase])
        end.operation.erase()

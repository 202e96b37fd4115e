"""The loop whose loads run ahead: predicated prefetch, one stage of buffers for each iteration.

    stages 0 .. S-2 are filled, each if there is such an iteration
    for i:
        wait for stage i mod S; sync
        fill the stage that iteration i-1 has read for iteration i+S-1, if there is one
        the body, which reads stage i mod S

Right for any number of iterations, none included. The one barrier of a step says both that the
copies of all threads are there and that nobody reads the stage that is overwritten next. Where
readers lag (`in_flight` iterations may still be read while the next one runs), copies run as many
iterations less ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tile_core.mlir import ir
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.pipelining.carrying import carrying, hand_on
from tile_tileas.pipelining.early import front_of
from tile_tileas.pipelining.filling import Filling, Place, Slot, following
from tile_tileas.pipelining.prefetch import Prefetch, masked_by
from tile_tileas.pipelining.slices import Slice, updates_of
from tile_tileas.pipelining.writer import Writer

PIPELINED = "pipelined"
#: Of a loop that fills stages before the loop that reads them.
FILLS = "nv_tileas.fills"

Fillings = Sequence[tuple[Filling, Sequence[Prefetch]]]

#: So many stages are filled in a loop, and fewer one by one: each is some thirty instructions, and
#: a loop's own are four.
_MANY = 3


class Multistage:
    """Rewrites one `scf.for`, whose loads are copied by `fillings`."""

    def __init__(
        self,
        loop: ir.OpView,
        fillings: Fillings,
        stages: int,
        in_flight: int = 0,
        *,
        phased: bool = False,
        led: bool = False,
        released: bool = False,
        behind: ir.OpView | None = None,
        late: Sequence[Prefetch] = (),
        by_one_thread: bool = False,
    ) -> None:
        """`phased`: the loop carries the phase of its stages, whether a filling needs it or not.
        `led`: one thread fills and reads the stages; nobody meets in the loop, and the stage that
        the body waited for the readers of last is filled behind it. `released`: readers say when
        they have read a stage, so that nobody meets either; stages are filled again `behind` an
        operation of the body, else before it. Tiles of `late` loads lie in the stage of the
        iteration after theirs, that of the last one in one more: operations of the body that read
        them are to run an iteration later. They wait for that stage before the first of them.
        `by_one_thread`: products are begun by one thread, and all threads wait for them.
        """
        assert stages > in_flight + 1, "copies run ahead"
        self.loop, self.fillings, self.stages = loop, fillings, stages
        self.ahead = self.filled_first = stages - 1 - in_flight
        self.lower, self.upper, self.step = list(loop.operands)[:3]
        self.block = loop.regions[0].blocks[0]
        self.phased = phased or any(filling.phased for filling, _ in fillings)
        self.loads = [load for _, loads in fillings for load in loads]
        self.carried = sorted({at for load in self.loads for at in load.slice.carried})
        self.updates = updates_of(self.carried, loop)
        self.led, self.released, self.behind = led, released, behind
        self.by_one_thread = by_one_thread
        self.late = [load.load.results[0] for load in late]
        assert not (late and self.carried), "late loads have places of their own"
        #: Waits for stages of late loads, in the body.
        self.late_waits: list[ir.OpView] = []
        #: Values of the loop around for whose next iteration copies are made, as they are there.
        self._outside: Mapping[ir.Value, ir.Value] = {}
        #: What stands behind the loop before somebody waits for its last products, if not nothing.
        self.last: ir.Operation | None = None
        self._at = Writer(loop.location)
        self._buffers: dict[ir.Value, ir.Value] = {}
        self._slot_places = range(0)
        #: Products before the loop that read its stages.
        self._passed: list[ir.OpView] = []

    def run(self) -> ir.Operation:
        """The new loop, in place of the old one."""
        at = self._at
        at.move(ir.InsertionPoint(front_of(self.loop, self._needed(), self._passed)))
        places = self._first_fillings()
        at.move(ir.InsertionPoint(self.loop))
        new, slot, places = self._new_loop(places)
        at.move(ir.InsertionPoint(self.block.operations[0]))
        places = self._step(slot, places)
        self._end(slot, places)
        at.move(ir.InsertionPoint.after(new))
        for filling, _ in self.fillings:
            filling.finish(at)
        for load in self.loads:  # the last thing, as places to insert at refer to operations
            load.erase(met=self._meets_in_each_step)
        return new

    @property
    def _meets(self) -> bool:
        """Whether threads read what others have copied."""
        return any(not (load.private or self._is_for_products(load)) for load in self.loads)

    def _is_for_products(self, load: Prefetch) -> bool:
        """Whether tensor maps bring a tile to products that one thread begins and all wait for."""
        alone = load.target is not None and load.by_engine and not load.to_threads
        return self.by_one_thread and alone

    @property
    def _meets_in_each_step(self) -> bool:
        """Whether all threads meet when they have waited for the copies of a step."""
        return self._meets and not self.led and not self.released

    def _needed(self) -> list[ir.Value]:
        """Values from outside of the loop that fillings read, among others."""
        ops = [*self.updates.ops, *(op for load in self.loads for op in load.slice.ops)]
        ops += [load.load for load in self.loads]
        inner = [operand for op in ops for operand in op.operands]
        first = [self.loop.operands[3 + at] for at in self.carried]
        return [self.lower, self.upper, self.step, *first, *inner]

    def _first_fillings(self) -> list[ir.Value]:
        """Stages that are filled before the loop; what later loads carry."""
        at = self._at
        if self._meets and is_inside_loop(self.loop):
            # An earlier run of this loop may still read the stages that are filled first.
            at.sync()
        for load in self.loads:
            self._buffers[load.load.results[0]] = self._allocate(load)
        for filling, _ in self.fillings:
            filling.prepare(at, self.stages, self.ahead)
        places = [self.loop.operands[3 + at] for at in self.carried]
        if self._fills_alike and self.filled_first >= _MANY:
            loop = at.repeat(self.filled_first, places, self._fill_in_turn)
            loop.attributes[FILLS] = ir.UnitAttr.get()
            return list(loop.results)
        for ahead in range(self.filled_first):
            index = at.constant(ahead % self.stages)
            slot = Slot(index, at.constant(0) if self.phased else None)
            places = self._fill_first(ahead, slot, places)
        return places

    @property
    def _fills_alike(self) -> bool:
        """Whether all first fillings are the same, but for the iteration and its stage. Where they
        come again and again, one by one is faster.
        """
        return not self.late and not is_inside_loop(self.loop)

    def _fill_in_turn(self, ahead: ir.Value, places: list[ir.Value]) -> list[ir.Value]:
        """Fill the stage of an iteration before the loop, which is `ahead` of the first one."""
        phase = self._at.constant(0) if self.phased else None
        return self._fetch(self.lower, ahead, Slot(ahead, phase), places)

    def _fill_first(self, ahead: int, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        """Fill the stages of one iteration before the loop."""
        return self._fetch(self.lower, ahead, slot, places)

    def _step(self, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        """What a step does beside its body; what later loads carry behind it."""
        at = self._at
        self._await(slot)
        if self._meets_in_each_step:
            at.sync()
        late = self.led or self.behind is not None
        if not late:
            # Before the body: copies are under way while it computes.
            places = self._fetch_next(slot, places)
        for load in self.loads:
            if load.load.results[0] not in self.late:
                self._read(load, slot)
        self._read_late(slot)
        if late:
            end = self.block.operations[len(self.block.operations) - 1]
            behind = self.behind
            at.move(ir.InsertionPoint(end if behind is None else _next_of(behind)))
            places = self._fetch_next(slot, places)
        return places

    def _await(self, slot: Slot) -> None:
        """Wait for the stage of the iteration that begins."""
        for filling, _ in self.fillings:
            filling.wait(self._at, slot, self.ahead - 1)

    def slot_inside(self, loop: ir.Operation) -> Slot:
        """The slot of an iteration of the new loop."""
        block = loop.regions[0].blocks[0]
        return Slot(*(block.arguments[1 + at] for at in self._slot_places))

    def slot_behind(self, loop: ir.Operation) -> Slot:
        """The slot of the iteration that the new loop did not run any more."""
        return Slot(*(loop.results[at] for at in self._slot_places))

    # -- the loop -----------------------------------------------------------------------------

    def _new_loop(self, places: list[ir.Value]) -> tuple[ir.Operation, Slot, list[ir.Value]]:
        """The loop with the slot of an iteration, stage 0 first, and `places` carried along.

        Its body still ends as it did; see `_end`.
        """
        slots = self._first_slot()
        first = len(list(self.loop.results))
        self._slot_places = range(first, first + len(slots))
        new, self.block, added = carrying(self.loop, [*slots, *places])
        return new, Slot(*added[: len(slots)]), added[len(slots) :]

    def _first_slot(self) -> list[ir.Value]:
        """The slot of the first iteration: its index, and its phase where the loop is phased."""
        return [self._at.constant(0) for _ in range(1 + self.phased)]

    def _end(self, slot: Slot, places: list[ir.Value]) -> None:
        """Hand on the slot of the following iteration, and what is carried for later ones."""
        at, end = self._at, self.block.operations[len(self.block.operations) - 1]
        at.move(ir.InsertionPoint(end))
        after = self._following(slot)
        phase = [] if after.phase is None else [after.phase]
        hand_on(self.block, [after.index, *phase, *places])

    def _following(self, slot: Slot) -> Slot:
        """The slot of the next iteration."""
        return following(self._at, slot, self.stages)

    def _refilled(self, slot: Slot, ahead: int | None = None) -> Slot:
        """The slot of the iteration that is loaded while that of `slot` runs, `ahead` of it."""
        ahead = self.ahead if ahead is None else ahead
        at, back = self._at, self.stages - ahead
        if back == 0:  # the same stage, one turn later
            index, turns = slot.index, at.constant(1)
        elif back == 1:
            last = at.constant(self.stages - 1)
            index = at.select(slot.index, 0, last, at.plus(slot.index, -1))
            turns = at.select(slot.index, 0, at.constant(0), at.constant(1))
        else:
            moved = at.plus(slot.index, ahead)
            inside = at.is_less(moved, at.constant(self.stages))
            around = at.plus(moved, -self.stages)
            index = at.create("arith.select", [inside, moved, around], [at.i32]).result
            turns = at.create("arith.extui", [at.negated(inside)], [at.i32]).result
        if slot.phase is None:
            return Slot(index)
        return Slot(index, at.binary("xori", slot.phase, turns))

    # -- copies -------------------------------------------------------------------------------

    def _allocate(self, load: Prefetch) -> ir.Value:
        type_ = Buffer(load.buffer.tile, load.buffer.space, self.stages).type
        attributes = {
            "alignment": ir.IntegerAttr.get(self._at.i32, load.alignment),
            PIPELINED: ir.UnitAttr.get(),
        }
        return self._at.create("nv_tileas.alloc_tensor", [], [type_], attributes).result

    def _fetch_next(
        self, slot: Slot, places: list[ir.Value], fillings: Fillings | None = None
    ) -> list[ir.Value]:
        """Load for the iteration that is `ahead` of that of `slot`, by some of the fillings."""
        refilled, now = self._refilled(slot), self.block.arguments[0]
        return self._fetch(now, self.ahead, refilled, places, again=True, fillings=fillings)

    def _fetch(
        self,
        now: ir.Value,
        ahead: int | ir.Value,
        slot: Slot,
        places: list[ir.Value],
        *,
        again: bool = False,
        fillings: Fillings | None = None,
        exists: ir.Value | None = None,
    ) -> list[ir.Value]:
        """Load for `ahead` iterations after `now`, if there is such a one, or where it `exists`.
        `places` are what that one carries; the answer is what the one behind it does. `again`:
        others may have read the stage before.
        """
        at, fillings = self._at, self.fillings if fillings is None else fillings
        index, is_there = self._later(now, ahead)
        exists = is_there if exists is None else exists
        if self.late and ahead:
            assert isinstance(ahead, int), "late loads are filled one by one"
            # The last iteration's late tiles have a stage behind that of the others.
            _, exists = self._later(now, ahead - 1)
        arguments = [self.block.arguments[1 + at] for at in self.carried]
        values = {**self._outside, **dict(zip(arguments, places, strict=True))}
        values[self.block.arguments[0]] = index
        before = dict(values)
        if self.late:
            before[self.block.arguments[0]] = at.binary("subi", index, self.step)

        def copies() -> list[ir.Value]:
            for filling, loads in fillings:
                if again:
                    filling.reclaim(at, slot)
                for load in loads:
                    with at.instead_of(load.load):
                        own = before if load.load.results[0] in self.late else values
                        self._begin(filling, load, slot, own)
            end = self.block.operations[len(self.block.operations) - 1]
            after = self._place(self.updates, values)
            return [after.of(end.operands[at]) for at in self.carried]

        following = self._if_exists(exists, copies, places, again=again)
        for filling, _ in fillings:
            filling.close(at, slot)
        return following

    def _begin(
        self, filling: Filling, load: Prefetch, slot: Slot, values: Mapping[ir.Value, ir.Value]
    ) -> None:
        """Begin to copy a tile of the iteration in which the body's arguments are `values`."""
        into = self._stage(load, slot, values[self.block.arguments[0]])
        filling.fill(self._at, load, into, slot, self._place(load.slice, values))

    def _stage(self, load: Prefetch, slot: Slot, number: ir.Value) -> ir.Value:
        """The stage that holds a tile of iteration `number`, whose slot is `slot`."""
        return self._at.view(self._buffers[load.load.results[0]], slot.index)

    def _if_exists(
        self,
        exists: ir.Value,
        copies: Callable[[], list[ir.Value]],
        places: list[ir.Value],
        *,
        again: bool,
    ) -> list[ir.Value]:
        """What `copies` makes, done where there is such an iteration, else `places`."""
        return self._at.choice(exists, copies, places)

    def _place(self, part: Slice, values: Mapping[ir.Value, ir.Value]) -> Place:
        """What a part of the body computes where its arguments are `values`."""
        found = dict(values)
        for op in part.ops:
            clone = op.operation.clone(ip=self._at.place)
            for number, operand in enumerate(clone.operands):
                if operand in found:
                    clone.operands[number] = found[operand]
            found.update(zip(op.results, clone.results, strict=True))
        return Place(found)

    def _read_late(self, slot: Slot) -> None:
        """Let the body read late tiles, behind a wait for their stage."""
        loads = [load for load in self.loads if load.load.results[0] in self.late]
        if not loads:
            return
        at, outer = self._at, self._at.place
        ops = list(self.block.operations)
        at.move(ir.InsertionPoint(ops[min(_first_use(load, ops) for load in loads)]))
        following = self._following(slot)
        for filling, _ in self.fillings:
            filling.wait(at, following, self.ahead - 1)
        names = [op.operation for op in ops]
        self.late_waits = [
            op
            for op in self.block.operations
            if op.operation not in names and op.operation.name == "nv_tileas.barrier_wait"
        ]
        for load in loads:
            self._read(load, following)
        at.move(outer)

    def _read(self, load: Prefetch, slot: Slot) -> None:
        """Let the body read the stage of its iteration."""
        at, old = self._at, load.load.results[0]
        if load.target is not None:
            view = at.view(self._buffers[old], slot.index)
            named = load.target.alloc.results[0]
            named.replace_all_uses_with(at.reinterpret(view, named.type))
        else:
            outer = at.place
            at.move(ir.InsertionPoint(load.load))
            with at.instead_of(load.load):
                tile = at.read(self._stage(load, slot, self.block.arguments[0]), old.type)
            masked = masked_by(load.load)
            if masked is not None:
                tile = at.create("arith.select", [masked[0], tile, masked[1]], [old.type]).result
            old.replace_all_uses_with(tile)
            at.move(outer)

    def _later(self, now: ir.Value, ahead: int | ir.Value) -> tuple[ir.Value, ir.Value]:
        """The induction variable `ahead` iterations after `now`, and whether it is reached.

        Compared in 64 bits: beyond the end it may not fit into the loop's own type.
        """
        at = self._at
        upper, step = (self._outside.get(value, value) for value in (self.upper, self.step))
        by = at.binary("muli", step, at.number(ahead, step.type))
        index = at.binary("addi", now, by)
        wide_by = at.binary("muli", at.wide(step), at.number(ahead, at.i64))
        wide = at.binary("addi", at.wide(now), wide_by)
        return index, at.is_less(wide, at.wide(upper))


def _next_of(op: ir.OpView) -> ir.OpView:
    """The operation behind `op` in its block."""
    ops = list(op.operation.block.operations)
    at = next(at for at, other in enumerate(ops) if other.operation == op.operation)
    return ops[at + 1]


def _first_use(load: Prefetch, ops: Sequence[ir.OpView]) -> int:
    """The place in the body of the first operation that reads the buffer that a load fills."""
    assert load.target is not None, "late tiles lie in buffers"
    readers = load.target.readers
    return min(at for at, op in enumerate(ops) if op.operation in readers)


def is_inside_loop(op: ir.OpView) -> bool:
    """Whether `op` may run more than once."""
    parent = op.operation.parent
    while parent is not None and parent.name != "func.func":
        if parent.name in ("scf.for", "scf.while"):
            return True
        parent = parent.operation.parent
    return False

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

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.pipelining.filling import Filling, Place, Slot
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.writer import Writer

PIPELINED = "pipelined"

Fillings = Sequence[tuple[Filling, Sequence[Prefetch]]]


class Multistage:
    """Rewrites one `scf.for`, whose loads are copied by `fillings`."""

    def __init__(
        self, loop: ir.OpView, fillings: Fillings, stages: int, in_flight: int = 0
    ) -> None:
        assert stages > in_flight + 1, "copies run ahead"
        self.loop, self.fillings, self.stages = loop, fillings, stages
        self.ahead = stages - 1 - in_flight
        self.lower, self.upper, self.step = list(loop.operands)[:3]
        self.counter = loop.regions[0].blocks[0].arguments[0]
        self.phased = any(filling.phased for filling, _ in fillings)
        self._at = Writer(loop.location)
        self._buffers: dict[ir.Value, ir.Value] = {}

    def run(self) -> ir.Operation:
        """The new loop, in place of the old one."""
        at = self._at
        at.move(ir.InsertionPoint(self.loop))
        if _is_inside_loop(self.loop):
            # An earlier run of this loop may still read the stages that are filled first.
            at.sync()
        for load in self._loads():
            self._buffers[load.alloc.results[0]] = self._allocate(load)
        for filling, _ in self.fillings:
            filling.prepare(at, self.stages)
        for ahead in range(self.ahead):
            self._fetch(self.lower, ahead, Slot(at.constant(ahead), self._constant_phase(0)))
        new, slot = self._new_loop()
        block = new.regions[0].blocks[0]
        at.move(ir.InsertionPoint(block.operations[0]))
        for filling, _ in self.fillings:
            filling.wait(at, slot, self.ahead - 1)
        at.sync()
        # Before the body: copies are under way while it computes.
        self._fetch(block.arguments[0], self.ahead, self._refilled(slot))
        for load in self._loads():
            view = at.view(self._buffers[load.alloc.results[0]], slot.index)
            load.alloc.results[0].replace_all_uses_with(view)
        at.move(ir.InsertionPoint.after(new))
        for filling, _ in self.fillings:
            filling.finish(at)
        for load in self._loads():
            load.erase()
        return new

    def _loads(self) -> list[Prefetch]:
        return [load for _, loads in self.fillings for load in loads]

    # -- the loop -----------------------------------------------------------------------------

    def _new_loop(self) -> tuple[ir.Operation, Slot]:
        """The loop with the slot of an iteration carried along, stage 0 first."""
        at, old = self._at, self.loop
        attributes = {name: old.attributes[name] for name in old.attributes}
        carried = [at.constant(0) for _ in range(1 + self.phased)]
        types = [*(result.type for result in old.results), *(value.type for value in carried)]
        new = at.create("scf.for", [*old.operands, *carried], types, attributes, regions=1)
        block = old.regions[0].blocks[0]
        block.append_to(new.regions[0])
        slot = Slot(*(block.add_argument(value.type, old.location) for value in carried))
        end = block.operations[len(block.operations) - 1]
        at.move(ir.InsertionPoint(end))
        at.create("scf.yield", [*end.operands, *self._next(slot)])
        end.operation.erase()
        for before, result in zip(old.results, new.results, strict=False):
            before.replace_all_uses_with(result)
        old.operation.erase()
        return new, slot

    def _next(self, slot: Slot) -> list[ir.Value]:
        """The slot of the following iteration."""
        at, bumped = self._at, self._at.plus(slot.index, 1)
        found = [at.select(bumped, self.stages, at.constant(0), bumped)]
        if slot.phase is not None:
            turned = at.binary("xori", slot.phase, at.constant(1))
            found.append(at.select(bumped, self.stages, turned, slot.phase))
        return found

    def _refilled(self, slot: Slot) -> Slot:
        """The slot of the iteration that is loaded while that of `slot` runs."""
        at, back = self._at, self.stages - self.ahead
        if back == 1:
            last = at.constant(self.stages - 1)
            index = at.select(slot.index, 0, last, at.plus(slot.index, -1))
            turns = at.select(slot.index, 0, at.constant(0), at.constant(1))
        else:
            moved = at.plus(slot.index, self.ahead)
            inside = at.is_less(moved, at.constant(self.stages))
            around = at.plus(moved, -self.stages)
            index = at.create("arith.select", [inside, moved, around], [at.i32]).result
            turns = at.create("arith.extui", [at.negated(inside)], [at.i32]).result
        if slot.phase is None:
            return Slot(index)
        return Slot(index, at.binary("xori", slot.phase, turns))

    def _constant_phase(self, phase: int) -> ir.Value | None:
        return self._at.constant(phase) if self.phased else None

    # -- copies -------------------------------------------------------------------------------

    def _allocate(self, load: Prefetch) -> ir.Value:
        buffer = load.buffer
        type_ = Buffer(buffer.tile, buffer.space, self.stages).type
        attributes = {
            "alignment": load.alloc.attributes["alignment"],
            PIPELINED: ir.UnitAttr.get(),
        }
        return self._at.create("nv_tileas.alloc_tensor", [], [type_], attributes).result

    def _fetch(self, now: ir.Value, ahead: int, slot: Slot) -> None:
        """Load for `ahead` iterations after `now`, if there is such a one."""
        at = self._at
        index, exists = self._later(now, ahead)
        outer = at.branch(exists)
        for filling, loads in self.fillings:
            for load in loads:
                into = at.view(self._buffers[load.alloc.results[0]], slot.index)
                filling.fill(at, load, into, slot, self._place(load, index))
        at.leave(outer)
        for filling, _ in self.fillings:
            filling.close(at, slot)

    def _place(self, load: Prefetch, index: ir.Value) -> Place:
        """What `load` is computed from, where the induction variable is `index`."""
        values = {self.counter: index}
        for op in load.slice:
            clone = op.operation.clone(ip=self._at.place)
            for number, operand in enumerate(clone.operands):
                if operand in values:
                    clone.operands[number] = values[operand]
            values.update(zip(op.results, clone.results, strict=True))
        return Place(values)

    def _later(self, now: ir.Value, ahead: int) -> tuple[ir.Value, ir.Value]:
        """The induction variable `ahead` iterations after `now`, and whether it is reached.

        Compared in 64 bits: beyond the end it may not fit into the loop's own type.
        """
        at = self._at
        by = at.binary("muli", self.step, at.constant(ahead, self.step.type))
        index = at.binary("addi", now, by)
        wide_by = at.binary("muli", at.wide(self.step), at.constant(ahead, at.i64))
        wide = at.binary("addi", at.wide(now), wide_by)
        return index, at.is_less(wide, at.wide(self.upper))


def _is_inside_loop(op: ir.OpView) -> bool:
    parent = op.operation.parent
    while parent is not None and parent.name != "func.func":
        if parent.name in ("scf.for", "scf.while"):
            return True
        parent = parent.operation.parent
    return False

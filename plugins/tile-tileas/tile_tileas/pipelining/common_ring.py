"""Loops whose tiles take turns in one ring of stages, as two stages of each do not fit.

Of two tiles of a step, K and V, that take as many bytes each, in three stages:

    K(0) and V(0) are filled
    for i:
        wait for K(i)      begin QK      K(i+1) into the third stage, which V(i-1) had
        wait for QK                      warps have read K(i)
        wait for V(i)      begin PV      V(i+1) into the stage that K(i) had
        wait for PV                      warps have read V(i)

With a stage of its own (`refilled`) a tile is asked for when the one before has been read, and has
to come all the way while the other one is worked on. Here there is one more on its way, so that the
copy engine always has something to do, and whoever begins copies does so while tensor cores work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tile_core.mlir import ir
from tile_tileas.analysis.buffers import stage_bytes
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.pipelining.budget import demand_of, room_of
from tile_tileas.pipelining.candidate import Candidate
from tile_tileas.pipelining.depth import blocks_of
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.multistage import PIPELINED, Multistage, is_inside_loop
from tile_tileas.pipelining.prefetch import Prefetch, readers_of
from tile_tileas.pipelining.wgmma_parts import begun, may_be_begun
from tile_tileas.tma.filling import Tma, TmaLoads


@dataclass(frozen=True)
class Turn:
    """A tile of a step, and the product that reads it; in the order of those."""

    load: Prefetch
    product: ir.OpView


def turns_of(one: Candidate) -> list[Turn]:
    """Tiles of a step by the products of warpgroups that read them, each one of its own; nothing if
    that is not so.
    """
    order = [op.operation for op in one.loop.regions[0].blocks[0].operations]
    readers = [(*readers_of(load, order), load) for load in one.loads]
    if any(first != last for first, last, _ in readers):
        return []
    by_product = {first: load for first, _, load in readers}
    turns = [Turn(load, order[place].opview) for place, load in sorted(by_product.items())]
    own = len(turns) == len(readers)
    return turns if own and all(may_be_begun(turn.product) for turn in turns) else []


def stages_in_common(one: Candidate, turns: Sequence[Turn]) -> int:
    """Stages of a ring that all `turns` share: one more than there are tiles, at least, where so
    many fit beside as many blocks as one of each tile has room for; 0 if none do.
    """
    sizes = {stage_bytes(turn.load.buffer) for turn in turns}
    carried = any(turn.load.slice.carried for turn in turns)
    if len(turns) < 2 or len(sizes) != 1 or carried:
        return 0
    demand = demand_of(one.func, one.loop, one.loads, 1, 0, 0)
    demand = replace(demand, other_bytes=demand.other_bytes + one.engines.overhead)
    room, own = room_of(one.cx.target)[0], demand.stage_bytes
    each = replace(demand, stage_bytes=own // len(turns))
    blocks = blocks_of(demand, room, 1)
    fitting = range(len(turns) + 1, 2 * len(turns))
    return max((count for count in fitting if blocks_of(each, room, count) == blocks), default=0)


class CommonRing(Multistage):
    """One `scf.for`, whose loads are copied by tensor maps alone, and each read by a product of its
    own, which is waited for where it stands. `readers`: warps of the block.
    """

    def __init__(
        self, loop: ir.OpView, turns: Sequence[Turn], maps: TmaLoads, stages: int, readers: int
    ) -> None:
        aligned = [replace(turn, load=maps.aligned(turn.load)) for turn in turns]
        parts = [(maps.part([turn.load], readers), [turn.load]) for turn in aligned]
        self._turns = aligned
        self._tmas: list[Tma] = [filling for filling, _ in parts]
        super().__init__(loop, parts, stages, -1, released=True)

    def _first_fillings(self) -> list[ir.Value]:
        at = self._at
        if is_inside_loop(self.loop):
            # An earlier run of this loop may still read the stages that are filled first.
            at.sync()
        ring = self._ring()
        for load in self.loads:
            self._buffers[load.load.results[0]] = ring
        first, *others = self._tmas
        first.prepare(at, self.stages, self.stages)
        for other in others:
            other.share(first)
        for number in range(self.stages - 1):
            slot = Slot(at.constant(number), at.constant(0))
            self._fetch_number(self.lower, number, slot, again=False)
        return []

    def _ring(self) -> ir.Value:
        """A buffer of all stages, by the type of the first tile's."""
        at, first = self._at, self.loads[0].buffer
        attributes = {
            "alignment": ir.IntegerAttr.get(at.i32, max(load.alignment for load in self.loads)),
            PIPELINED: ir.UnitAttr.get(),
        }
        type_ = Buffer(first.tile, first.space, self.stages).type
        return at.create("nv_tileas.alloc_tensor", [], [type_], attributes).result

    def _stage(self, load: Prefetch, slot: Slot, number: ir.Value) -> ir.Value:
        own = Buffer(load.buffer.tile, load.buffer.space, 1).type
        return self._at.reinterpret(super()._stage(load, slot, number), own)

    def _fetch_number(self, now: ir.Value, number: int, slot: Slot, *, again: bool) -> None:
        """Begin to copy tile `number`, counted from the first one of iteration `now`."""
        ahead, which = divmod(number, len(self._turns))
        fillings = [self.fillings[which]]
        self._fetch(now, ahead, slot, [], again=again, fillings=fillings)

    def _step(self, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        at = self._at
        slots = [self._moved(slot, number) for number in range(len(self._turns))]
        for load, own in zip(self.loads, slots, strict=True):
            self._read(load, own)
        now, last = self.block.arguments[0], self.stages - 1
        for number, (turn, filling) in enumerate(zip(self._turns, self._tmas, strict=True)):
            at.move(ir.InsertionPoint(turn.product))
            filling.wait(at, slots[number], 0)
            done = begun(at, turn.product)
            at.move(ir.InsertionPoint(done))
            # Into the stage that the product before has read; nobody has the first one of those.
            self._fetch_number(now, number + last, self._moved(slots[number], last), again=True)
            at.move(ir.InsertionPoint.after(done))
            filling.release(at, slots[number].index)
        return places

    def _following(self, slot: Slot) -> Slot:
        return self._moved(slot, len(self._turns))

    def _moved(self, slot: Slot, by: int) -> Slot:
        """The slot `by` tiles later, a round at most."""
        at = self._at
        assert slot.phase is not None, "tensor maps need the phase"
        if not by:
            return slot
        if by == self.stages:
            return Slot(slot.index, at.binary("xori", slot.phase, at.constant(1)))
        moved = at.plus(slot.index, by)
        inside = at.is_less(moved, at.constant(self.stages))
        around = at.plus(moved, -self.stages)
        index = at.create("arith.select", [inside, moved, around], [at.i32]).result
        turns = at.create("arith.extui", [at.negated(inside)], [at.i32]).result
        return Slot(index, at.binary("xori", slot.phase, turns))

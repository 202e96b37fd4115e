"""A ring of stages that all tiles of a step have in turns, as two stages of each do not fit.

Tile number `t` of a loop of T tiles a step is that of iteration `t / T` whose product comes
`t mod T`-th, and lies in stage `t mod S` of S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tile_core.mlir import ir
from tile_tileas.analysis.buffers import stage_bytes
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.pipelining.filling import Filling, Slot
from tile_tileas.pipelining.multistage import PIPELINED, Multistage, is_inside_loop
from tile_tileas.pipelining.prefetch import Prefetch, readers_of


@dataclass(frozen=True)
class Turn:
    """A tile of a step, and the first and the last operation that read it."""

    load: Prefetch
    first: ir.OpView
    last: ir.OpView


def turns_in(loop: ir.OpView, loads: Sequence[Prefetch]) -> list[Turn]:
    """Tiles of a step in the order in which they are read, each when the one before has been, for
    good; nothing if that is not so, or they are not of one size, or fewer than two.
    """
    if len(loads) < 2 or any(load.target is None or load.slice.carried for load in loads):
        return []
    if len({stage_bytes(load.buffer) for load in loads}) != 1:
        return []
    order = [op.operation for op in loop.regions[0].blocks[0].operations]
    read = sorted(((*readers_of(load, order), load) for load in loads), key=lambda one: one[:2])
    if any(last >= first for (_, last, _), (first, *_) in pairwise(read)):
        return []
    return [Turn(load, order[first].opview, order[last].opview) for first, last, load in read]


class CommonRing(Multistage):
    """One `scf.for`, whose tiles have `stages` in `turns`, each copied by a filling of its own."""

    def __init__(
        self,
        loop: ir.OpView,
        turns: Sequence[Turn],
        fillings: Sequence[Filling],
        stages: int,
        *,
        released: bool,
    ) -> None:
        self.turns = turns
        parts = [(filling, [turn.load]) for filling, turn in zip(fillings, turns, strict=True)]
        super().__init__(loop, parts, stages, -1, released=released)

    def _prepare(self) -> None:
        """What fillings need before the first copy; each for itself."""
        for filling, _ in self.fillings:
            filling.prepare(self._at, self.stages, self.stages)

    @property
    def _filled_before(self) -> int:
        """Tiles whose copies begin before the loop."""
        return self.stages - 1

    def _first_fillings(self) -> list[ir.Value]:
        at = self._at
        if is_inside_loop(self.loop):
            # An earlier run of this loop may still read the stages that are filled first.
            at.sync()
        ring = self._ring()
        for load in self.loads:
            self._buffers[load.load.results[0]] = ring
        self._prepare()
        for number in range(self._filled_before):
            slot = Slot(at.constant(number), at.constant(0) if self.phased else None)
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
        ahead, which = divmod(number, len(self.turns))
        fillings = [self.fillings[which]]
        self._fetch(now, ahead, slot, [], again=again, fillings=fillings)

    def _read_all(self, slot: Slot) -> list[Slot]:
        """Let the body read its stages, of which `slot` is the first; all of them."""
        slots = [self._moved(slot, number) for number in range(len(self.turns))]
        for load, own in zip(self.loads, slots, strict=True):
            self._read(load, own)
        return slots

    def _following(self, slot: Slot) -> Slot:
        return self._moved(slot, len(self.turns))

    def _moved(self, slot: Slot, by: int) -> Slot:
        """The slot `by` tiles later."""
        rounds, by = divmod(by, self.stages)
        at, phase = self._at, slot.phase
        if rounds % 2 and phase is not None:
            phase = at.binary("xori", phase, at.constant(1))
        if not by:
            return Slot(slot.index, phase)
        moved = at.plus(slot.index, by)
        inside = at.is_less(moved, at.constant(self.stages))
        around = at.plus(moved, -self.stages)
        index = at.create("arith.select", [inside, moved, around], [at.i32]).result
        if phase is None:
            return Slot(index)
        turns = at.create("arith.extui", [at.negated(inside)], [at.i32]).result
        return Slot(index, at.binary("xori", phase, turns))

"""Loops of products by wgmma or tcgen05 whose tiles take turns in one ring of stages.

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
from dataclasses import replace

from tile_core.mlir import ir
from tile_tileas.pipelining.budget import demand_of, room_of
from tile_tileas.pipelining.candidate import Candidate
from tile_tileas.pipelining.common_ring import CommonRing, Turn, turns_in
from tile_tileas.pipelining.depth import blocks_of
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.wgmma_parts import begun, may_be_begun
from tile_tileas.tma.filling import Tma, TmaLoads


def turns_of(one: Candidate) -> list[Turn]:
    """Tiles of a step by the products of warpgroups that read them, each one of its own; nothing if
    that is not so.
    """
    turns = turns_in(one.loop, one.loads)
    own = all(turn.first == turn.last and may_be_begun(turn.first) for turn in turns)
    return turns if own else []


def stages_in_common(one: Candidate, turns: Sequence[Turn]) -> int:
    """Stages of a ring that all `turns` share: one more than there are tiles, at least, where so
    many fit beside as many blocks as one of each tile has room for; 0 if none do.
    """
    if not turns:
        return 0
    demand = demand_of(one.func, one.loop, one.loads, 1, 0, 0)
    demand = replace(demand, other_bytes=demand.other_bytes + one.engines.overhead)
    room, own = room_of(one.cx.target)[0], demand.stage_bytes
    each = replace(demand, stage_bytes=own // len(turns))
    blocks = blocks_of(demand, room, 1)
    fitting = range(len(turns) + 1, 2 * len(turns))
    return max((count for count in fitting if blocks_of(each, room, count) == blocks), default=0)


class ReleasedRing(CommonRing):
    """One `scf.for`, whose loads are copied by tensor maps alone, and each read by a product of its
    own, which is waited for where it stands. `readers`: warps of the block.
    """

    def __init__(
        self, loop: ir.OpView, turns: Sequence[Turn], maps: TmaLoads, stages: int, readers: int
    ) -> None:
        aligned = [replace(turn, load=maps.aligned(turn.load)) for turn in turns]
        self._tmas: list[Tma] = [maps.part([turn.load], readers) for turn in aligned]
        super().__init__(loop, aligned, self._tmas, stages, released=True)

    def _prepare(self) -> None:
        first, *others = self._tmas
        first.prepare(self._at, self.stages, self.stages)
        for other in others:
            other.share(first)

    def _step(self, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        at, slots = self._at, self._read_all(slot)
        now, last = self.block.arguments[0], self.stages - 1
        for number, (turn, filling) in enumerate(zip(self.turns, self._tmas, strict=True)):
            at.move(ir.InsertionPoint(turn.first))
            filling.wait(at, slots[number], 0)
            done = begun(at, turn.first)
            at.move(ir.InsertionPoint(done))
            # Into the stage that the product before has read; nobody has the first one of those.
            self._fetch_number(now, number + last, self._moved(slots[number], last), again=True)
            at.move(ir.InsertionPoint.after(done))
            filling.release(at, slots[number].index)
        return places

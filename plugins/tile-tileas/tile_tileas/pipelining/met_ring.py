"""Loops by mma.sync whose tiles have one ring of stages in turns; threads meet for each tile.

Of two tiles of a step, K and V, in three stages:

    K(0) and V(0) are filled
    for i:
        wait for K(i); sync      K(i+1) into the third stage, which V(i-1) had      QK, softmax
        wait for V(i); sync      V(i+1) into the stage that K(i) had                PV

The meeting before a tile is read says that it is there for all, and that all have read the one
before, whose stage is filled next. `Multistage` has two stages of both, and one meeting; a ring has
what fits, so that another block finds room beside this one. Of two stages, a tile comes while the
other one is worked on; of one, threads meet behind its readers, too, and fill it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_core.mlir import ir
from tile_tileas.access import fall_back
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dot_plan import family_of
from tile_tileas.pipelining.budget import demand_of, room_of
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.common_ring import CommonRing, Turn, turns_in
from tile_tileas.pipelining.cp_async import CpAsync
from tile_tileas.pipelining.depth import Demand, blocks_of, enough_blocks
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.loads_ahead import left_to_threads
from tile_tileas.pipelining.loops import PRODUCT
from tile_tileas.pipelining.prefetch import Prefetch, prefetch_of

_FAMILY = "mma.sync"


def pipelined(one: Candidate, stages: int) -> Pipelined | None:
    """Have tiles of a loop by mma.sync in turns in one ring, where that is better than `stages` of
    each (0: none fit); None, and nothing is done, where it is not, or cannot be.

    RTX 5090 (model), attention of 16 heads, 4096 x 4096, us, as loops were before and in a ring:
    heads of 128 by 64 of 128 queries and 64 keys 808 and 783, of 256 and 128 1022 and 790, of 64 by
    256 and 128 480 and 394; one stage, of heads of 128 by 128 keys, 817 and 807, of 256 by 64 1596
    and 1634, with spills of 740 and 328 bytes. A100, of 256 by 64 and 64 2302 and 1561.
    """
    turns = _turns_of(one)
    multiplied = [turn.load.load for turn in turns]
    others = [load for load in one.loads if load.load not in multiplied]
    if others and stages:
        return None  # all of them run ahead so
    number = stages_in_turns(one, turns, stages)
    if not number:
        return None
    left_to_threads(
        others, "its tile is none of those that have stages in turns, and two of each do not fit"
    )
    for turn in turns:
        fall_back(turn.load.load, "its stages are those of other tiles in turns", ahead=True)
    new = MetRing(one.loop, turns, number).run()
    how = f"fills {number} stages that its tiles have in turns"
    one.cx.passed(new, how, category="pipeline", name="StagesInTurns")
    return Pipelined(number, 0)


def stages_in_turns(one: Candidate, turns: Sequence[Turn], stages: int) -> int:
    """Stages of a ring that all `turns` share, where more blocks of a multiprocessor fit so, of
    those that keep its tensor cores at work, than with `stages` of each; 0 if they do not.
    """
    if not turns:
        return 0
    room = room_of(one.cx.target)[0]
    demand = demand_of(one.func, one.loop, [turn.load for turn in turns], 1, 0, 0)
    each = replace(demand, stage_bytes=demand.stage_bytes // len(turns))
    enough = enough_blocks(demand)

    def blocks(demand: Demand, stages: int) -> int:
        return min(enough, blocks_of(demand, room, stages))

    fitting = ((blocks(each, count), count) for count in range(1, 2 * len(turns)))
    most, number = max(fitting)
    before = blocks(demand, stages) if stages else 0
    # A loop without stages takes as much memory as one of one stage.
    asked = min(demand.blocks, blocks(each, 1))
    return number if most >= max(asked, 1) and most > before else 0


def _turns_of(one: Candidate) -> list[Turn]:
    """Tiles of a step that go to shared memory, or of those what products by mma.sync read, if
    threads may copy all of them ahead; the copy engine takes longer to bring a single tile.
    """
    body = one.loop.regions[0].blocks[0].operations
    families = {family_of(op) for op in body if op.operation.name == PRODUCT}
    if families != {_FAMILY}:
        return []
    loads: list[Prefetch] = []
    for load in (load for load in one.loads if load.target is not None):
        by_threads = prefetch_of(load.load, one.loop, _no_engine) if load.by_engine else load
        if isinstance(by_threads, str):
            return []
        loads.append(by_threads)
    turns = turns_in(one.loop, loads)
    return turns or turns_in(one.loop, [load for load in loads if not load.to_threads])


def _no_engine(_load: ir.OpView, _buffer: Buffer) -> bool:
    return False


class MetRing(CommonRing):
    """One `scf.for` whose loads threads copy, each read by products of its own."""

    def __init__(self, loop: ir.OpView, turns: Sequence[Turn], stages: int) -> None:
        super().__init__(loop, turns, [CpAsync() for _ in turns], stages, released=False)

    @property
    def _filled_before(self) -> int:
        return max(1, self.stages - 1)

    def _step(self, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        at, slots = self._at, self._read_all(slot)
        now, ahead = self.block.arguments[0], self._filled_before
        for number, (turn, own) in enumerate(zip(self.turns, slots, strict=True)):
            at.move(ir.InsertionPoint(turn.first))
            self.fillings[number][0].wait(at, own, max(0, self.stages - 2))
            at.sync()
            if self.stages == 1:
                at.move(ir.InsertionPoint.after(turn.last))
                at.sync()
            self._fetch_number(now, number + ahead, self._moved(own, ahead), again=True)
        return places

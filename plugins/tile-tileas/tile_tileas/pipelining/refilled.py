"""Loops with room for a stage or two of each buffer: stages are filled again in the step that reads
them, each as soon as its last reader is done.

    every stage is filled
    for i:
        wait for K              QK      its warps have read K:  K of iteration i+S into its stage
        softmax                         .. which arrives meanwhile
        wait for V              PV      its warps have read V:  V of iteration i+S into its stage

A stage of `Multistage` is idle from its last reader to the end of the step. Here it is not, so that
one stage already has copies under way while threads compute. Nobody meets: warps say when they have
read a stage, and the one thread that fills it waits for that.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import added_to, tensor_products
from tile_tileas.mma.families import TENSOR, WARPGROUP
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.loads_ahead import left_to_threads
from tile_tileas.pipelining.multistage import Multistage
from tile_tileas.pipelining.prefetch import Prefetch, readers_of
from tile_tileas.pipelining.released import can_be_released
from tile_tileas.pipelining.released_ring import ReleasedRing, stages_in_common, turns_of
from tile_tileas.pipelining.spotted import Spot
from tile_tileas.pipelining.stage_count import fits_once
from tile_tileas.pipelining.wgmma_parts import begin_in_parts
from tile_tileas.tma.filling import TmaLoads


def pipelined(one: Candidate) -> Pipelined | None:
    """Fill the one stage of each tile that fits again as soon as it has been read, for which
    hints give up blocks of a multiprocessor; or leave loads to threads.

    H100 (model), attention of one query, 32 heads, 64 x 256 x 128: 17.2 us by threads, 9.2 so,
    where a second block would have had room by threads; B200, by tcgen05, 17.8 and 13.5 us.
    """
    fits = fits_once(one) and can_be_released(one.loads, one.maps, (WARPGROUP, TENSOR))
    if not fits or any(added_to(op) is not None for op in tensor_products(one.loop)):
        # Products that add to one sum begin with the last of them, behind where the first one
        # stands, and its stage would have been filled again.
        why = "two stages do not fit into shared memory"
        left_to_threads(one.loads, why)
        one.missed("is not pipelined", why, "LoopNotPipelined")
        return None
    turns = turns_of(one)
    stages = stages_in_common(one, turns)
    if stages:
        new = ReleasedRing(one.loop, turns, one.maps, stages, one.warps).run()
        how = f"fills {stages} stages that its tiles have in turns, when one has been read"
    else:
        new = Refilled(one.loop, one.loads, one.maps, 1, one.warps).run()
        how = "fills the one stage of each tile that fits again as soon as that has been read"
    begin_in_parts(new)
    one.cx.passed(new, how, category="pipeline", name="StagesRefilled")
    return Pipelined(1, 0)


class Refilled(Multistage):
    """One `scf.for`, whose loads are copied by tensor maps alone and read by products alone, which
    are waited for where they stand (`released.can_be_released`). `readers`: warps of the block.
    """

    def __init__(
        self, loop: ir.OpView, loads: Sequence[Prefetch], maps: TmaLoads, stages: int, readers: int
    ) -> None:
        order = [op.operation for op in loop.regions[0].blocks[0].operations]
        by_readers: dict[tuple[int, int], list[Prefetch]] = {}
        for load in loads:
            by_readers.setdefault(readers_of(load, order), []).append(maps.aligned(load))
        spots = [Spot(order[first].opview, order[last].opview) for first, last in by_readers]
        parts = [(maps.part(part, readers), part) for part in by_readers.values()]
        self._spots = [(filling, spot) for (filling, _), spot in zip(parts, spots, strict=True)]
        super().__init__(loop, parts, stages, _NOT_EVEN_THIS_ONE, released=True)

    def _step(self, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        at = self._at
        for load in self.loads:
            self._read(load, slot)
        following = places
        for (filling, spot), (_, loads) in zip(self._spots, self.fillings, strict=True):
            at.move(ir.InsertionPoint(spot.read))
            filling.wait(at, slot, self.ahead - 1)
            at.move(ir.InsertionPoint.after(spot.free))
            filling.release(at, slot.index)
            following = self._fetch_next(slot, places, [(filling, loads)])
        return following


#: Iterations whose stages are still read when the next filling begins, less one: it waits for the
#: readers of the very stage that it fills.
_NOT_EVEN_THIS_ONE = -1

"""Where the mbarriers of copies live: memory that nothing else ever uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Barrier, Buffer
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import row_major

_WORD_BYTES = 8


@dataclass(frozen=True)
class BarrierPlace:
    """Makes barriers in `func`; `again` if the code that uses them may run more than once.

    Their memory lives from the kernel's beginning to its end, as that of an mbarrier may not be
    used for anything else. What runs once begins with barriers in their first phase. What runs
    again makes them anew each time, and ends them behind a meeting of all who wait.
    """

    func: ir.Operation
    again: bool

    def made(self, at: Writer, stages: int, arrivals: int = 1) -> ir.Value:
        """Barriers of so many arrivals, one for each stage; threads see them after a `sync`."""
        block = self.func.regions[0].blocks[0]
        outer = at.place
        at.move(ir.InsertionPoint.at_block_begin(block))
        words = at.create("nv_tileas.alloc_tensor", [], [_words(stages)], _aligned()).result
        at.move(ir.InsertionPoint(block.operations[len(block.operations) - 1]))
        at.create("nv_tileas.dealloc", [words])
        at.move(outer)
        return at.create("nv_tileas.barrier_init", [words], [Barrier(arrivals, stages).type]).result

    def made_once(self, at: Writer, stages: int, arrivals: int) -> ir.Value:
        """Barriers that are made where the kernel begins, for agents, and go on through all runs of
        their code; seen behind the meeting before agents part.
        """
        outer = at.place
        at.move(ir.InsertionPoint.at_block_begin(self.func.regions[0].blocks[0]))
        made = BarrierPlace(self.func, again=False).made(at, stages, arrivals)
        at.move(outer)
        return made

    def done(self, at: Writer, barriers: Sequence[ir.Value]) -> None:
        """End barriers that will be made again."""
        if self.again:
            at.sync()
            for barrier in barriers:
                at.create("nv_tileas.barrier_invalidate", [barrier])


def _words(stages: int) -> ir.Type:
    tile = ir.RankedTensorType.get([1], ir.IntegerType.get_signless(64))
    held = ir.RankedTensorType(distributed(tile, row_major([1])))
    return Buffer(held, "shared", stages).type


def _aligned() -> dict[str, ir.Attribute]:
    i32 = ir.IntegerType.get_signless(32)
    return {"alignment": ir.IntegerAttr.get(i32, _WORD_BYTES)}

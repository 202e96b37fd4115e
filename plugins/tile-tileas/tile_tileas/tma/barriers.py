"""Where the mbarriers of copies live: memory that nothing else ever uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.analysis.buffers import ALLOC
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Barrier, Buffer
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import row_major

_WORD_BYTES = 8
_SYNC, _INIT = "nv_tileas.sync", "nv_tileas.barrier_init"


#: The meeting behind which all threads see barriers that are made where the kernel begins.
BEGINS = "barriers_made"


@dataclass(frozen=True)
class BarrierPlace:
    """Makes barriers in `func`; `again` if the code that uses them may run more than once.

    Their memory lives from the kernel's beginning to its end, as that of an mbarrier may not be
    used for anything else. What runs once has barriers that are made where the kernel begins, all
    in front of one meeting. What runs again makes them anew each time, and ends them behind a
    meeting of all who wait.
    """

    func: ir.Operation
    again: bool

    def made(self, at: Writer, stages: int, arrivals: int = 1) -> ir.Value:
        """Barriers of so many arrivals, one for each stage; threads see them behind `seen`."""
        block = self.func.regions[0].blocks[0]
        outer = at.place
        at.move(ir.InsertionPoint.at_block_begin(block))
        words = at.create("nv_tileas.alloc_tensor", [], [_words(stages)], _aligned()).result
        if self.again:
            at.move(outer)
        type_ = Barrier(arrivals, stages).type
        made = at.create(_INIT, [words], [type_]).result
        at.move(ir.InsertionPoint(block.operations[len(block.operations) - 1]))
        at.create("nv_tileas.dealloc", [words])
        at.move(outer)
        return made

    def seen(self, at: Writer, *, in_cluster: bool = False) -> None:
        """All threads see the barriers made so far, and so do copies; `in_cluster`: threads of all
        blocks of the cluster.
        """
        if self.again:
            at.fence("mbarrier_init")
            at.meet(in_cluster=in_cluster)
            return
        outer = at.place
        block = self.func.regions[0].blocks[0]
        found = [op for op in block.operations if BEGINS in op.attributes]
        if found and (not in_cluster or found[0].operation.name != _SYNC):
            return
        if found:
            at.move(ir.InsertionPoint(found[0]))
        else:
            at.move(ir.InsertionPoint.after(_last_made(block)))
            at.fence("mbarrier_init")
        meeting = at.meet(in_cluster=in_cluster)
        meeting.attributes[BEGINS] = ir.UnitAttr.get()
        for op in found:
            op.operation.erase()
        at.move(outer)

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


def _last_made(block: ir.Block) -> ir.OpView:
    """The last of the barriers with which a kernel begins."""
    made: ir.OpView | None = None
    for op in block.operations:
        if op.operation.name not in (ALLOC, _INIT):
            break
        made = op if op.operation.name == _INIT else made
    assert made is not None, "made before they are seen"
    return made


def _words(stages: int) -> ir.Type:
    tile = ir.RankedTensorType.get([1], ir.IntegerType.get_signless(64))
    held = ir.RankedTensorType(distributed(tile, row_major([1])))
    return Buffer(held, "shared", stages).type


def _aligned() -> dict[str, ir.Attribute]:
    i32 = ir.IntegerType.get_signless(32)
    return {"alignment": ir.IntegerAttr.get(i32, _WORD_BYTES)}

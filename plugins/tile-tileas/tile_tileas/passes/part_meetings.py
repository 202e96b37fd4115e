"""tileas-part-meetings: blocks of a cluster arrive early at their first meeting, and wait late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.dialect.cluster import RELAXED
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.tma.barriers import BEGINS

_MEETING = "nv_tileas.cluster_sync"
#: What a kernel may do before barriers are seen, of which no other block has to hear.
_OWN = ("nv_tileas.alloc_tensor", "nv_tileas.prefetch_tma_desc")
#: Making barriers, and the fence that hands them over.
_MADE = ("nv_tileas.barrier_init", "nv_tileas.fence")
#: One warp takes columns while others wait; it has arrived before.
_MEANWHILE = ("nv_tileas.alloc_tensor", "nv_tileas.alloc_tmem")


@dataclass(frozen=True)
class PartMeetings(Pass):
    """Part the meeting of a cluster's blocks behind which they see each other's barriers: between
    arriving and waiting threads compute where they work, and one warp takes tensor memory.

    It hands over nothing but barriers where nothing else was done before it; then arriving needs
    no fence of its own (PTX ISA, "fence.mbarrier_init").
    """

    name = "tileas-part-meetings"
    anchor = "func.func"
    preserves = ("axis",)
    statistics = {"meetings": "meetings that were parted"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for region in op.regions:
            for block in region.blocks:
                ops = [inner.operation for inner in block.operations]
                for at, meeting in enumerate(ops):
                    if meeting.name == _MEETING and BEGINS in meeting.attributes:
                        _part(meeting, ops[:at], ops[at + 1 :])
                        cx.count("meetings")


def _part(
    meeting: ir.Operation, before: Sequence[ir.Operation], behind: Sequence[ir.Operation]
) -> None:
    how = (RELAXED,) if all(map(_is_making, before)) else ()
    _create("nv_tileas.cluster_arrive", meeting, meeting, how)
    # The last operation of a block ends it, and is not pure.
    waits = next(op for op in behind if not _may_be_between(op))
    _create("nv_tileas.cluster_wait", waits, meeting)
    meeting.erase()


def _is_making(op: ir.Operation) -> bool:
    return op.name in (*_OWN, *_MADE) or _is_plain(op)


def _may_be_between(op: ir.Operation) -> bool:
    return op.name in _MEANWHILE or _is_plain(op)


def _is_plain(op: ir.Operation) -> bool:
    """Whether an operation computes something, and does nothing else."""
    return is_pure(op.opview) and not len(op.regions)


def _create(
    name: str,
    before: ir.Operation,
    place: ir.Operation,
    how: Sequence[str] = (),
) -> None:
    """An operation in front of another one, at the location of `place`; `how` is marks of it."""
    attributes = dict.fromkeys(how, ir.UnitAttr.get())
    ir.Operation.create(
        name, attributes=attributes, loc=place.location, ip=ir.InsertionPoint(before)
    )

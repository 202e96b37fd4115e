"""tileas-unroll-shifts: short loops whose steps read what the one before did, further on."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.analysis.shifted import shifts
from tile_tileas.prepare.loops import FACTOR, write_out
from tile_tileas.sched.facts import facts_of
from tile_tileas.sched.nodes import constant_of, trip_count

#: Iterations of a loop that is written out, and operations of all of them.
_MOST_TRIPS, _MOST_OPERATIONS = 32, 1024


@dataclass(frozen=True)
class UnrollShifts(Pass):
    """Write out short loops in which a gather reads what it read an iteration before, a number of
    elements further on, as those over the taps of a filter do: threads need not load again what
    they have, once it is known which elements these are (tileas-reuse-loads).
    """

    name = "tileas-unroll-shifts"
    anchor = "func.func"
    statistics = {"loops": "loops that are written out"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for region in op.regions:
            for block in region.blocks:
                cx.count("loops", _in_block(block))


def _in_block(block: ir.Block) -> int:
    """Write out the loops of a block, inner ones first; how many."""
    done = 0
    for op in list(block.operations):
        done += sum(_in_block(inner) for region in op.regions for inner in region.blocks)
        if op.operation.name == "scf.for" and _is_short(op):
            step = constant_of(op.operands[2])
            if step is not None and shifts(op, step):
                write_out(op)
                done += 1
    return done


def _is_short(loop: ir.OpView) -> bool:
    """Whether it has few iterations and operations, and none that work together over several."""
    trips = trip_count(loop)
    if not trips or trips > _MOST_TRIPS or FACTOR in loop.attributes:
        return False
    if "unsignedCmp" in loop.attributes:
        return False
    inside = list(loop.regions[0].blocks[0].operations)
    plain = all(not len(op.regions) and facts_of(op.operation.name).kind != "mma" for op in inside)
    return plain and len(inside) * trips <= _MOST_OPERATIONS

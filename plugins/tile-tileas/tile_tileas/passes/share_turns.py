"""tileas-share-turns: threads count the turns of barriers that are in step once for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.analysis.held import held_registers
from tile_tileas.analysis.turns import carried_phases, same_turns, turns_of
from tile_tileas.kernel_spec import num_warps, occupancy, registers_of_thread

_INIT = "nv_tileas.barrier_init"


@dataclass(frozen=True)
class ShareTurns(Pass):
    """Wait for the phase of the barrier whose turn came just before, where barriers are in step and
    threads are short of registers: a count is one of each thread through all of a loop, and chained
    products have four.

    Behind tileas-insert-barriers, which asks of each wait whether turns are counted for it.
    """

    name = "tileas-share-turns"
    anchor = "func.func"
    preserves = ("axis",)
    statistics = {"shared": "turns and phases that a turn before them stands for"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        entry = op.regions[0].blocks[0]
        if all(inner.operation.name != _INIT for inner in entry.operations):
            return
        turns = turns_of(op)
        same, phases = same_turns(turns), list(carried_phases(turns))
        room = registers_of_thread(cx.target, num_warps(op), occupancy(op))
        if not (same or phases) or held_registers(op) <= room:
            return
        for argument, turn in phases:
            turn.op.operation.move_before(argument.owner.operations[0].operation)
            argument.replace_all_uses_with(turn.op.results[0])
        for turn, stands in same.items():
            turn.results[0].replace_all_uses_with(stands.results[0])
            turn.operation.erase()
        cx.count("shared", len(same) + len(phases))

"""Stage 3, sliceAndFuse: hints of operations are put where schedules look for them. Marks only.

Cheap operations without effects get `tileas.recomputable`: a schedule of several stages makes their
values again rather than carrying them. Loops get what their operations ask about slices: the
smallest number of slices, and the largest atom.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.sched.bodies import RECOMPUTABLE
from tile_tileas.sched.facts import is_cheap

ATOM = "tileas.preferred_atom_size"
SLICES = "tileas.max_num_slices_for_non_reduce_axis"
_LOOPS = ("scf.for", "scf.while")


def mark_loops(func: ir.Operation) -> int:
    """Mark the loops of a function and what is cheap in them; how many marks are new."""
    return _block_marks(func, in_loop=False)


def _block_marks(holder: ir.Operation | ir.OpView, *, in_loop: bool) -> int:
    marked = 0
    for region in holder.regions:
        for block in region.blocks:
            for op in block.operations:
                if in_loop and RECOMPUTABLE not in op.attributes and is_cheap(op):
                    op.attributes[RECOMPUTABLE] = ir.UnitAttr.get()
                    marked += 1
                is_loop = op.operation.name in _LOOPS
                marked += _block_marks(op, in_loop=is_loop) if op.regions else 0
                marked += _hints(op) if is_loop else 0
    return marked


def _hints(loop: ir.OpView) -> int:
    """Put the hints of a loop's operations on the loop, where it has none of its own."""
    marked = 0
    for key, choose in ((ATOM, max), (SLICES, min)):
        given = [
            op.attributes[key].value
            for region in loop.regions
            for block in region.blocks
            for op in block.operations
            if key in op.attributes and isinstance(op.attributes[key], ir.IntegerAttr)
        ]
        if given and key not in loop.attributes:
            i32 = ir.IntegerType.get_signless(32)
            loop.attributes[key] = ir.IntegerAttr.get(i32, choose(given))
            marked += 1
    return marked

"""Stage 5, compactMemLayout: buffers that never hold something at once share shared memory.

Offsets are those that tileas-allocate-shared would give as tightly as it can. Schedules take two
buffers whose bytes overlap for one (`sched.memory`), so that they stay apart in time. Programs
have no buffers yet where the pipelines of this repository schedule them.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.target import Target
from tile_tileas.analysis.buffers import OFFSET, lives_of
from tile_tileas.passes.allocate_shared import place


def compact(func: ir.Operation, target: Target) -> int:
    """Give every buffer its place; bytes in all.

    Raises:
        CompileError: they take more than the target has.
    """
    lives = lives_of(func)
    total = place(lives, 0)
    i32 = ir.IntegerType.get_signless(32)
    for life in lives:
        if life.offset + life.size > target.max_shared:
            raise error_at(
                life.op,
                "fails to assign smem buffer",
                hint=f"{life.size} bytes at {life.offset}, of {target.max_shared}",
            )
        life.op.attributes[OFFSET] = ir.IntegerAttr.get(i32, life.offset)
    return total

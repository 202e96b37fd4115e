"""tileas-allocate-shared: where in shared memory each buffer lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_core.target import Target
from tile_tileas.analysis.buffers import OFFSET, Life, lives_of
from tile_tileas.kernel_spec import num_warps
from tile_tileas.pipelining.multistage import PIPELINED

#: Bytes that the system takes of a multiprocessor's shared memory for each block, and for which
#: the largest block of a target leaves room (CUDA programming guide, compute capabilities).
RESERVED = 1024
#: Warps of a multiprocessor that hide one another's waits.
ENOUGH_WARPS = 16
#: Buffers that the error about too much of them names.
_NAMED = 3
#: What a buffer passes through, and what no message should be about.
_MOVES = ("nv_tileas.copy", "nv_tileas.buffer_view", "nv_tileas.buffer_reinterpret")


def place(lives: Sequence[Life], separate_bytes: int) -> int:
    """Set the offsets of buffers, such that those that live at once lie apart; bytes in all.

    One after the other up to `separate_bytes`, then from the start again, where nothing lives:
    what lies apart needs no barrier between the last reads of one and the first writes of the next.
    """
    top = total = 0
    placed: list[Life] = []
    for life in lives:
        rivals = sorted((o for o in placed if o.meets(life)), key=lambda other: other.offset)
        start = top if top + life.size <= separate_bytes else 0
        offset = _free(rivals, life, start)
        if start and offset + life.size > separate_bytes:
            offset = min(offset, _free(rivals, life, 0))
        life.offset = offset
        placed.append(life)
        top = offset + life.size
        total = max(total, top)
    return total


def _free(rivals: Sequence[Life], life: Life, start: int) -> int:
    """The lowest aligned offset from `start` on at which no rival lies."""
    offset = _aligned(start, life.alignment)
    for other in rivals:
        if other.offset < offset + life.size and offset < other.offset + other.size:
            offset = _aligned(other.offset + other.size, life.alignment)
    return offset


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _behind(alloc: ir.OpView) -> ir.Operation:
    """The operation for which there is a buffer: one that works on it and is no copy."""
    users = [use.owner.operation for use in alloc.results[0].uses]
    others = [user for user in users if user.name not in _MOVES]
    return next(iter([*others, *users, alloc.operation]))


def blocks_of(total: int, target: Target) -> int:
    """Blocks that a multiprocessor holds, by shared memory alone, of `total` bytes each."""
    return (target.max_shared + RESERVED) // (total + RESERVED)


def _too_much(life: Life, lives: Sequence[Life], total: int, most: int) -> CompileError:
    """The error at what the buffer that does not fit is for; notes name the largest buffers."""
    error = error_at(
        _behind(life.op), f"uses too much shared data (0x{total:x} bytes, 0x{most:x} max)"
    )
    for other in sorted(lives, key=lambda one: -one.size)[:_NAMED]:
        error.noted(f"0x{other.size:x} bytes are for '{_behind(other.op).name}'")
    return error


@dataclass(frozen=True)
class AllocateShared(Pass):
    """Give buffers their places in shared memory: side by side while it is cheap, then reused."""

    name = "tileas-allocate-shared"
    anchor = "func.func"
    statistics = {"bytes": "shared memory of the kernel"}

    # Separate places save barriers; beyond this they would cost occupancy.
    separate_bytes: int = option(32768, "bytes up to which places are not reused")

    def _place(self, lives: Sequence[Life], func: ir.Operation, target: Target) -> int:
        """Apart where that is cheap; as tight as can be where otherwise too few warps, or not even
        one block, would fit into a multiprocessor.
        """
        # Stages of loops take no other buffer's room: what comes behind the loop lies apart, too.
        staged = sum(life.size for life in lives if PIPELINED in life.op.attributes)
        total = place(lives, self.separate_bytes + staged)
        blocks = blocks_of(total, target)
        if blocks and not (staged and blocks * num_warps(func) < ENOUGH_WARPS):
            return total
        tight = place(lives, 0)
        if blocks_of(tight, target) > blocks:
            return tight
        return place(lives, self.separate_bytes + staged)

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        i32 = ir.IntegerType.get_signless(32)
        lives = lives_of(op)
        total = self._place(lives, op, cx.target)
        for life in lives:
            if life.offset + life.size > cx.target.max_shared:
                raise _too_much(life, lives, total, cx.target.max_shared)
            life.op.attributes[OFFSET] = ir.IntegerAttr.get(i32, life.offset)
        cx.count("bytes", total)

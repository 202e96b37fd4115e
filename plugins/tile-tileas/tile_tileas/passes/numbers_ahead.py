"""tileas-numbers-ahead: single numbers that loops load are loaded an iteration ahead."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.analysis.users import counting_loops
from tile_tileas.kernel_spec import num_warps, occupancy, registers_of_thread

_LOOPS = ("scf.for", "scf.while")
#: Registers of a thread, as hints of blocks leave them, from which on some are spared. B200
#: (model), layer norm of 8192 bf16 in eight blocks of 32 registers 14.8 us, 22.5 in fewer of 40.
_LEAST_REGISTERS = 64
#: Behind which nothing is loaded earlier than it stands.
_WAITS = (
    "nv_tileas.async_wait", "nv_tileas.barrier_wait", "nv_tileas.cluster_sync",
    "nv_tileas.cluster_wait", "nv_tileas.dot_wait", "nv_tileas.sync",
)  # fmt: skip


@dataclass(frozen=True)
class NumbersAhead(Pass):
    """Load few numbers of loops whose iterations wait for something an iteration ahead, in
    registers.

    Loops that wait for nothing are left to what generates code, which loads for several iterations
    at once: B200 (model), sums over 16 neighbours of 100,000 points 225 us, 277 one by one. Numbers
    that others of the same loop find their place by stay where they are, as do those that accesses
    which may conflict wait for.
    """

    name = "tileas-numbers-ahead"
    anchor = "func.func"
    statistics = {"numbers": "loads that are an iteration ahead"}

    strategy: str = option("unspecialize", "'none' leaves all loops as they are")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        given = registers_of_thread(cx.target, num_warps(op), occupancy(op))
        if self.strategy == "none" or given < _LEAST_REGISTERS:
            return
        for loop in list(counting_loops(op)):
            if _waits(loop):
                cx.count("numbers", _ahead(loop))


def _ahead(loop: ir.OpView) -> int:
    """Load what can be loaded ahead of a loop; how many numbers."""
    from tile_tileas.pipelining.numbers_ahead import load_ahead, numbers_of  # loops alone need it

    numbers = numbers_of(loop)
    if numbers:
        load_ahead(loop, numbers)
    return len(numbers)


def _waits(op: ir.OpView) -> bool:
    """Whether there is a loop in the body of one, or threads wait in it."""
    return any(
        inner.operation.name in (*_LOOPS, *_WAITS) or _waits(inner)
        for region in op.regions
        for block in region.blocks
        for inner in block.operations
    )

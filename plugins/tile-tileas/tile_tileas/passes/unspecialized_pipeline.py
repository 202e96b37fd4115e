"""tileas-unspecialized-pipeline: loads of a loop's products run ahead, all warps do everything."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.copying.ahead import ESTIMATE, SPECIALIZE
from tile_tileas.pipelining import (
    refilled,
    specialized,
    tcgen05_in_flight,
    tcgen05_in_step,
    tcgen05_led,
    tcgen05_turned,
    together,
)
from tile_tileas.pipelining.candidate import Candidate, Pipelined, loops_with_products


@dataclass(frozen=True)
class UnspecializedPipeline(Pass):
    """Load what products of later iterations read while those of this one are made.

    By tensor maps where the plan of accesses says so and the buffer is one that they fill, else by
    cp.async, into as many stages of each buffer as cover the latency of memory and fit. Loops
    that cannot be are left as they are, with a remark that says why.
    """

    name = "tileas-unspecialized-pipeline"
    anchor = "func.func"
    statistics = {
        "loops": "loops that were pipelined",
        "stages": "stages of those loops",
        "in_flight": "products that stay in flight from one iteration to the next",
    }

    strategy: str = option(
        "unspecialize",
        "'none' leaves all loops as they are; 'warp-specialize' marks loops that copy for products "
        "of warpgroups, for 'tileas-specialize-warps', 'estimate' those where that pays",
        choices=("none", "unspecialize", SPECIALIZE, ESTIMATE),
    )
    num_stages: int = option(
        4,
        "iterations in flight at most; twice as many where products of tcgen05 are in flight, and, "
        "from 4 on, those of wgmma",
    )
    fragments_ahead: bool = option(
        True, "fragments of mma.sync are read while the part of K before them is multiplied"
    )

    in_turn: bool = option(
        True,
        "products by tcgen05 of loops that run again have two accumulators in turn, and agents of "
        "their own",
    )
    across: bool = option(
        True, "loops that two threads lead fill stages of their next run before what follows them"
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if self.strategy == "none" or self.num_stages < 2:
            return
        for loop in list(loops_with_products(op.regions[0])):
            candidate = Candidate.of(op, loop, self.num_stages, cx)
            made = self._pipelined(candidate) if candidate.loads else None
            if made is not None:
                cx.count("in_flight", made.in_flight)
                cx.count("loops")
                cx.count("stages", made.stages)

    def _pipelined(self, one: Candidate) -> Pipelined | None:
        """What became of a loop, by the first way that takes it; None if it is as it was."""
        made = tcgen05_turned.pipelined(one) or specialized.pipelined(one, self.strategy)
        if made is not None:
            return made
        by_tensor = tcgen05_in_flight.products_to_keep(one.func, one.loop, one.filled)
        if by_tensor:
            ways = {"in_turn": self.in_turn, "across": self.across}
            made = tcgen05_led.pipelined(one, by_tensor, **ways)
            made = made or together.with_tensor_memory(one, by_tensor)
        else:
            made = tcgen05_in_step.pipelined(one)
            made = made or together.pipelined(one, fragments_ahead=self.fragments_ahead)
        return made or refilled.pipelined(one)

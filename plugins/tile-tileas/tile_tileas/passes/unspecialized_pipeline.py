"""tileas-unspecialized-pipeline: loads of a loop's products run ahead, all warps do everything."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.copying.ahead import ESTIMATE, SPECIALIZE
from tile_tileas.pipelining.loops import loops_with_products


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
        "carried": "loads that threads make a step ahead, in registers",
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
    take_over: bool = option(
        True,
        "blocks whose loop of products by tcgen05 could have agents of its own take over tile "
        "blocks that have not been launched",
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if self.strategy == "none" or self.num_stages < 2:
            return
        loops = list(loops_with_products(op.regions[0]))
        if not loops:
            return
        # Not before: most kernels have no products, and no use for these modules.
        from tile_tileas.pipelining.ways import Ways

        ways = Ways(self.strategy, self.fragments_ahead, self.in_turn, self.across, self.take_over)
        for loop in loops:
            made = ways.pipelined(op, loop, self.num_stages, cx)
            if made is not None:
                cx.count("in_flight", made.in_flight)
                cx.count("loops")
                cx.count("stages", made.stages)

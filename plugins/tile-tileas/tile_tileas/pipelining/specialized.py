"""Which loops an agent of its own copies for (`apart`), and what their products do meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.passes.convert_tileaa import num_warps
from tile_tileas.pipelining.apart import Apart, refusal
from tile_tileas.pipelining.chains import Chain
from tile_tileas.pipelining.depth import LEAST
from tile_tileas.pipelining.overlap import chain_to_overlap, overlap
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.released import can_be_released, release
from tile_tileas.pipelining.wgmma_in_flight import LAG, Kept, keep_in_flight, products_to_keep
from tile_tileas.remedies import remedy
from tile_tileas.tma.filling import TmaLoads


@dataclass(frozen=True)
class Specialized:
    """A loop that is to be divided. `stages`, `lag` of which are still read in the next step;
    products `kept` in flight, or those of `chain` beside each other.
    """

    func: ir.Operation
    loop: ir.OpView
    loads: Sequence[Prefetch]
    maps: TmaLoads
    stages: int
    lag: int
    chain: Chain | None
    kept: Sequence[Kept]

    @staticmethod
    def of(
        func: ir.Operation,
        loop: ir.OpView,
        loads: Sequence[Prefetch],
        maps: TmaLoads,
        stages: Callable[[int], int],
        cx: PassContext,
    ) -> Specialized | None:
        """None, and a remark, if one agent does all. `stages` of a lag; 0 if they do not fit."""
        filled = [load.target.alloc.results[0] for load in loads if load.target is not None]
        problem = refusal(func, loop, loads)
        if not can_be_released(loads, maps):
            problem = "not all its loads are copied by tensor maps, for products of wgmma alone"
        if problem is None:
            chain = chain_to_overlap(func, loop, filled, cx)
            kept = [] if chain else products_to_keep(loop, filled)
            lag = LAG if kept or chain else 0
            number = stages(lag)
            if number:
                return Specialized(func, loop, loads, maps, number, lag, chain, kept)
            problem = f"{LEAST + lag} stages do not fit into shared memory"
        cx.missed(
            loop.operation,
            f"copies and multiplies in one agent: {problem}",
            category="pipeline",
            name="NotSpecialized",
            hint=remedy([problem]),
        )
        return None

    def run(self, cx: PassContext) -> None:
        """Divide it."""
        readers = num_warps(self.func)
        made = Apart(self.func, self.loop, self.loads, self.maps, self.stages, self.lag, readers)
        new = made.run()
        if self.chain is not None:
            new = overlap(new.opview, self.chain, made, None, cx)
        elif self.kept:
            keep_in_flight(new, self.kept)
        release(new, made.filling, self.stages, self.lag, begun=self.chain is not None)
        cx.passed(
            new, "another agent copies for its products", category="pipeline", name="Specialized"
        )

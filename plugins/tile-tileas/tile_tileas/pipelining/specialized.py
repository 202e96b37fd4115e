"""Which loops an agent of its own copies for (`apart`), and what their products do meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.dot_plan import PROMOTES, family_of
from tile_tileas.mma.families import WARPGROUP
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

_DOT = "nv_tileas.dot"


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
        filled = _filled(loads)
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

    @staticmethod
    def pays(
        func: ir.Operation, loop: ir.OpView, loads: Sequence[Prefetch], maps: TmaLoads
    ) -> bool:
        """Whether a loop is estimated to be faster divided: it waits for its product in each step,
        as where threads read operands from the stages or sums leave the tensor cores, and another
        thread may begin copies meanwhile. Products in flight leave the others time for that (within
        1 % of one agent), attention is slower, and where threads both read operands and add, there
        are not the registers: e4m3 of 128x256x128 spills.
        """
        products = [op for op in loop.regions[0].blocks[0].operations if op.operation.name == _DOT]
        return (
            len(products) == 1
            and family_of(products[0]) == WARPGROUP
            and not (PROMOTES in products[0].attributes and any(one.to_threads for one in loads))
            and not products_to_keep(loop, _filled(loads))
            and can_be_released(loads, maps)
            and refusal(func, loop, loads) is None
        )

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


def _filled(loads: Sequence[Prefetch]) -> list[ir.Value]:
    """The buffers that loads fill."""
    return [load.target.alloc.results[0] for load in loads if load.target is not None]

"""Which loops an agent of its own copies for (`apart`), and what their products do meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_tileas.copying.ahead import ESTIMATE, SPECIALIZE
from tile_tileas.dot_plan import PROMOTES, family_of
from tile_tileas.mma.families import WARPGROUP
from tile_tileas.pipelining.apart import Apart, refusal
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.chains import Chain
from tile_tileas.pipelining.depth import LEAST
from tile_tileas.pipelining.loops import PRODUCT
from tile_tileas.pipelining.overlap import chain_to_overlap, overlap
from tile_tileas.pipelining.released import can_be_released, release
from tile_tileas.pipelining.stage_count import stages_of
from tile_tileas.pipelining.wgmma_in_flight import LAG, Kept, keep_in_flight, products_to_keep


def pipelined(one: Candidate, strategy: str) -> Pipelined | None:
    """Divide the loop into one that copies and one that multiplies, if the `strategy` says so;
    None if it is left as it is.
    """
    if strategy == ESTIMATE:
        if not _pays(one):
            return None
    elif strategy != SPECIALIZE:
        return None
    divided = _Divided.of(one)
    if divided is None:
        return None
    divided.run()
    return Pipelined(divided.stages, len(divided.kept))


@dataclass(frozen=True)
class _Divided:
    """A loop that is to be divided. `stages`, `lag` of which are still read in the next step;
    products `kept` in flight, or those of `chain` beside each other.
    """

    one: Candidate
    stages: int
    lag: int
    chain: Chain | None
    kept: Sequence[Kept]

    @staticmethod
    def of(one: Candidate) -> _Divided | None:
        """None, and a remark, if one agent does all."""
        problem = refusal(one.func, one.loop, one.loads)
        if not can_be_released(one.loads, one.maps):
            problem = "not all its loads are copied by tensor maps, for products of wgmma alone"
        if problem is None:
            chain = chain_to_overlap(one.func, one.loop, one.filled, one.cx)
            kept = [] if chain else products_to_keep(one.loop, one.filled)
            lag = LAG if kept or chain else 0
            number = stages_of(one, lag, apart=True)
            if number:
                return _Divided(one, number, lag, chain, kept)
            problem = f"{LEAST + lag} stages do not fit into shared memory"
        one.missed("copies and multiplies in one agent", problem, "NotSpecialized")
        return None

    def run(self) -> None:
        """Divide it."""
        one = self.one
        made = Apart(one.func, one.loop, one.loads, one.maps, self.stages, self.lag, one.warps)
        new = made.run()
        if self.chain is not None:
            new = overlap(new.opview, self.chain, made, None, one.cx)
        elif self.kept:
            keep_in_flight(new, self.kept)
        release(new, made.filling, self.stages, self.lag, begun=self.chain is not None)
        one.cx.passed(
            new, "another agent copies for its products", category="pipeline", name="Specialized"
        )


def _pays(one: Candidate) -> bool:
    """Whether a loop is estimated to be faster divided: it waits for its product in each step,
    as where threads read operands from the stages or sums leave the tensor cores, and another
    thread may begin copies meanwhile. Products in flight leave the others time for that (within
    1 % of one agent), attention is slower, and where threads both read operands and add, there
    are not the registers: e4m3 of 128x256x128 spills.
    """
    body = one.loop.regions[0].blocks[0].operations
    products = [op for op in body if op.operation.name == PRODUCT]
    return (
        len(products) == 1
        and family_of(products[0]) == WARPGROUP
        and not (PROMOTES in products[0].attributes and any(x.to_threads for x in one.loads))
        and not products_to_keep(one.loop, one.filled)
        and can_be_released(one.loads, one.maps)
        and refusal(one.func, one.loop, one.loads) is None
    )

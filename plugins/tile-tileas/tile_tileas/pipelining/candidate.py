"""A loop with products whose loads can run ahead: what every way of pipelining it is asked with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.copying.engines import EngineLoads
from tile_tileas.dot_plan import family_of
from tile_tileas.kernel_spec import num_warps
from tile_tileas.mma.families import TENSOR
from tile_tileas.pipelining.loads_ahead import left_to_threads, numbers_of_places, prefetches
from tile_tileas.pipelining.loops import PRODUCT
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.remedies import remedy
from tile_tileas.tma.filling import TmaLoads


class Pipelined(NamedTuple):
    """What became of a loop: the stages of its buffers, and how many of its products stay in flight
    from one iteration to the next.
    """

    stages: int
    in_flight: int


@dataclass(frozen=True)
class Candidate:
    """A loop that may be pipelined, in one of the ways of this package.

    Attributes:
        func: the kernel.
        loop: an `scf.for` with products of its own.
        loads: those of its loads that can run ahead.
        numbers: loads that nothing but places of those is made of.
        engines: who copies which of them.
        num_stages: iterations in flight at most, by the options.
        cx: the target, and where remarks go.
    """

    func: ir.Operation
    loop: ir.OpView
    loads: Sequence[Prefetch]
    numbers: Sequence[ir.OpView]
    engines: EngineLoads
    num_stages: int
    cx: PassContext

    @staticmethod
    def of(func: ir.Operation, loop: ir.OpView, num_stages: int, cx: PassContext) -> Candidate:
        """Finds the loads, with a remark for each that cannot run ahead."""
        engines = EngineLoads(func, loop, cx.analysis(BoundsAnalysis, func))
        body = loop.regions[0].blocks[0].operations
        families = {family_of(op) for op in body if op.operation.name == PRODUCT}
        loads = prefetches(loop, engines.takes, cx, meets=families == {TENSOR}, numbers=True)
        numbers = numbers_of_places(loads)
        left_to_threads(numbers, "it places other tiles, and who copies those loads it")
        loads = [load for load in loads if load not in numbers]
        placing = [number.load for number in numbers]
        return Candidate(func, loop, loads, placing, engines, num_stages, cx)

    @property
    def maps(self) -> TmaLoads:
        """Those of the loads that tensor maps copy."""
        return self.engines.tma

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return num_warps(self.func)

    @property
    def filled(self) -> list[ir.Value]:
        """The buffers that loads fill, in place of stages of their own."""
        targets = [load.target for load in self.loads if load.target is not None]
        return [target.alloc.results[0] for target in targets]

    def missed(self, what: str, why: str, name: str) -> None:
        """A remark on `what` the loop does without something better, and what may be done."""
        self.cx.missed(
            self.loop.operation,
            f"{what}: {why}",
            category="pipeline",
            name=name,
            hint=remedy([why]),
        )

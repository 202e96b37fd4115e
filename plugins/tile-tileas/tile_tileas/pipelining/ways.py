"""The ways of pipelining a loop with products, in the order in which they are tried."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.pipelining import (
    refilled,
    specialized,
    tcgen05_in_flight,
    tcgen05_in_step,
    tcgen05_led,
    tcgen05_turned,
    together,
)
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.made_operands import made_by_threads, read_by
from tile_tileas.pipelining.wgmma_in_flight import Kept


@dataclass(frozen=True)
class Ways:
    """The options of `tileas-unspecialized-pipeline` that choose among them."""

    strategy: str
    fragments_ahead: bool
    in_turn: bool
    across: bool
    take_over: bool

    def pipelined(
        self, func: ir.Operation, loop: ir.OpView, num_stages: int, cx: PassContext
    ) -> Pipelined | None:
        """What became of a loop, by the first way that takes it; None if it is as it was."""
        one = Candidate.of(func, loop, num_stages, cx)
        if not one.loads:
            return None
        made = tcgen05_turned.pipelined(one) or specialized.pipelined(one, self.strategy)
        if made is not None:
            return made
        by_tensor, by_threads = _in_flight(one)
        if by_tensor:
            made = tcgen05_led.pipelined(
                one,
                by_tensor,
                in_turn=self.in_turn,
                across=self.across,
                take_over=self.take_over,
            ) or together.with_tensor_memory(one, by_tensor, by_threads)
        if not by_tensor or (made is None and by_threads):
            made = tcgen05_in_step.pipelined(one)
            made = made or together.pipelined(one, fragments_ahead=self.fragments_ahead)
        return made or refilled.pipelined(one)


def _in_flight(one: Candidate) -> tuple[list[Kept], list[ir.OpView]]:
    """Products by tcgen05 that may stay in flight, and the buffers that threads fill for them, and
    for no others, in each step.
    """
    by_threads = made_by_threads(one.loop, one.filled)
    while True:
        ready = [*one.filled, *(op.results[0] for op in by_threads)]
        products = tcgen05_in_flight.products_to_keep(one.func, one.loop, ready)
        alone = read_by(by_threads, products)
        if not products or len(alone) == len(by_threads):
            return products, by_threads
        by_threads = alone

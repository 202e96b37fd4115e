"""What a loop has whose products are begun while sums of its last run leave tensor memory: how many
accumulators, how many stages, and how much of what is stored has memory at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import is_of_pair, tensor_products
from tile_tileas.analysis.constants import is_zero
from tile_tileas.dot_plan import tensor_plan_of
from tile_tileas.kernel_spec import num_ctas, occupancy
from tile_tileas.mma.tensor import TensorPlan
from tile_tileas.pipelining.apart import refusal
from tile_tileas.pipelining.candidate import Candidate
from tile_tileas.pipelining.stage_count import led_by_threads
from tile_tileas.pipelining.wgmma_in_flight import Kept
from tile_tileas.tma.slices import IN_TURN, spared_by_slices

#: Warps of the agents beside the one that has the rest, and of a block at most.
BESIDE, _MOST_WARPS = 2, 32
#: Accumulators at most, and blocks of a pair.
_MOST, _OF_PAIR = 2, 2
#: How many slices of what is stored may have memory at once; 0: all of them.
_SLICES = (0, IN_TURN, 1)
#: Registers of a thread beside an accumulator that is read at once.
_BESIDE_SUMS = 64


@dataclass(frozen=True)
class Turns:
    """What one such loop has.

    Attributes:
        accumulators: one, or two in turn.
        stages: of its buffers.
        slices: of what is stored of the sums that have memory at once; 0: all.
        at_once: whether threads read all of an accumulator before they store some of it.
        blocks: of a multiprocessor that this leaves room for.
        registers: of a thread for what it reads at once of an accumulator, and what is beside it.
    """

    accumulators: int
    stages: int
    slices: int
    at_once: bool
    blocks: int
    registers: int

    @staticmethod
    def of(
        one: Candidate, products: Sequence[Kept], turned: Collection[ir.Operation] = ()
    ) -> Turns | str:
        """What the loop of `one` may have, whose `products` stay in flight; or why it cannot. Of
        operations `turned` agents will do something else.
        """
        plan = tensor_plan_of(products[0].op, one.warps)
        why = _problem(one, products, plan) or refusal(
            one.func, one.loop, one.loads, together=True, turned=turned
        )
        if why is not None:
            return why
        sums = one.loop.results[products[0].place]
        spared = {
            several: spared_by_slices(sums, plan.buffer, several) if several else 0
            for several in _SLICES
        }
        known = led_by_threads(one, products, apart=True)
        found = {several: known.stages(saved) for several, saved in spared.items()}
        slices = max(found, key=found.__getitem__)
        if not found[slices]:
            return "two stages do not fit beside what follows it"
        accumulators = _fitting(plan, occupancy(one.func))
        columns = plan.taken + (accumulators - 1) * plan.columns
        needed = plan.registers + _BESIDE_SUMS
        threads = one.cx.target.warp_size * (one.warps + BESIDE) * occupancy(one.func)
        return Turns(
            accumulators=accumulators,
            stages=found[slices],
            slices=slices,
            at_once=accumulators == 1 and needed * threads <= one.cx.target.registers,
            blocks=known.blocks(found[slices], columns, spared[slices]),
            registers=0 if spared[1] else needed,
        )  # fmt: skip


def _problem(one: Candidate, products: Sequence[Kept], plan: TensorPlan) -> str | None:
    """Why sums of the loop cannot leave tensor memory while others are made; None if they can."""
    func, loop = one.func, one.loop
    if len(products) != 1 or len(list(tensor_products(func))) != 1:
        return "the kernel has other products"
    kept = products[0]
    if len(loop.results) != 1 or not is_zero(loop.operands[3 + kept.place]):
        return "it begins with other sums than zero"
    if not _fitting(plan, occupancy(func)):
        return f"an accumulator of {plan.columns} columns does not fit into tensor memory"
    if one.warps + BESIDE > _MOST_WARPS:
        return "the block has no warps left"
    if is_of_pair(kept.op) and num_ctas(func) > _OF_PAIR:
        return "there are several pairs in a cluster"
    return None


def _fitting(plan: TensorPlan, blocks: int) -> int:
    """Accumulators that fit into tensor memory beside what else the product has there."""
    beside = plan.taken - plan.columns
    return min(_MOST, (COLUMNS // blocks - beside) // plan.columns)

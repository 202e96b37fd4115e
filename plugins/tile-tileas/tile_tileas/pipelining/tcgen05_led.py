"""Loops that do nothing but copy by tensor maps and begin products by tcgen05: single threads lead
them for all (`tcgen05_in_flight`), for one run at a time or for all of their runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_tileas.analysis.accumulators import is_of_pair
from tile_tileas.pipelining import across as runs_across
from tile_tileas.pipelining import in_turn as runs_in_turn
from tile_tileas.pipelining import taking_over, tcgen05_in_flight
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.multistage import Multistage, is_inside_loop
from tile_tileas.pipelining.stage_count import stages_of
from tile_tileas.pipelining.wgmma_in_flight import Kept


def pipelined(
    one: Candidate, products: Sequence[Kept], *, in_turn: bool, across: bool, take_over: bool
) -> Pipelined | None:
    """Let single threads lead a loop, of which `products` stay in flight; None if it is left as it
    is. One that runs again has accumulators `in_turn`, or goes on `across` its runs, where that is
    allowed and possible; one that does not runs again for blocks that are not launched yet
    (`take_over`).
    """
    taken = len(one.maps.copies)
    if not tcgen05_in_flight.is_led(one.loop, one.loads, products, taken, one.numbers):
        return None
    made: Pipelined | None = None
    if is_inside_loop(one.loop):
        made = runs_in_turn.pipelined(one, products) if in_turn else None
        made = made or (runs_across.pipelined(one, products) if across else None)
    elif in_turn and take_over:
        made = taking_over.pipelined(one, products)
    return made or _one_run(one, products)


def _one_run(one: Candidate, products: Sequence[Kept]) -> Pipelined | None:
    stages = stages_of(one, kept=products, led=True)
    if not stages:
        return None
    # Where blocks fill stages of each other, one thread says what all of its block have read.
    copier, pair = not one.maps.is_shared, is_of_pair(products[0].op)
    fillings = one.engines.fillings(one.loads, pair=pair, copier=copier)
    made = Multistage(one.loop, fillings, stages, phased=True, led=True)
    tcgen05_in_flight.keep_in_flight(one.func, made.run(), made, products, copier=copier)
    return Pipelined(stages, len(products))

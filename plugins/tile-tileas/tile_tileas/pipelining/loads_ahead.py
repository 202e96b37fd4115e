"""The loads of a loop that run ahead of it, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.access import fall_back
from tile_tileas.analysis.tokens import LOADS
from tile_tileas.pipelining.awaited import wait_for_no_reads
from tile_tileas.pipelining.prefetch import Prefetch, Takes, prefetch_of
from tile_tileas.remedies import remedy


def prefetches(
    loop: ir.OpView, takes: Takes, cx: PassContext, *, meets: bool = False, numbers: bool = False
) -> list[Prefetch]:
    """Loads of the loop that can run ahead, by cp.async unless `takes`; a remark for each that
    cannot, and in their plans what they are left to. `meets`, `numbers`: as for `prefetch_of`.
    """
    found: list[Prefetch] = []
    for op in list(loop.regions[0].blocks[0].operations):
        if op.operation.name not in LOADS:
            continue
        wait_for_no_reads(op, loop)
        made = prefetch_of(op, loop, takes, meets=meets, numbers=numbers)
        if isinstance(made, str):
            cx.missed(
                op.operation,
                f"does not run ahead of its loop: {made}",
                category="pipeline",
                name="LoadNotAhead",
                hint=remedy([made]),
            )
            fall_back(op, made)
        else:
            if not made.by_engine:
                fall_back(op, "its buffer is no sequence of what is copied at once", ahead=True)
            found.append(made)
    return found


def numbers_of_places(loads: Sequence[Prefetch]) -> list[Prefetch]:
    """Those of the loads that places of others are made of, and nothing else: who copies those
    loads such a number again.
    """
    return [load for load in loads if _is_for_places(load, loads)]


def _is_for_places(load: Prefetch, loads: Sequence[Prefetch]) -> bool:
    """Whether nothing but the places of other loads depends on what is loaded."""
    others = [other for other in loads if other is not load]
    placing = {op.operation for other in others for op in other.slice.ops}
    placed = {other.load.operation for other in others}
    tile, *tokens = load.load.results
    if load.load.operation not in placing or any(len(list(token.uses)) for token in tokens):
        return False
    pending = [tile]
    while pending:
        users = {use.owner.operation for use in pending.pop().uses} - placed
        if not users <= placing:
            return False
        pending += [result for user in users for result in user.results]
    return True


def left_to_threads(loads: Sequence[Prefetch], why: str) -> None:
    """Write into the plans of loads that they do not run ahead after all."""
    for load in loads:
        fall_back(load.load, why)

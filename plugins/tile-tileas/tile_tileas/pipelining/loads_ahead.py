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


def left_to_threads(loads: Sequence[Prefetch], why: str) -> None:
    """Write into the plans of loads that they do not run ahead after all."""
    for load in loads:
        fall_back(load.load, why)

"""Loads of a loop that its products do not read: threads load them where they use them.

Such a tile, as a bias that is added to scores, would go through shared memory to the layout in
which it is used. Threads load it in that layout, so that nobody has to meet for it, and the memory
is free for tiles of products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_core.mlir import ir
from tile_tileas.analysis.tile_views import pulled_back
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.pipelining.candidate import Candidate
from tile_tileas.pipelining.loads_ahead import left_to_threads
from tile_tileas.pipelining.loops import PRODUCT
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.target import Target, target_of

_COPY, _WHY = "nv_tileas.copy", "threads load it where they use it, beside products"


def of_products(one: Candidate) -> Candidate:
    """The candidate with those of its loads alone that products read."""
    return replace(one, loads=[load for load in one.loads if _is_read_by_product(load)])


def load_others_in_passing(loads: Sequence[Prefetch]) -> None:
    """Let threads load what products do not read, in the layout in which they use it. What `loads`
    say of these is no longer so.
    """
    others = [load for load in loads if not _is_read_by_product(load)]
    left_to_threads(others, _WHY)
    for load in others:
        target = target_of(load.load, load.load.operation.block)
        if not isinstance(target, str):
            _load_directly(load.load, target)


def _is_read_by_product(load: Prefetch) -> bool:
    if load.target is None:
        return False
    return any(reader.name == PRODUCT for reader in load.target.readers)


def _load_directly(load: ir.OpView, target: Target) -> None:
    """Load in the layout of the one copy that reads the buffer; nothing where there are several,
    or its threads hold the same elements.
    """
    readers = target.readers
    if len(readers) != 1 or readers[0].name != _COPY or target.rounds:
        return
    (result,) = readers[0].results
    layout = layout_of(result.type)
    if layout is None or not layout.is_injective:
        return
    values = [load.results[0], *(view.results[0] for view in target.views)]
    result.replace_all_uses_with(values[-1])
    for op in (readers[0], target.copy, target.alloc):
        op.operation.erase()
    for view, value in zip(reversed([None, *target.views]), reversed(values), strict=True):
        value.set_type(distributed(value.type, layout))
        if view is not None:
            layout = pulled_back(layout, view)

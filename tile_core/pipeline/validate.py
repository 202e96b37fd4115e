"""Everything that is wrong with a pipeline, whether its conditions hold or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tile_core.diagnostics import TileError
from tile_core.pipeline.build import ANY, ROOT, make_step
from tile_core.pipeline.merge import Merged
from tile_core.pipeline.resolve import Request, Resolved, resolve, unconditional
from tile_core.registry import Registry

T = TypeVar("T")


def problems_of(merged: Merged, request: Request, registry: Registry) -> list[TileError]:
    """Mistakes in `merged`: names, options, anchors and conditions of all passes and emitters.

    Upstream passes are parsed by MLIR, so that their options are checked as well.
    """
    if merged.head.kind == "listing":
        return []
    found: list[TileError] = []
    everything = _collect(found, lambda: unconditional(merged, request, registry))
    if everything is None:
        return found
    _collect(found, lambda: resolve(merged, request, registry))
    _check_steps(everything, registry, found)
    for call in everything.emitters:
        from tile_core.api import make_emitter

        _collect(found, lambda call=call: make_emitter(call, registry))
    return found


def _check_steps(everything: Resolved, registry: Registry, found: list[TileError]) -> None:
    from tile_core.session import Session

    session = Session(registry)
    for segment in everything.segments:
        for call in segment.passes:
            step = _collect(found, lambda c=call, s=segment: make_step(c, s, registry))
            if step is None or step.work is not None:
                continue
            anchor = step.anchor if step.anchor != ANY else ROOT
            try:
                session.native(anchor, step.native)
            except TileError as error:
                if call.spot is not None:
                    error.where = call.spot.source.at(call.spot.path)
                found.append(error)


def _collect(found: list[TileError], work: Callable[[], T]) -> T | None:
    try:
        return work()
    except TileError as error:
        found.append(error)
        return None

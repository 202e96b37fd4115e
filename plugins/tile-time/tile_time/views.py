"""The view of `tilec explore` that predicts the time of a launch."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

from tile_core.explore.record import Exploration, View


def predicted(explored: Exploration) -> Iterator[View]:
    """The time of the launch that the command line spells, if it does, and what binds it."""
    from tile_time.cli import timed

    if explored.given["grid"] is None:
        return
    app = SimpleNamespace(registry=explored.registry)
    for name, result in timed(app, {**explored.given, "source": explored.source}):
        yield View(f"predicted time of {name}", result.text)

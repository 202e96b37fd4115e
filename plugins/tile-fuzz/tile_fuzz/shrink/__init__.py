"""Making failing programs small."""

from __future__ import annotations

from tile_fuzz.shrink.shrinker import Shrinker

__all__ = ["Shrinker"]

"""Transformations of programs in plain form. `passes.py` offers them on MLIR."""

from __future__ import annotations

from tile_cudatile.transforms.canonical import canonicalize
from tile_cudatile.transforms.fma import fuse_fma
from tile_cudatile.transforms.loop_join import join_loops
from tile_cudatile.transforms.loop_split import split_loops
from tile_cudatile.transforms.scopes import synthesize_scopes
from tile_cudatile.transforms.simplify import simplify

__all__ = [
    "canonicalize",
    "fuse_fma",
    "join_loops",
    "simplify",
    "split_loops",
    "synthesize_scopes",
]

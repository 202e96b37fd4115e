"""The canonical form of a program: the language's folds and patterns, and no dead operations."""

from __future__ import annotations

from collections import Counter

from tile_cudatile.transforms.branches import IF_PATTERNS
from tile_cudatile.transforms.folds import FOLDS
from tile_cudatile.transforms.rewrite import Rewriter
from tile_cudatile.tree import Module

PATTERNS = {**FOLDS, "if": IF_PATTERNS}


def canonicalize(module: Module, fired: Counter[str] | None = None) -> int:
    """Rewrites `module` in place; returns how many patterns applied, and adds which to `fired`."""
    module.layout = None
    count = 0
    for entry in module.entries:
        rewriter = Rewriter(entry.body, PATTERNS)
        count += rewriter.run()
        if fired is not None:
            fired.update(rewriter.fired)
    return count

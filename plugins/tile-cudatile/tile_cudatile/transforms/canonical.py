"""The canonical form of a program: the language's folds and patterns, and no dead operations."""

from __future__ import annotations

from tile_cudatile.transforms.branches import IF_PATTERNS
from tile_cudatile.transforms.folds import FOLDS
from tile_cudatile.transforms.rewrite import Rewriter
from tile_cudatile.tree import Module

PATTERNS = {**FOLDS, "if": IF_PATTERNS}


def canonicalize(module: Module) -> int:
    """Rewrites `module` in place; returns how many patterns applied."""
    module.layout = None
    return sum(Rewriter(entry.body, PATTERNS).run() for entry in module.entries)

"""Whether two programs compute and print the same."""

from __future__ import annotations

import numpy as np
from tile_cudatile import evaluate
from tile_cudatile.tree import Module


def check_same(before: Module, after: Module, bounds: tuple[int, int, int]) -> None:
    """Kernels `k` of an address, for one number, and three numbers."""
    found = []
    for module in (before, after):
        out = np.zeros(1, np.int32)
        done = evaluate(module, "k", (1,), [out, *bounds])
        found.append((int(out[0]), done.printed))
    assert found[0] == found[1], bounds

"""Random programs compute the same before and after every transformation."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tile_cudatile import evaluate, parse_text, verify
from tile_cudatile.transforms import canonicalize, split_loops
from tile_cudatile.tree import Module
from unit.tile_cudatile.random_programs import CELLS, Writer

EDGES = (0, 1, 2, 3, -1, -2, 5, 2147483647, -2147483648)


def run(module: Module, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    found = []
    for _ in range(4):
        cells = np.zeros(CELLS, np.int32)
        evaluate(module, "k", (1,), [cells, *(rng.choice(EDGES) for _ in range(3))])
        found.append(cells.tobytes())
    return found


def both(module: Module) -> int:
    return split_loops(module) + canonicalize(module)


def check(seed: int) -> int:
    """How often anything was changed."""
    text = Writer(seed).text()
    expected = run(parse_text(text), seed)
    applied = 0
    for transform in (canonicalize, split_loops, both):
        module = parse_text(text)
        applied += transform(module)
        verify(module)
        assert run(module, seed) == expected, f"{transform.__name__}\n{text}"
    return applied


def test_a_few_programs() -> None:
    assert sum(map(check, range(150))) > 300


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_programs(part: int) -> None:
    for seed in range(1000 * part + 1000, 1000 * part + 2000):
        check(seed)

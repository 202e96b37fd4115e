"""Random programs compute the same before and after every transformation."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tile_cudatile import evaluate, parse_text, verify
from tile_cudatile.transforms import canonicalize, fuse_fma, simplify, split_loops
from tile_cudatile.transforms.canonical import PATTERNS
from tile_cudatile.tree import Module
from unit.tile_cudatile.exact_floats import FORMATS, of, signed
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


def check(seed: int) -> Counter[str]:
    """Which patterns applied, and which transformations did anything."""
    text = Writer(seed).text()
    expected = run(parse_text(text), seed)
    fired: Counter[str] = Counter()
    for transform in (lambda m: canonicalize(m, fired), split_loops, simplify, both):
        module = parse_text(text)
        count = transform(module)
        fired[getattr(transform, "__name__", "")] += count
        verify(module)
        assert run(module, seed) == expected, f"{transform}\n{text}"
    return fired


def test_a_few_programs() -> None:
    """Every pattern applies somewhere."""
    fired: Counter[str] = Counter()
    for seed in range(80):
        fired += check(seed)
    known = {p.__name__ for patterns in PATTERNS.values() for p in patterns}
    assert known | {"split_loops", "simplify"} <= set(fired)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_programs(part: int) -> None:
    for seed in range(1000 * part + 1000, 1000 * part + 2000):
        check(seed)


def test_fused_products_are_rounded_once() -> None:
    """What a fused sum is: the exact one, rounded."""
    text = (
        "entry @k(%p: tile<ptr<f32>>, %a: tile<f32>, %b: tile<f32>, %c: tile<f32>) {\n"
        "%m = mulf %a, %b : tile<f32>\n%s = {} : tile<f32>\n"
        "%t = store_ptr_tko weak %p, %s : tile<ptr<f32>>, tile<f32> -> token\nreturn\n}\n"
    )
    rng = np.random.default_rng(3)
    single = FORMATS["f32"]
    for form, sign in (("addf %c, %m", 1), ("addf %m, %c", 1), ("subf %m, %c", -1)):
        module = parse_text(text.replace("{}", form))
        assert fuse_fma(module) >= 1
        verify(module)
        for _ in range(50):
            a, b = rng.standard_normal(2).astype(np.float32)
            c = np.float32(-sign * a * b) if rng.random() < 0.5 else rng.standard_normal()
            out = np.zeros(1, np.float32)
            evaluate(module, "k", (1,), [out, a, b, np.float32(c)])
            exact = Fraction(float(a)) * Fraction(float(b)) + sign * Fraction(float(np.float32(c)))
            assert Fraction(float(out[0])) == signed(single.round(of(exact)))

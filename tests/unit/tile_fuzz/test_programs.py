"""Random programs compile to what they mean, at every level and for every generation of GPUs."""

from __future__ import annotations

import pytest
from support.strategies import RandomStrategy
from support.tiles import registry
from tile_fuzz.campaign import Plan
from tile_fuzz.generator import Settings, generate
from tile_fuzz.generator.gaps import GAPS
from tile_fuzz.oracle import LEVELS, TARGETS, Setting, examine

SMALL = Settings(operations=16, elements=256, avoid=frozenset(GAPS))
PLAN = Plan(range(0), limits=SMALL)


@pytest.mark.parametrize("seed", range(32))
def test_small_programs(seed: int) -> None:
    """`make fuzz` runs thousands of larger ones."""
    failure = examine(generate(seed, SMALL), PLAN.settings(seed), registry())
    assert failure is None, f"seed {seed}, {failure}"


@pytest.mark.parametrize("seed", range(100, 108))
def test_under_random_layouts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tile in another layout than its neighbours: conversions everywhere."""
    monkeypatch.setattr(RandomStrategy, "seed", seed)
    setting = Setting(TARGETS[seed % 4], 1 + seed % 3, options={"layout-strategy": "random"})
    failure = examine(generate(seed, SMALL), [setting], registry())
    assert failure is None, f"seed {seed}, {failure}"


def test_every_level_meets_every_target() -> None:
    found = {(s.target, s.opt_level) for seed in range(16) for s in PLAN.settings(seed)}
    assert found == {(target, level) for target in TARGETS for level in LEVELS}
    for seed in range(16):
        settings = PLAN.settings(seed)
        assert {s.target for s in settings} == {*TARGETS}
        assert {s.opt_level for s in settings} == {*LEVELS}

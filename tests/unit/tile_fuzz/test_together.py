"""What settings have in common is done once, and gives the code that each would get alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from support.planted import registry
from tile_cudatile import write_bytecode
from tile_fuzz.generator import Settings, generate
from tile_fuzz.generator.gaps import GAPS
from tile_fuzz.oracle import Setting, compile_ptx
from tile_fuzz.together import Together

import tile_core
from tile_core.diagnostics import TileError

LIMITS = Settings(8, 256, avoid=frozenset(GAPS), favour=frozenset({"loops"}))
HEED = {"tileas-generate-schedule-constraints.heed-occupancy": False}
SCHEDULERS, STRATEGIES = ("serial", "list", "ims"), ("none", "unspecialize")


def settings(target: str = "sm_90") -> list[Setting]:
    return [
        Setting(target, 3, None, {"scheduler": s, "max-stages": 0, "pipeline-strategy": p}, HEED)
        for s, p in product(SCHEDULERS, STRATEGIES)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_codes_are_those_of_each_alone(seed: int) -> None:
    """Levels and targets among them, which share nothing with the others."""
    case = generate(seed, LIMITS)
    given = [*settings(), Setting("sm_80", 0), Setting("sm_90", 1), Setting("sm_90", 3)]
    together = Together(write_bytecode(case.module), given, registry())
    for setting in given:
        assert together.ptx(setting) == compile_ptx(case, setting, registry()), setting


def test_shared_passes_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all up to the first that differs; and where that comes out the same, at the end."""
    ran: list[tuple[str | None, str | None]] = []
    plain = tile_core.compile

    def counted(*args: object, **given: object) -> object:
        ran.append((given["start_at"], given["stop_after"]))  # type: ignore[arg-type]
        return plain(*args, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(tile_core, "compile", counted)
    case = generate(1, replace(LIMITS, favour=frozenset()))  # straight-line code: list as ims
    together = Together(write_bytecode(case.module), settings(), registry())
    codes = {together.ptx(setting) for setting in settings()}
    count = {part: ran.count(part) for part in ran}
    assert count[None, "segment:to-tileaa"] == 1
    assert count["segment:tileas", "segment:tileas"] == len(STRATEGIES)
    assert count["segment:schedule", "segment:schedule"] <= len(settings())
    # Texts that differ in remarks of their plans may give one code.
    assert len(codes) <= count["segment:to-llvm", None] < len(settings())


def test_what_does_not_compile_says_so_each_time() -> None:
    case = generate(1, LIMITS)
    bad = [
        Setting("sm_90", 3, options={"pipeline-strategy": p, "layout-strategy": "absent"})
        for p in STRATEGIES
    ]
    together = Together(write_bytecode(case.module), bad, registry())
    for setting in (*bad, bad[0]):
        with pytest.raises(TileError, match="absent"):
            together.ptx(setting)

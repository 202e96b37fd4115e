"""Random programs of the whole language have a time, whatever they do."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from support.tiles import registry
from tile_fuzz.case import data_of
from tile_fuzz.generator import Settings, generate
from tile_fuzz.generator.gaps import GAPS
from tile_fuzz.oracle import Setting, compile_ptx
from tile_time.model import load_kernel, time_kernel

from tile_core.diagnostics import CompileError, TileError
from tile_core.machines import builtin_machines

SMALL = Settings(operations=16, elements=256, avoid=frozenset(GAPS))
GPUS = (("h100-sxm", "sm_90"), ("a100", "sm_80"), ("b200", "sm_100"), ("rtx5090", "sm_120"))


def _timed(seed: int) -> int:
    """Launches of a program that were timed."""
    gpu, target = GPUS[seed % len(GPUS)]
    case = generate(seed, SMALL)
    ptx = compile_ptx(case, Setting(target, 1 + seed % 3), registry())
    count = 0
    for launch in case.launches:
        try:
            kernel = load_kernel(ptx, builtin_machines()[gpu], launch.entry)
        except CompileError:
            continue  # ptxas refuses it, or a CTA of it does not fit on an SM
        arguments = [data_of(argument) for argument in launch.arguments]
        result = time_kernel(kernel, launch.grid, None, arguments)
        assert math.isfinite(result.seconds)
        assert result.cycles > 0
        assert sum(result.causes.values()) == pytest.approx(1.0)
        count += 1
    return count


@pytest.mark.parametrize("seed", range(8))
def test_a_few(seed: int) -> None:
    assert _timed(seed) >= 1


@pytest.mark.slow
def test_a_thousand() -> None:
    count = 0
    for seed in range(1000):
        with suppress(TileError):  # what cannot be compiled is for the tests of tile-fuzz
            count += _timed(seed)
    assert count >= 900

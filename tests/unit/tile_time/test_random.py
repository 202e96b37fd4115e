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


class NotCompiled(Exception):
    """A program that the compiler or ptxas refuses: another one is drawn."""


def _timed(seed: int) -> None:
    """Time every launch of a program."""
    gpu, target = GPUS[seed % len(GPUS)]
    machine = builtin_machines()[gpu]
    case = generate(seed, SMALL)
    try:  # what cannot be compiled is for the tests of tile-fuzz
        ptx = compile_ptx(case, Setting(target, 1 + seed % 3), registry())
        kernels = [load_kernel(ptx, machine, launch.entry) for launch in case.launches]
    except TileError as error:
        raise NotCompiled(str(error)) from error
    for launch, kernel in zip(case.launches, kernels, strict=True):
        arguments = [data_of(argument) for argument in launch.arguments]
        try:
            result = time_kernel(kernel, launch.grid, None, arguments)
        except CompileError as error:
            if "does not fit" in str(error):
                raise NotCompiled(str(error)) from error
            raise
        assert math.isfinite(result.seconds)
        assert result.cycles > 0
        assert sum(result.causes.values()) == pytest.approx(1.0)


def timed(first: int, step: int, wanted: int, most: int) -> int:
    """Time so many programs of the seeds `first`, `first + step`, ..; how many were drawn."""
    done = drawn = 0
    while done < wanted:
        assert drawn < most, f"of {drawn} programs only {done} can be compiled"
        with suppress(NotCompiled):
            _timed(first + drawn * step)
            done += 1
        drawn += 1
    return drawn


@pytest.mark.parametrize("seed", range(8))
def test_a_few(seed: int) -> None:
    timed(seed, 8, 1, 4)


#: A thousand in blocks, which can be run one by one (`test_a_thousand[300]`).
_BLOCK, _SEEDS = 100, 120


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1000, _BLOCK))
def test_a_thousand(first: int) -> None:
    timed(first // _BLOCK * _SEEDS, 1, _BLOCK, _SEEDS)

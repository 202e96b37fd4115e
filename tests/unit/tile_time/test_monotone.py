"""A worse machine is never faster: over the examples, and over random programs of the language."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from support.tiles import registry
from tile_fuzz.case import data_of
from tile_fuzz.generator import Settings, generate
from tile_fuzz.generator.gaps import GAPS
from tile_fuzz.oracle import Setting, compile_ptx
from tile_time.model import Kernel, load_kernel, time_kernel

from tile_core.api import compile as compile_program
from tile_core.diagnostics import CompileError, TileError
from tile_core.machines import Machine, builtin_machines

ROOT = Path(__file__).parents[3]
H100 = builtin_machines()["h100-sxm"]
HALVED = ("memory.dram_bandwidth", "memory.l2_bandwidth", "memory.shared_bandwidth",
          "pipes.fma.rate", "pipes.alu.rate")  # fmt: skip
DOUBLED = ("memory.dram_latency", "memory.shared_latency")
#: Where events fall otherwise, a warp may be lucky: the order of equals is nobody's fault.
LUCK = 0.01


def worse(machine: Machine) -> Iterator[tuple[str, Machine]]:
    """The machine with one thing worse."""
    slow = machine.with_number("clock.boost", machine.clock.boost / 2)
    yield "clock", slow.with_number("clock.full_tensor", machine.clock.full_tensor / 2)
    far = machine.memory.dram_latency + machine.memory.l2_latency  # the way there is through L2
    slow = machine.with_number("memory.l2_latency", 2 * machine.memory.l2_latency)
    yield "L2 latency", slow.with_number("memory.dram_latency", far)
    for paths, factor in ((HALVED, 0.5), (DOUBLED, 2.0)):
        for path in paths:
            value: Any = machine
            for name in path.split("."):
                value = getattr(value, name)
            yield path, machine.with_number(path, value * factor)


def _check(ptx: str, entry: str | None, grid: Any, arguments: Any) -> None:
    def us(machine: Machine) -> float:
        kernel: Kernel = load_kernel(ptx, machine, entry)
        return time_kernel(kernel, grid, None, arguments()).us

    before = us(H100)
    for name, machine in worse(H100):
        assert us(machine) >= before * (1 - LUCK), name


@cache
def _example(name: str) -> tuple[str, Any]:
    sys.path.insert(0, str(ROOT / "examples"))
    case = import_module("cases").case(name)
    made = compile_program(case.bytecode, "sm_90", options={"tma-descriptors": "off"})
    return str(made.stage("ptx")), case


@pytest.mark.parametrize("name", ["softmax_f32", "matmul_f16", "layer_norm_f16", "transpose_f32"])
def test_examples(name: str) -> None:
    ptx, case = _example(name)
    _check(ptx, None, case.grid, lambda: list(case.flat))


def _random(seed: int) -> int:
    """Launches of a random program that were checked."""
    case = generate(seed, Settings(operations=16, elements=256, avoid=frozenset(GAPS)))
    ptx = compile_ptx(case, Setting("sm_90", 1 + seed % 3), registry())
    for launch in case.launches:
        arguments = launch.arguments
        _check(ptx, launch.entry, launch.grid, lambda a=arguments: [data_of(one) for one in a])
    return len(case.launches)


@pytest.mark.parametrize("seed", range(3))
def test_random_programs(seed: int) -> None:
    assert _random(seed) >= 1


@pytest.mark.slow
def test_many_random_programs() -> None:
    count = 0
    for seed in range(100, 300):
        with suppress(TileError, CompileError):
            count += _random(seed)
    assert count >= 150

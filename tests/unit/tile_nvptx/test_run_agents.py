"""Kernels of agents, one of which copies for products of the other: same bits, nothing too many."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.pipelined import Steps
from support.removals import SCHEDULES, is_caught, without
from tile_sim import SimError

import tile_core

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

SUPPORT = Path(__file__).parents[2] / "support"
SMALL, LARGE = "matmul_f16", "matmul_large_f16"  # of 64 x 64 x 32, and of 128 x 128 x 64
TILES = {SMALL: (64, 64), LARGE: (128, 128)}
AGENTS = "warp-specialize"
HAVE_CUTILE = (
    importlib.util.find_spec("cuda") is not None
    and importlib.util.find_spec("cuda.tile") is not None
)
#: What a warp says, and what threads wait for.
ARRIVE = r"\{[^{}]*mbarrier\.arrive\.shared[^{}]*\}"
WAIT = r"\{[^{}]*mbarrier\.try_wait[^{}]*\}"


@cache
def compiled(name: str, strategy: str = AGENTS, target: str = "sm_90") -> tile_core.Artifact:
    bytecode = (EXAMPLES / "bytecode" / f"{name}.tileirbc").read_bytes()
    options = {"pipeline-strategy": strategy, "unspecialized-pipeline-num-stages": 3}
    return tile_core.compile(bytecode, target, opt_level=2, options=options, emit="ptx")


def ptx(name: str, strategy: str = AGENTS) -> str:
    return str(compiled(name, strategy).stage("ptx"))


def product(text: str, k: int, schedule: str = "late", **options: Any) -> np.ndarray:
    """One block of it for that K."""
    name = LARGE if LARGE in text else SMALL
    rows, columns = TILES[name]
    case = cases.matmul(name, "float16", rows - 8, columns, k, TILES[name])
    module = tile_sim.Module(text)
    report = module.launch(
        name, case.grid, None, case.flat, check=True, schedule=schedule, **options
    )
    assert case.errors() == []
    assert not report.findings
    return case.arguments[2]


def fails(text: str, k: int) -> bool:
    return is_caught(lambda schedule: product(text, k, schedule, max_steps=6000))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", [SMALL, LARGE])
def test_every_trip_count_gives_the_same_bits(name: str, schedule: str) -> None:
    text, still = ptx(name), ptx(name, "none")
    step = 32 if name == SMALL else 64
    for k in (8, step, step + 8, 3 * step, 4 * step, 6 * step + 8):
        np.testing.assert_array_equal(product(text, k, schedule), product(still, k))


def test_a_loop_that_does_not_run() -> None:
    a, b = np.zeros((64, 0), np.float16), np.zeros((0, 64), np.float16)
    out = np.ones((64, 64), np.float16)
    flat = cases.Case(SMALL, (1, 1, 1), (a, b, out), (None, None, None)).flat
    tile_sim.Module(ptx(SMALL)).launch(SMALL, (1, 1, 1), None, flat, check=True)
    assert not out.any()


def test_agents_meet_by_themselves_and_one_thread_copies() -> None:
    """The block meets where agents part and where they end; the one that works has a barrier."""
    text = ptx(LARGE)
    assert re.findall(r"\.reqntid (\d+)", text) == ["384"]
    assert len(re.findall(r"bar\.sync\s+0;", text)) == 2
    assert len(re.findall(r"bar\.sync\s+1, 256;", text)) == 2
    assert "local" not in text
    split = text.index("setmaxnreg.dec")
    assert text.index("wgmma.mma_async") < split < text.index("mbarrier.arrive.expect_tx")
    assert re.findall(r"setmaxnreg\.(\w+)\.sync\.aligned\.u32\s+(\d+)", text) == [
        ("inc", "232"), ("dec", "40"),
    ]  # fmt: skip


def test_one_warpgroup_needs_no_other_registers() -> None:
    text = ptx(SMALL)
    assert re.findall(r"\.reqntid (\d+)", text) == ["160"]
    assert "setmaxnreg" not in text


@pytest.mark.parametrize(
    ("instruction", "count"),
    [
        (WAIT, 2),  # for a stage's bytes, for its readers
        (ARRIVE, 1),
        (r"\{[^{}]*mbarrier\.arrive\.expect_tx[^{}]*\}", 1),
        (r"mbarrier\.init[^;]*;", 6),
        (r"wgmma\.wait_group[^;]*;", 2),
        (r"fence\.mbarrier_init[^;]*;", 1),
    ],
)
def test_nothing_of_it_can_go(instruction: str, count: int) -> None:
    mutants = without(ptx(SMALL), instruction)
    assert len(mutants) == count
    assert all(fails(text, 5 * 32) for text in mutants)


@pytest.mark.parametrize("instruction", [WAIT, ARRIVE, r"bar\.sync\s+1, 256;", r"bar\.sync\s+0;"])
def test_nothing_can_go_between_two_warpgroups_and_a_third(instruction: str) -> None:
    mutants = without(ptx(LARGE), instruction)
    missed = [at for at, one in enumerate(mutants) if not fails(one, 5 * 64)]
    # All have done their work where the block meets at the end.
    assert missed == ([1] if instruction.endswith("0;") else [])


def test_bytes_and_phases_are_what_they_must_be() -> None:
    text = ptx(SMALL)
    (size,) = re.findall(r"mbarrier\.arrive\.expect_tx[^;]*, (\d+);", text)
    for other in (int(size) - 16, int(size) + 16):
        assert fails(text.replace(f", {size};", f", {other};"), 5 * 32)
    phases = re.findall(r"mbarrier\.try_wait\.parity[^;]*, (%r\d+);", text)
    assert len(phases) == 2
    for phase in phases:
        for constant in "01":
            assert fails(text.replace(f"], {phase};", f"], {constant};", 1), 5 * 32)


def test_registers_that_there_are_not_would_be_waited_for_for_ever() -> None:
    text = ptx(LARGE)
    for old, new in (("u32 \t40", "u32 \t160"), ("u32 \t232", "u32 \t240")):
        assert old in text
        with pytest.raises(SimError, match="registers, of 65536"):
            product(text.replace(old, new, 1), 64)


# -- loops in loops --------------------------------------------------------------------------------


@cache
def turned(turns: int, strategy: str) -> str:
    """A loop that runs `turns` times; stages go on where they were."""
    module = Steps(turns=turns).program().module()
    tile_cudatile.verify(module)
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), "sm_90", opt_level=2, emit="ptx", keep_stages=False,
        start_at="convert-cudatile-to-tileaa", options={"pipeline-strategy": strategy},
    )  # fmt: skip
    return str(made.stage("ptx"))


def total(text: str, turns: int, last: int, schedule: str = "late") -> np.ndarray:
    arguments = Steps(turns=turns).arguments(0, last)
    module = tile_sim.Module(text)
    report = module.launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=12000
    )
    assert not report.findings
    return arguments[-1]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stages_go_on_from_run_to_run(schedule: str) -> None:
    text, still = turned(3, AGENTS), turned(3, "none")
    assert ".reqntid 160" in text
    for last in (0, 1, 2, 3, 6):
        wanted = total(still, 3, last)
        np.testing.assert_array_equal(total(text, 3, last, schedule), wanted)


def test_what_is_read_last_is_given_back_where_the_loop_runs_again() -> None:
    mutants = without(turned(3, AGENTS), ARRIVE)
    assert len(mutants) == 2
    for text in mutants:
        with pytest.raises((AssertionError, SimError)):
            total(text, 3, 6)


@pytest.mark.skipif(not HAVE_CUTILE, reason="cuda-tile is not installed")
@pytest.mark.parametrize(
    ("program", "schedule"),
    [*(("agents.py", schedule) for schedule in SCHEDULES), ("chained_products.py", "random")],
)
def test_programs_are_right(program: str, schedule: str) -> None:
    """Persistent ones, whose copies run ahead from tile to tile; attention; several operands."""
    command = [sys.executable, str(SUPPORT / program), schedule, AGENTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

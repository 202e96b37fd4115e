"""Products by tcgen05 in flight from one iteration to the next: same bits, nothing too many."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.pipelined import Steps
from support.removals import SCHEDULES, is_caught, wrong_waits

import tile_core

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

_LEAST_STEPS = 5_000  # of a kernel that ends; mutants may wait for ever


@cache
def ptx(strategy: str, stages: int = 4, tensor_maps: str = "off", ctas: int = 1) -> str:
    """`matmul_f16` (tiles of 64 x 64 x 32) for sm_100 at -O2."""
    options = {
        "num-ctas": ctas,
        "pipeline-strategy": strategy,
        "unspecialized-pipeline-num-stages": stages,
        "tma-descriptors": tensor_maps,
    }
    bytecode = (EXAMPLES / "bytecode" / "matmul_f16.tileirbc").read_bytes()
    alone = {"tileas-unspecialized-pipeline.take-over": False}  # whose agents are tried elsewhere
    made = tile_core.compile(
        bytecode, "sm_100", opt_level=2, options=options, pass_options=alone, emit="ptx"
    )
    return str(made.stage("ptx"))


def product(text: str, k: int, schedule: str = "late") -> np.ndarray:
    """One block of it for that K."""
    case = cases.matmul("matmul_f16", "float16", 56, 64, k, (64, 64))
    report = tile_sim.Module(text).launch(
        "matmul_f16", case.grid, None, case.flat, check=True, schedule=schedule,
        max_steps=_LEAST_STEPS,
    )  # fmt: skip
    assert case.errors() == []
    assert not report.findings
    return case.arguments[2]


def waits(text: str) -> int:
    return len(re.findall(r"mbarrier\.try_wait", text))


@pytest.mark.parametrize(("stages", "tensor_maps"), [(2, "off"), (3, "host")])
def test_every_trip_count_gives_the_same_bits(stages: int, tensor_maps: str) -> None:
    """Twice as many stages as for other instructions, of which one is still read."""
    ahead, still = ptx("unspecialize", stages, tensor_maps), ptx("none")
    assert waits(still) == 1
    assert waits(ahead) >= 2  # in the loop, and behind it
    assert ("cp.async.bulk.tensor" in ahead) == (tensor_maps == "host")
    for k in (8, 32, 64, 96, 32 * (2 * stages + 3)):
        expected = product(still, k)
        for schedule in SCHEDULES:
            np.testing.assert_array_equal(product(ahead, k, schedule), expected)


def test_one_thread_leads_where_tensor_maps_fill_all_stages() -> None:
    """Nobody meets in the loop: every barrier stands before or behind it."""
    text = ptx("unspecialize", 2, "host")
    first, last = text.index("tcgen05.mma"), text.rindex("tcgen05.commit")
    assert not re.search(r"\bbar(rier)?\.\w*\.?sync", text[first:last])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("tensor_maps", ["off", "host"])
def test_a_loop_in_a_loop_makes_its_barriers_again(tensor_maps: str, schedule: str) -> None:
    """As a persistent kernel does; the loop runs not at all, too."""
    steps = Steps("pointers" if tensor_maps == "off" else "view", turns=3)
    module = steps.program().module()
    tile_cudatile.verify(module)
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), "sm_100", opt_level=2, emit="ptx",
        start_at="convert-cudatile-to-tileaa",
        options={"tma-descriptors": tensor_maps},
        pass_options={
            "tileas-unspecialized-pipeline.across": False,
            "tileas-unspecialized-pipeline.in-turn": False,
        },
    )  # fmt: skip
    text = str(made.stage("ptx"))
    assert "tcgen05.mma" in text
    assert "mbarrier.inval" in text
    for first, last in ((0, 6), (2, 3), (1, 1)):
        arguments, meant = steps.arguments(first, last), steps.arguments(first, last)
        tile_cudatile.evaluate(module, "k", (1, 1, 1), meant)
        report = tile_sim.Module(text).launch(
            "k", (1, 1, 1), None, arguments, check=True, schedule=schedule
        )
        assert not report.findings
        np.testing.assert_array_equal(arguments[-1], meant[-1])


def test_a_loop_that_does_not_run() -> None:
    a, b = np.zeros((64, 0), np.float16), np.zeros((0, 64), np.float16)
    for strategy in ("unspecialize", "none"):
        out = np.ones((64, 64), np.float16)
        flat = cases.Case("matmul_f16", (1, 1, 1), (a, b, out), (None, None, None)).flat
        text = ptx(strategy)
        tile_sim.Module(text).launch("matmul_f16", (1, 1, 1), None, flat, check=True)
        assert not out.any()


#: What the simulator does not miss: fences around allocation and deallocation (see
#: test_run_tensor_dot) and around the epilogue's meeting, behind which tensor memory is used no
#: more (LLVM gives the way around the loop a wait and a fence of its own); the meeting before the
#: deallocation, as the epilogue has one of its own; those behind initialisations of barriers:
#: another follows, or the one who made them leads.
SPARE = {
    r"tcgen05\.fence::before_thread_sync": 3,
    r"tcgen05\.fence::after_thread_sync": 4,
    r"\bbar(rier)?\.\w*\.?sync": 3,
}


@pytest.mark.parametrize("tensor_maps", [pytest.param("off", marks=pytest.mark.slow), "host"])
def test_nothing_of_it_can_go(tensor_maps: str) -> None:
    text = ptx("unspecialize", 2, tensor_maps)
    for instruction in (
        r"cp\.async\.wait_group", r"cp\.async\.commit_group", r"\bbar(rier)?\.\w*\.?sync",
        r"tcgen05\.commit", r"tcgen05\.wait::ld", r"tcgen05\.fence::before_thread_sync",
        r"tcgen05\.fence::after_thread_sync", r"mbarrier\.init", r"mbarrier\.arrive\.expect_tx",
        r"fence\.proxy\.async",
    ):  # fmt: skip
        broken = [
            text[: m.start()] + text[m.end() :] for m in re.finditer(rf"{instruction}[^;]*;", text)
        ]
        missed = sum(not fails(mutant) for mutant in broken)
        assert missed <= SPARE.get(instruction, 0), (instruction, missed, len(broken))


@pytest.mark.parametrize("tensor_maps", ["off", "host"])
def test_no_wait_can_go_or_be_for_another_phase(tensor_maps: str) -> None:
    for broken in wrong_waits(ptx("unspecialize", 2, tensor_maps)):
        assert fails(broken)


def fails(text: str) -> bool:
    return is_caught(lambda schedule: product(text, 224, schedule))


def test_blocks_of_a_cluster_fill_what_all_have_read() -> None:
    """The thread that leads tells the other block that its product is done with a stage."""
    shared, alone = ptx("unspecialize", 2, "host", 2), ptx("unspecialize", 2, "host")
    assert "multicast::cluster" in shared
    assert "tcgen05.mma" in shared
    for k in (8, 32 * 9):
        expected = product(alone, k)
        for schedule in SCHEDULES:
            np.testing.assert_array_equal(product(shared, k, schedule), expected)
    arrivals = list(re.finditer(r"\n[^\n]*mapa\.shared::cluster[^\n]*", shared))
    assert arrivals
    for one in arrivals:
        assert fails(shared[: one.start()] + shared[one.end() :])


@cache
def attention(strategy: str) -> str:
    """`attention_f16` (64 rows, 64 keys, depth 64)."""
    bytecode = (EXAMPLES / "bytecode" / "attention_f16.tileirbc").read_bytes()
    options = {"pipeline-strategy": strategy}
    alone = {"tileas-unspecialized-pipeline.take-over": False}  # whose agents are tried elsewhere
    made = tile_core.compile(
        bytecode, "sm_100", opt_level=2, options=options, pass_options=alone, emit="ptx"
    )
    return str(made.stage("ptx"))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_attention(schedule: str) -> None:
    for strategy in ("unspecialize", "none"):
        text = attention(strategy)
        for length in (40, 64, 136, 328):
            case = cases.attention("attention_f16", "float16", (1, length, 64), 64)
            report = tile_sim.Module(text).launch(
                "attention_f16", (1, 1, 1), None, case.flat, check=True, schedule=schedule
            )
            assert not report.findings
            got, want = case.arguments[3], case.expected[3]
            np.testing.assert_allclose(got[:, :64], want[:, :64], atol=2e-3)

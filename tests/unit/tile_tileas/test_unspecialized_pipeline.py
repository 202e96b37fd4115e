"""Loops whose loads run ahead: the same bits for any trip count, no synchronisation too many."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile_sim
from tile_sim import SimError
from tile_tileas.pipelining.depth import Demand, Room, depth

import tile_core

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

_GROUPS = re.compile(r"cp\.async\.wait_group\s+(\d+)")


def ptx(name: str, target: str, strategy: str, stages: int = 4, **of_passes: Any) -> str:
    """PTX at -O2 with a strategy of its own."""
    return text_of("ptx", name, target, strategy, stages, **of_passes)


def text_of(what: str, name: str, target: str, strategy: str, stages: int, **of_passes: Any) -> str:
    options = {"pipeline-strategy": strategy, "unspecialized-pipeline-num-stages": stages}
    bytecode = (EXAMPLES / "bytecode" / f"{name}.tileirbc").read_bytes()
    made = tile_core.compile(
        bytecode, target, opt_level=2, options=options, emit=what, keep_stages=False,
        pass_options=of_passes,
    )  # fmt: skip
    return str(made.stage(what))


def product(text: str, k: int, schedule: str = "late", check: bool = True):
    """One block of `matmul_f16` (tiles of 64 x 64 x 32) for that K; what check mode found."""
    case = cases.matmul("matmul_f16", "float16", 56, 64, k, (64, 64))
    report = tile_sim.Module(text).launch(
        "matmul_f16", case.grid, None, case.flat, check=check, schedule=schedule
    )
    assert case.errors() == []
    assert not report.findings
    return case.arguments[2]


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_every_trip_count_gives_the_same_bits(stages: int, schedule: str) -> None:
    """None, fewer than stages, and more; rows of which the last vector is cut, too."""
    ahead = ptx("matmul_f16", "sm_80", "unspecialize", stages)
    # Before the loop for the first stage; in it, before its last part of K, for the next one.
    assert _GROUPS.findall(ahead) == [str(stages - 1), str(stages - 2)]
    still = ptx("matmul_f16", "sm_80", "none")
    assert "cp.async" not in still
    for k in (8, 32, 40, 64, 96, 32 * (stages + 1)):
        np.testing.assert_array_equal(product(ahead, k, schedule), product(still, k))


@pytest.mark.parametrize("target", ["sm_80", "sm_120"])
def test_fragments_ahead_or_not(target: str) -> None:
    """The same bits; without it a step waits for shared memory behind the meeting of its start."""
    option = "tileas-unspecialized-pipeline.fragments-ahead"
    texts = [ptx("matmul_f16", target, "unspecialize", 3, **{option: fed}) for fed in (True, False)]
    waits = [text.count("wait_group") + text.count("try_wait") for text in texts]
    assert waits[0] > waits[1]
    for k in (8, 96, 224):
        np.testing.assert_array_equal(*(product(text, k) for text in texts))


def _last(text: str, instruction: str) -> int:
    return max(found.start() for found in re.finditer(instruction, text))


@pytest.mark.parametrize(("stages", "early"), [(2, True), (3, False)])
def test_when_the_engine_fills_a_stage(stages: int, early: bool) -> None:
    """Before the last part's products if there are two, as they wait for it in the next step."""
    made = "mlir:tileas-unspecialized-pipeline"
    text = text_of(made, "matmul_f16", "sm_120", "unspecialize", stages)
    assert early == (_last(text, "async_tiled_tma_load") < _last(text, r"nv_tileas\.dot"))
    text = ptx("matmul_f16", "sm_120", "unspecialize", stages)
    for schedule in ("late", "early", "random"):
        product(text, 224, schedule)


@pytest.mark.parametrize("instruction", [r"mbarrier\.try_wait", r"\bbar\.sync", r"mbarrier\.init"])
def test_two_stages_of_the_engine_need_all_of_it(instruction: str) -> None:
    text = ptx("matmul_f16", "sm_120", "unspecialize", 2)
    loop = text[: _last(text, r"\bmma\.sync")]
    broken = [one for one in _without(text, instruction) if one[: len(loop)] != loop]
    assert broken
    for mutant in broken:
        with pytest.raises((AssertionError, SimError)):
            product(mutant, 224)


def test_a_loop_that_does_not_run() -> None:
    ahead = ptx("matmul_f16", "sm_80", "unspecialize")
    a, b = np.zeros((64, 0), np.float16), np.zeros((0, 64), np.float16)
    out = np.ones((64, 64), np.float16)
    flat = cases.Case("matmul_f16", (1, 1, 1), (a, b, out), (None, None, None)).flat
    tile_sim.Module(ahead).launch("matmul_f16", (1, 1, 1), None, flat, check=True)
    assert not out.any()


def _without(text: str, instruction: str) -> list[str]:
    """`text` less one of these instructions, for each of them; lines keep their numbers."""
    lines = text.split("\n")
    return [
        "\n".join([*lines[:at], "", *lines[at + 1 :]])
        for at, line in enumerate(lines)
        if re.search(instruction, line)
    ]


@pytest.mark.parametrize(
    "instruction",
    [r"cp\.async\.wait_group", r"cp\.async\.commit_group", r"\bbar(rier)?\.\w*\.?sync"],
)
def test_nothing_of_it_can_go(instruction: str) -> None:
    text = ptx("matmul_f16", "sm_80", "unspecialize", 3)
    broken = _without(text, instruction)
    assert broken
    for mutant in broken:
        with pytest.raises((AssertionError, SimError)):
            product(mutant, 224)


def test_one_barrier_a_step() -> None:
    """Without it there are two, before the stores and behind them. Before the first step all meet
    once more, as its fragments are read there.
    """
    ahead, still = (ptx("matmul_f16", "sm_80", s) for s in ("unspecialize", "none"))

    def met(text: str) -> int:
        case = cases.matmul("matmul_f16", "float16", 64, 64, 320, (64, 64))
        report = tile_sim.Module(text).launch("matmul_f16", case.grid, None, case.flat, stats=True)
        assert report.cost is not None
        return report.cost.total.barrier_waits

    steps, warps = 10, 4
    assert met(still) == (2 * steps + 1) * warps
    assert met(ahead) == (steps + 2) * warps


def test_level_0_and_1_stay_synchronous() -> None:
    for level in (0, 1):
        bytecode = (EXAMPLES / "bytecode" / "matmul_f16.tileirbc").read_bytes()
        made = tile_core.compile(bytecode, "sm_80", opt_level=level, emit="ptx", keep_stages=False)
        assert "cp.async" not in str(made.stage("ptx"))


def demand(macs: int, stage_bytes: int, other_bytes: int = 0, **more: Any) -> Demand:
    return Demand(macs, stage_bytes, other_bytes, **{"most": 4, **more})


def beside(stage_bytes: int, registers: int = 0, enough: int = 0) -> Demand:
    """Of a loop whose threads meet before products by tcgen05."""
    return demand(128 * 128 * 128, stage_bytes, most=8, warps=8, registers=registers, lag=1,
                  unaided=True, beside=2, enough_beside=enough)  # fmt: skip


A100 = Room(166912)
B200 = Room(232448, latency=2 * 820, mma_clk=0.5)
ADA = Room(101376, warps=48)


@pytest.mark.parametrize(
    ("wanted", "room", "stages"),
    [
        (demand(64 * 64 * 32, 8192), A100, 4),  # short steps: as many as may be
        (demand(128 * 256 * 64, 49152, warps=8), A100, 3),  # 2,048 clk cover the latency
        (demand(128 * 128 * 64, 32768), ADA, 3),  # two blocks do not fit: deep rather than many
        (demand(128 * 128 * 32, 16384), ADA, 2 + 1),  # two blocks of four warps, three stages each
        (demand(128 * 128 * 32, 16384, 16384), ADA, 2),  # two blocks rather than three stages
        (demand(128 * 128 * 32, 16384, 16384, warps=8), ADA, 3),  # one has enough warps
        (demand(64 * 64 * 32, 8192, 150_000), A100, 2),  # what fits
        (demand(64 * 64 * 32, 8192, 151_000), A100, 0),  # not even two
        (demand(64 * 64 * 32, 40_000, blocks=2), A100, 2),  # what the hint leaves
        (demand(64 * 64 * 32, 40_000, blocks=3), A100, 0),
        (beside(16384 + 1024), B200, 6),  # two blocks have 8 copies in flight, one of 8 stages 6
        (beside(32768 + 1024), B200, 6),  # two of 3 would have two, one of 6 has 4
        (beside(32768 + 1024, enough=3), B200, 3),  # but three are said to be enough
        (beside(32768 + 1024, enough=4), B200, 6),
        (beside(49152), B200, 4),  # two of as many stages as lag lets run ahead do not fit
        (beside(16384 + 1024, registers=64), B200, 8),  # nor do registers of two
    ],
)
def test_depth(wanted: Demand, room: Room, stages: int) -> None:
    assert depth(wanted, room) == stages

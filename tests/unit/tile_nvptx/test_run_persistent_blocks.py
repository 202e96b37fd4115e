"""Blocks that take further tile blocks of their grid (`dynamic-persistent`): the same bits."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_sim
from tile_sim import SimError

import tile_core

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

KERNELS = (
    "vector_add_f32", "saxpy_loop_f32", "softmax_f16", "layer_norm_f32", "transpose_f16",
    "matmul_f16", "batched_matmul_f16", "attention_f16", "layer_norm_backward_f16",
)  # fmt: skip
SCHEDULES = ("late", "early", "random")


@cache
def compiled(name: str, target: str, level: int = 3, persistent: bool = True) -> tile_core.Artifact:
    """One of the examples."""
    return tile_core.compile(
        (EXAMPLES / "bytecode" / f"{name}.tileirbc").read_bytes(), target, opt_level=level,
        options={"dynamic-persistent": persistent}, emit="ptx",
    )  # fmt: skip


def run(text: str, name: str, schedule: str = "late", resident: int = 1) -> tuple[int, list[bytes]]:
    """Waves of blocks, of which so many reside at a time, and what the arrays hold then."""
    case = cases.case(name)
    module = tile_sim.Module(text)
    threads = int(re.findall(r"\.reqntid (\d+)", text)[0])
    report = module.launch(
        name, case.grid, None, case.flat, check=True, schedule=schedule,
        wave_threads=threads * resident, max_steps=200_000,
    )  # fmt: skip
    assert not report.findings, "\n".join(map(str, report.findings))
    assert case.errors() == []
    return report.waves, [a.tobytes() for a in case.arguments if isinstance(a, np.ndarray)]


def run_all(text: str, name: str) -> None:
    """Under every schedule."""
    for schedule in SCHEDULES:
        run(text, name, schedule)


@pytest.mark.parametrize("target", ["sm_100", "sm_120"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_same_bits(name: str, target: str) -> None:
    text = str(compiled(name, target).stage("ptx"))
    assert "clusterlaunchcontrol.try_cancel" in text
    _, wanted = run(str(compiled(name, target, persistent=False).stage("ptx")), name)
    for schedule in SCHEDULES:
        waves, found = run(text, name, schedule)
        assert waves == 1, "the block that runs takes over all others"
        assert found == wanted


@pytest.mark.parametrize("level", [0, 2])
def test_several_blocks_reside(level: int) -> None:
    text = str(compiled("matmul_f16", "sm_100", level).stage("ptx"))
    for resident in (2, 3, 4):
        run(text, "matmul_f16", "random", resident)


_ORDERS = ("mbarrier", "bar.sync", "clusterlaunchcontrol.try_cancel", "fence.")


def _places(text: str) -> list[int]:
    lines = text.split("\n")
    found = [at for at, line in enumerate(lines) if any(mark in line for mark in _ORDERS)]
    return [at for at in found if "mbarrier.inval" not in lines[at]]


#: What makes the barrier known to all is in the loop once more, where nobody may still read the
#: answer before.
_SPARE = {1, 2}


@pytest.mark.parametrize("number", sorted(set(range(8)) - _SPARE))
def test_nothing_of_it_can_go(number: int) -> None:
    """The barrier's initialisation, what is expected, the question, the wait, and where threads
    meet before the answer is overwritten.
    """
    text = str(compiled("vector_add_f32", "sm_100").stage("ptx"))
    lines, places = text.split("\n"), _places(text)
    assert len(places) == 8, [lines[at] for at in places]
    del lines[places[number]]
    with pytest.raises((AssertionError, SimError)):
        run_all("\n".join(lines), "vector_add_f32")


@pytest.mark.parametrize("bytes_", [8, 32])
def test_the_answer_has_sixteen_bytes(bytes_: int) -> None:
    text = str(compiled("vector_add_f32", "sm_100").stage("ptx"))
    other = re.sub(r"(expect_tx\S* %state, \[\S+\]), 16;", rf"\1, {bytes_};", text)
    assert other != text
    with pytest.raises((AssertionError, SimError)):
        run(other, "vector_add_f32")


@pytest.mark.parametrize("agents", [True, False])
def test_clusters(agents: bool) -> None:
    """The first block asks for all, by an agent of its own or behind a meeting of both."""
    code = (EXAMPLES / "bytecode" / "matmul_f16.tileirbc").read_bytes()
    made = tile_core.compile(
        code, "sm_100", emit="ptx", options={"num-ctas": 2, "dynamic-persistent": True},
        pass_options={"tileas-unspecialized-pipeline.in-turn": agents},
    )  # fmt: skip
    text = str(made.stage("ptx"))
    assert text.count("multicast::cluster::all") == 1
    for schedule in SCHEDULES:
        waves, _ = run(text, "matmul_f16", schedule)
        assert waves == 1
        run(text, "matmul_f16", schedule, 4)


def test_where_blocks_stay_as_they_are() -> None:
    code = (EXAMPLES / "bytecode" / "matmul_f16.tileirbc").read_bytes()
    made = tile_core.compile(code, "sm_90", emit="ptx", options={"dynamic-persistent": True})
    why = "sm_90 has no launch control, which comes with sm_100"
    assert [r.kind for r in made.remarks if why in str(r)] == ["failed"]
    assert "clusterlaunchcontrol" not in str(made.stage("ptx"))


@pytest.mark.parametrize(("name", "kinds"), [("saxpy_loop_f32", ["failed"]), ("matmul_f16", [])])
def test_rings_stay_in_registers_where_pipes_cannot_be(name: str, kinds: list[str]) -> None:
    code = (EXAMPLES / "bytecode" / f"{name}.tileirbc").read_bytes()
    options = {"dynamic-persistent": True, "rings": "shared"}
    made = tile_core.compile(code, "sm_100", options=options, emit="ptx")
    said = [r.kind for r in made.remarks if "tiles that cross stages stay in registers" in str(r)]
    assert said == kinds
    text = str(made.stage("ptx"))
    assert "clusterlaunchcontrol" in text
    run_all(text, name)

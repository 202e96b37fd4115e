"""Loads of f32 whose tensor maps round to tf32, in each order of both operands."""

from __future__ import annotations

import re
from functools import cache, partial

import numpy as np
import pytest
import tile_cudatile
from support.pipelined import ROUNDED, Steps
from support.removals import SCHEDULES, is_caught, without
from tile_sim import Module

import tile_core

#: Sums of what is rounded to the nearest are apart from sums of what is cut off by more.
_NEAR = 1e-3
#: Basic blocks of a kernel that ends; mutants may wait for ever.
_MOST_STEPS = 20_000


@cache
def ptx(
    left: str, right: str, target: str, maps: str = "host", strategy: str = "unspecialize"
) -> str:
    module = Steps(left, right).program().module()
    tile_cudatile.verify(module)
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), target, opt_level=2, emit="ptx", keep_stages=False,
        start_at="convert-cudatile-to-tileaa",
        options={"tma-descriptors": maps, "pipeline-strategy": strategy,
                 "unspecialized-pipeline-num-stages": 2},
    )  # fmt: skip
    return str(made.stage("ptx"))


def check(text: str, left: str, right: str, bounds: tuple[int, int], schedule: str) -> None:
    arguments = Steps(left, right).arguments(*bounds)
    report = Module(text).launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=_MOST_STEPS
    )
    assert not report.findings
    np.testing.assert_allclose(arguments[-1], meant(left, right, bounds), atol=_NEAR, rtol=0)


@cache
def meant(left: str, right: str, bounds: tuple[int, int]) -> np.ndarray:
    steps = Steps(left, right)
    arguments = steps.arguments(*bounds)
    tile_cudatile.evaluate(steps.program().module(), "k", (1, 1, 1), arguments)
    return arguments[-1]


@pytest.mark.parametrize("right", ROUNDED)
@pytest.mark.parametrize("left", ROUNDED)
def test_tcgen05_reads_either_order(left: str, right: str) -> None:
    for maps in ("host", "device"):
        text = ptx(left, right, "sm_100", maps)
        assert "tcgen05.mma.cta_group::1.kind::tf32" in text
        assert "cp.async.bulk.tensor" in text
        assert not re.search(r"cvt\.\w+\.tf32|st\.shared\.\w*\.?b32.*tf32", text)
        coarse = left == "rounded_transposed" or right == "rounded"
        assert ("swizzle_atomicity" in text) == (coarse and maps == "device")
        for schedule in SCHEDULES:
            for bounds in ((0, 6), (2, 3), (1, 1)):
                check(text, left, right, bounds, schedule)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("strategy", ["none", "unspecialize"])
def test_threads_round_the_same(target: str, strategy: str) -> None:
    """Without maps, or where products read fragments."""
    for left, right in (("rounded", "rounded"), ("rounded", "rounded_transposed")):
        for maps in ("off", "host"):
            check(ptx(left, right, target, maps, strategy), left, right, (0, 6), "late")


READ = pytest.mark.parametrize(("left", "right", "read"), [
    ("rounded", "rounded_transposed", 0),  # both lie along K
    ("rounded_transposed", "rounded_transposed", 1),  # A along M: threads read it
    ("rounded", "rounded", 1),  # B along N, of which the turned product makes an A along M
])  # fmt: skip


@READ
def test_another_agent_copies_where_threads_read_the_stages(
    left: str, right: str, read: int
) -> None:
    """They wait for their product in each step; where it is in flight, one agent does all."""
    chosen = "warp-specialize" if read else "unspecialize"
    assert ptx(left, right, "sm_90", strategy="estimate") == ptx(
        left, right, "sm_90", strategy=chosen
    )


@READ
@pytest.mark.parametrize("strategy", ["unspecialize", "warp-specialize"])
def test_wgmma_reads_what_maps_round(left: str, right: str, read: int, strategy: str) -> None:
    text = ptx(left, right, "sm_90", strategy=strategy)
    assert "wgmma.mma_async" in text
    assert "mma.sync" not in text
    assert not re.search(r"cvt\.\w+\.tf32", text)
    assert bool(re.search(r"ld\.shared\.v2", text)) == bool(read)
    for schedule in SCHEDULES:
        for bounds in ((0, 6), (2, 3), (1, 1)):
            check(text, left, right, bounds, schedule)


def test_what_both_lie_otherwise_is_left_to_warps() -> None:
    left, right = "rounded_transposed", "rounded"
    text = ptx(left, right, "sm_90")
    assert "wgmma" not in text
    check(text, left, right, (0, 6), "late")


TCGEN05 = (r"tcgen05\.commit", r"mbarrier\.init", r"mbarrier\.arrive\.expect_tx")
#: Arrivals behind reads of a stage, and their fence, too. The meeting of a warp before its arrival
#: is spare where it has waited for a product, which no lane does without the others.
WGMMA = (
    r"mbarrier\.init", r"mbarrier\.arrive", r"wgmma\.fence", r"wgmma\.commit_group",
    r"wgmma\.wait_group", r"fence\.proxy\.async",
)  # fmt: skip


@pytest.mark.parametrize(
    ("target", "instructions"), [("sm_100", TCGEN05), ("sm_90", WGMMA)], ids=["sm_100", "sm_90"]
)
def test_nothing_of_it_can_go(target: str, instructions: tuple[str, ...]) -> None:
    right = "rounded"
    text = ptx("rounded", right, target)
    for instruction in instructions:
        mutants = without(text, rf"{instruction}[^;]*;")
        assert mutants, instruction
        assert all(fails(mutant, right) for mutant in mutants), instruction


def fails(text: str, right: str) -> bool:
    return is_caught(partial(check, text, "rounded", right, (0, 6)))

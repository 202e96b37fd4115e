"""A persistent product with tensor maps and wgmma, written with cutlass and cute, is right."""

from __future__ import annotations

import numpy as np
import pytest
from support.cutlass_hopper import hopper_gemm
from support.cutlass_run import PASSES, ptx
from tile_cute.cutlass.records import Problem, pack
from tile_cute.cutlass.schedules import filled
from tile_sim import Module, SimError, TensorMap

from tile_core.diagnostics import CompileError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry


def run(text: str, shape: tuple[int, int, int], ctas: int, schedule: str = "late") -> None:
    """A product of tiles (m, n, k) of 64 x 32 x 64."""
    m, n, k = shape
    random = np.random.default_rng(m * n + k)
    a = random.standard_normal((64 * m, 64 * k)).astype(np.float16)
    b = random.standard_normal((32 * n, 64 * k)).astype(np.float16)
    c = np.full((64 * m, 32 * n), np.nan, np.float32)
    fields = filled(Problem((m, n, k, 1), ctas=ctas), split=False)
    record = np.frombuffer(pack(fields), np.uint8).copy()
    maps = [TensorMap(a, (64, 64), swizzle="128B"), TensorMap(b, (64, 32), swizzle="128B")]
    report = Module(text).launch(
        "gemm", (ctas, 1, 1), None, [*maps, c, record], check=True, schedule=schedule
    )
    assert not report.findings, "\n".join(map(str, report.findings))
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(c, wanted, rtol=1e-3, atol=2e-2)


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_gemm(schedule: str) -> None:
    text = ptx(hopper_gemm(64))
    assert text.count("wgmma.mma_async") == 4
    assert text.count("cp.async.bulk.tensor.2d") == 2
    assert text.count("prefetch.tensormap") == 2
    run(text, (2, 2, 3), 3, schedule)


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_depths(stages: int) -> None:
    run(ptx(hopper_gemm(32, stages)), (3, 1, 5), 2)


#: The tail may go in a block of its own (see `test_run_cutlass`).
_ORDERS = ("mbarrier.", "bar.sync", "wgmma.wait_group", "cp.async.bulk.tensor")


def test_nothing_that_orders_threads_can_go() -> None:
    tail = '"cutlass.pipeline_producer_tail"(%pipe, %end#1) : (!pipe, !state) -> ()'
    text = ptx(hopper_gemm(32, 2).replace(tail, ""))
    lines = text.split("\n")
    places = [at for at, line in enumerate(lines) if any(mark in line for mark in _ORDERS)]
    products = [at for at in places if "wgmma" in lines[at]]
    assert (len(places), len(products)) == (15, 4)
    # A product may follow on another one with its registers: of four waits the last is needed.
    for at in [at for at in places if at not in products[:-1]]:
        # Products are one statement of several instructions: without its wait alone.
        line = lines[at].replace("wgmma.wait_group.sync.aligned 0;", "")
        rest = [line] if line != lines[at] else []
        with pytest.raises((AssertionError, SimError)):
            run("\n".join([*lines[:at], *rest, *lines[at + 1 :]]), (2, 1, 3), 1)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("sm_80", "counts bytes of copies, which sm_80 cannot"),
        ("sm_100", "which sm_100a does not have"),
    ],
)
def test_targets_without(target: str, words: str) -> None:
    job = OptJob(default_registry(), Selection(passes=PASSES, target=target))
    with pytest.raises(CompileError, match=words):
        optimize(hopper_gemm(32), 0, job)


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_products_in_flight(schedule: str) -> None:
    text = ptx(hopper_gemm(64, in_flight=True))
    assert text.count("wgmma.mma_async") == 4
    assert text.count("wgmma.wait_group") == 1
    run(text, (2, 2, 3), 3, schedule)


def test_products_in_flight_have_to_be_waited_for() -> None:
    text = ptx(hopper_gemm(32, 2, in_flight=True))
    with pytest.raises((AssertionError, SimError)):
        run(text.replace("wgmma.wait_group.sync.aligned 0;", ""), (1, 1, 3), 1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            '"cute_nvgpu.arch_mma_sm90_wait"(%acc3f) {pending = 0 : i32}\n'
            "              : (vector<16xf32>) -> vector<16xf32>",
            "arith.negf %acc3f : vector<16xf32>",
            "is in flight, and 'arith.negf' uses its result",
        ),
        ("%acc1, %a1, %b1, %yes", "%acc1, %a1, %b1, %more", "adds to a sum in flight, or not"),
    ],
)
def test_nobody_sees_sums_in_flight(old: str, new: str, words: str) -> None:
    text = hopper_gemm(32, in_flight=True)
    assert old in text
    job = OptJob(default_registry(), Selection(passes=PASSES, target="sm_90"))
    with pytest.raises(CompileError, match=words):
        optimize(text.replace(old, new), 0, job)

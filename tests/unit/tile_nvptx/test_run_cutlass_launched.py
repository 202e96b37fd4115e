"""Blocks that stay and take over clusters of the grid run in the simulator, and are right."""

from __future__ import annotations

import numpy as np
import pytest
from support.cutlass_launched import STEPS, launched_gemm
from support.cutlass_run import PASSES, ptx
from tile_cute.cutlass.records import Problem, pack
from tile_cute.cutlass.schedules import filled
from tile_sim import Module, SimError

from tile_core.diagnostics import CompileError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

TARGETS = ("sm_100", "sm_120")


def run(text: str, shape: tuple[int, int, int], resident: int, schedule: str = "late") -> None:
    """A product of tiles (m, n, k), of which so many blocks of 192 threads run at a time."""
    m, n, k = shape
    random = np.random.default_rng(m * n + k)
    a = random.standard_normal((32 * m, 16 * k)).astype(np.float16)
    b = random.standard_normal((16 * n, 16 * k)).astype(np.float16)
    c = np.full((32 * m, 16 * n), np.nan, np.float32)
    record = np.frombuffer(pack(filled(Problem((m, n, k, 1)), split=False)), np.uint8).copy()
    report = Module(text).launch(
        "gemm", (m, n, 1), None, [a, b, c, record], check=True, schedule=schedule,
        wave_threads=192 * resident,
    )  # fmt: skip
    assert not report.findings, "\n".join(map(str, report.findings))
    assert report.waves == 1, "the blocks that run take over all others"
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(c, wanted, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_gemm(target: str, schedule: str) -> None:
    run(ptx(launched_gemm(48, 48), target), (3, 3, 3), 2, schedule)


@pytest.mark.parametrize("resident", [1, 3, 9])
def test_residents(resident: int) -> None:
    text = launched_gemm(48, 32, 2, 'raster = "along_n", swizzle = 2', STEPS)
    run(ptx(text, "sm_100"), (3, 3, 2), resident)


def test_refused_before_sm_100() -> None:
    job = OptJob(default_registry(), Selection(passes=PASSES, target="sm_90"))
    with pytest.raises(CompileError, match="not launched, which sm_90a cannot; use a static"):
        optimize(launched_gemm(48, 32), 0, job)


_ORDERS = ("mbarrier.", "bar.sync", "clusterlaunchcontrol.try_cancel", "fence.proxy.async")
#: Behind the first pipe's initialisation the other's meets, too; of the fences of three readers the
#: simulator asks for that of the last.
_SPARE = {4, 14, 17}


@pytest.mark.parametrize("number", sorted(set(range(26)) - _SPARE))
def test_nothing_that_orders_threads_can_go(number: int) -> None:
    tail = '"cutlass.pipeline_producer_tail"(%pipe, %end#1) : (!pipe, !state) -> ()'
    lines = ptx(launched_gemm(48, 48, 2).replace(tail, ""), "sm_100").split("\n")
    places = [at for at, line in enumerate(lines) if any(mark in line for mark in _ORDERS)]
    assert len(places) == 26
    at = places[number]
    with pytest.raises((AssertionError, SimError)):
        run("\n".join([*lines[:at], *lines[at + 1 :]]), (3, 3, 3), 2)

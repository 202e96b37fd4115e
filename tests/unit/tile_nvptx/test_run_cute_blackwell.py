"""A product with tensor maps, tensor memory and tcgen05, written with cute, is right."""

from __future__ import annotations

import numpy as np
import pytest
from support.cute_blackwell import MOVES, MULTICAST, blackwell_gemm
from support.cutlass_run import PASSES, ptx
from tile_sim import Module, SimError, TensorMap

from tile_core.diagnostics import CompileError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry


def run(text: str, m: int, n: int, k: int, schedule: str = "late") -> None:
    random = np.random.default_rng(m + n + k)
    a = random.standard_normal((m, k)).astype(np.float16)
    b = random.standard_normal((n, k)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    maps = [TensorMap(a, (64, 128), swizzle="128B"), TensorMap(b, (64, 64), swizzle="128B")]
    arguments = [*maps, c, np.int32(m), np.int32(n), np.int32(k)]
    report = Module(text).launch(
        "gemm", (m // 128, n // 64, 1), None, arguments, check=True, schedule=schedule
    )
    assert not report.findings, "\n".join(map(str, report.findings))
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(c, wanted, rtol=1e-3, atol=2e-2)


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_gemm(schedule: str) -> None:
    text = ptx(blackwell_gemm(), "sm_100")
    assert text.count("tcgen05.mma") == 4
    run(text, 128, 128, 256, schedule)


#: What a thread would go on without. Without an arrival others would wait for ever, which the
#: simulator says, too, but late.
_ORDERS = ("mbarrier.try_wait", "bar.sync", "tcgen05.fence", "fence.mbarrier_init", "wait::ld")


def test_nothing_that_orders_threads_can_go() -> None:
    lines = ptx(blackwell_gemm(), "sm_100").split("\n")
    places = [at for at, line in enumerate(lines) if any(mark in line for mark in _ORDERS)]
    assert len(places) == 8
    for at in places:
        line = lines[at].replace("tcgen05.wait::ld.sync.aligned;", "")
        rest = [line] if line != lines[at] else []
        if "try_wait" in line:  # as if it had been long enough
            rest = ["setp.eq.b32 P1, 0, 0;"]
        with pytest.raises((AssertionError, SimError)):
            run("\n".join([*lines[:at], *rest, *lines[at + 1 :]]), 128, 64, 192)


def test_targets_without() -> None:
    job = OptJob(default_registry(), Selection(passes=PASSES, target="sm_90"))
    with pytest.raises(CompileError, match="needs tensor memory, which sm_90a does not have"):
        optimize(blackwell_gemm(), 0, job)


def moves(text: str) -> None:
    y, z = np.full((128, 8), -1, np.int32), np.full((128, 4), -1, np.int32)
    report = Module(text).launch("moves", (1, 1, 1), None, [y, z], check=True)
    assert not report.findings, "\n".join(map(str, report.findings))
    np.testing.assert_array_equal(y, np.arange(1024).reshape(128, 8))
    np.testing.assert_array_equal(z, np.arange(512).reshape(128, 4))


def test_moves() -> None:
    moves(ptx(MOVES, "sm_100"))


@pytest.mark.parametrize("mark", ["fence.proxy", "bar.sync", "tcgen05.fence", "wait::st"])
def test_moves_are_ordered(mark: str) -> None:
    lines = ptx(MOVES, "sm_100").split("\n")
    at = next(at for at, line in enumerate(lines) if mark in line)
    line = lines[at].replace("tcgen05.wait::st.sync.aligned;", "")
    rest = [line] if line != lines[at] else []
    with pytest.raises((AssertionError, SimError)):
        moves("\n".join([*lines[:at], *rest, *lines[at + 1 :]]))


def multicast(text: str, schedule: str = "late") -> None:
    x = np.arange(4096, dtype=np.float16).reshape(64, 64)
    y = np.full((2, 64, 64), -1, np.float16)
    report = Module(text).launch(
        "multicast", (1, 1, 1), None, [TensorMap(x, (64, 32)), y], check=True, schedule=schedule
    )
    assert not report.findings, "\n".join(map(str, report.findings))
    np.testing.assert_array_equal(y, np.stack([x, x]))


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_multicast(target: str, schedule: str) -> None:
    text = ptx(MULTICAST, target)
    assert text.count(".multicast::cluster") == 1
    multicast(text, schedule)


@pytest.mark.parametrize("mark", ["fence.mbarrier_init", "cluster.arrive", "mbarrier.try_wait"])
def test_multicast_is_ordered(mark: str) -> None:
    lines = ptx(MULTICAST, "sm_90").split("\n")
    at = next(at for at, line in enumerate(lines) if mark in line)
    rest = lines[at + 1 :]
    if mark == "cluster.arrive":
        rest = [line for line in rest if "barrier.cluster" not in line]
    done = ["setp.eq.b32 P1, 0, 0;"] if "try_wait" in mark else []
    with pytest.raises((AssertionError, SimError)):
        multicast("\n".join([*lines[:at], *done, *rest]))

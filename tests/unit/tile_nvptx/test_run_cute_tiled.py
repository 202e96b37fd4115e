"""Kernels with tiled copies and products of cute, for sizes of run time, are right."""

from __future__ import annotations

import numpy as np
import pytest
from support.cute_tiled import GEMM, PIECES
from support.cutlass_run import ptx
from tile_sim import Module, SimError


def gemm(text: str, m: int, n: int, k: int, schedule: str = "late") -> None:
    random = np.random.default_rng(m + n + k)
    a = random.standard_normal((m, k)).astype(np.float16)
    b = random.standard_normal((n, k)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    arguments = [a, b, c, np.int32(m), np.int32(n), np.int32(k)]
    report = Module(text).launch(
        "gemm", (m // 64, n // 32, 1), None, arguments, check=True, schedule=schedule
    )
    assert not report.findings, "\n".join(map(str, report.findings))
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(c, wanted, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_gemm(target: str) -> None:
    text = ptx(GEMM, target)
    assert "ld.local" not in text
    assert text.count("mma.sync") == 8
    assert text.count("ldmatrix") == 6
    gemm(text, 128, 64, 96)


@pytest.mark.parametrize("schedule", ["early", "random"])
def test_one_text_for_every_size(schedule: str) -> None:
    for m, n, k in ((64, 32, 32), (64, 96, 128)):
        gemm(ptx(GEMM, "sm_80"), m, n, k, schedule)


def test_nothing_that_orders_threads_can_go() -> None:
    lines = ptx(GEMM, "sm_80").split("\n")
    marks = ("bar.sync", "cp.async.commit_group", "cp.async.wait_group")
    places = [at for at, line in enumerate(lines) if any(mark in line for mark in marks)]
    assert len(places) == 4
    for at in places:
        with pytest.raises((AssertionError, SimError)):
            gemm("\n".join([*lines[:at], *lines[at + 1 :]]), 64, 32, 96)


def pieces(text: str, n: int) -> None:
    x = np.arange(1024, dtype=np.float32)
    y = np.full_like(x, -1)
    w, q = np.zeros(32, np.float32), np.zeros((32, 2), np.int32)
    z = np.zeros((16, 8), np.float32)
    arguments = [x, y, np.int32(n), w, q, z]
    report = Module(text).launch("pieces", (1, 1, 1), None, arguments, check=True)
    assert not report.findings, "\n".join(map(str, report.findings))
    np.testing.assert_array_equal(y, np.where(np.arange(1024) < n + 4, x, -1))
    np.testing.assert_array_equal(w, np.full(32, 1.5))
    np.testing.assert_array_equal(q, [(t // 3 * 3, n) for t in range(32)])
    np.testing.assert_array_equal(z, np.full((16, 8), 18))


@pytest.mark.parametrize("n", [0, 264, 1016])
def test_pieces(n: int) -> None:
    text = ptx(PIECES, "sm_80")
    assert "ld.global.v4" in text
    assert text.count("prefetch.global.L2") == 5
    pieces(text, n)

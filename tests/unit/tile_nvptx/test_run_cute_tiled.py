"""Kernels with tiled copies and products of cute, for sizes of run time, are right."""

from __future__ import annotations

import numpy as np
import pytest
from support.cute_tiled import GEMM
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

"""The kernels of the ladders compute products, as those that they follow do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tile_sim import Module

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from gemm_sm80 import Gemm80
from gemm_sm100 import Gemm100, mapped
from gemm_sm100_pair import Pair100
from ladders import rank_correlation
from sm100_text import ROWS

_SIZE = 256
_A, _B = (np.random.default_rng(n).integers(-2, 3, (_SIZE, _SIZE)) for n in range(2))


def _check(ptx: str, grid: Any, arguments: list[Any], shared: int) -> None:
    c = next(a for a in arguments if isinstance(a, np.ndarray) and not a.any())
    report = Module(ptx).launch(
        "gemm", grid, None, arguments, shared_bytes=shared, check=True, schedule="late"
    )
    assert report.findings == []
    assert np.array_equal(c, (_A @ _B.T).astype(np.float16))


def _arguments(gemm: Gemm100 | Pair100) -> tuple[Any, list[Any]]:
    """Grid and arguments of a product of A and B, through tensor maps."""
    grid, arguments = gemm.arguments(_SIZE)
    arguments[:2] = [
        mapped(values.astype(np.float16), gemm.step, rows)
        for values, rows in ((_A, ROWS), (_B, gemm.step.n))
    ]
    return grid, arguments


@pytest.mark.parametrize(
    "gemm",
    [Gemm80("registers", "plain"), Gemm80("async", "padded"), Gemm80("async", "swizzled", 2)],
)
def test_sm80(gemm: Gemm80) -> None:
    grid, arguments = gemm.arguments(_SIZE)
    arguments[:2] = [_A.astype(np.float16), _B.astype(np.float16)]
    _check(gemm.ptx, grid, arguments, gemm.shared)


@pytest.mark.parametrize(
    "gemm",
    [
        Gemm100(256, 256, 1, 16),
        Gemm100(256, 128, 2, planes=True),
        Gemm100(128, 64, 7, roles=True),
        Pair100(),
        Pair100(n=128, stages=2, blocks=2, wide=16, arrive="relaxed"),
    ],
)
def test_sm100(gemm: Gemm100 | Pair100) -> None:
    grid, arguments = _arguments(gemm)
    _check(gemm.ptx, grid, arguments, gemm.shared)


def test_ranks() -> None:
    assert rank_correlation([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]) == pytest.approx(1.0)
    assert rank_correlation([1.0, 2.0, 3.0], [30.0, 20.0, 10.0]) == pytest.approx(-1.0)
    assert rank_correlation([1.0, 2.0, 3.0], [10.0, 10.0, 30.0]) == pytest.approx(0.866, abs=1e-3)


def test_a_relaxed_meeting_orders_what_tcgen05_fences_alone() -> None:
    """Without fences behind the loads, columns are given back that others may still read."""
    gemm = Pair100(n=128, stages=2, blocks=2, wide=16, arrive="relaxed")
    grid, arguments = _arguments(gemm)
    first, *others = gemm.ptx.split("tcgen05.fence::before_thread_sync;")
    allocated, *behind = others
    assert len(behind) == 2, "with the sums, and at the end"
    ptx = f"{first}tcgen05.fence::before_thread_sync;{allocated}{''.join(behind)}"
    launched = Module(ptx).launch(
        "gemm", grid, None, arguments, shared_bytes=gemm.shared, check=True
    )
    found = {finding.message for finding in launched.findings}
    assert "deallocation of tensor memory that another warp reads" in found

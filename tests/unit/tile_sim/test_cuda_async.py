"""cp.async, mbarrier and tensor cores as nvcc and the toolkit's headers use them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module, SimError

Cuda = Callable[[str], Module]
SCHEDULES = ["late", "early", "random"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_cuda_pipeline(cuda: Cuda, schedule: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.random((5, 64, 4), np.float32)
    out = np.zeros(64, np.float32)
    cuda("pipeline").launch(
        "staged_sum", (1, 1, 1), (64, 1, 1), [x, out, 5], shared_bytes=2048, schedule=schedule
    )
    expected = (x @ np.arange(1, 5, dtype=np.float32)).sum(axis=0)[np.arange(64) ^ 5]
    np.testing.assert_allclose(out, expected, rtol=1e-5)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("n", [128, 500, 1030])
def test_groups_with_zero_fill(cuda: Cuda, schedule: str, n: int) -> None:
    x = np.random.default_rng(2).random(n, np.float32)
    y = np.zeros(n, np.float32)
    cuda("pipeline").launch("groups", (1, 1, 1), (32, 1, 1), [x, y, n], schedule=schedule, seed=3)
    padded = np.zeros(-(-n // 128) * 128, np.float32)
    padded[:n] = x
    tiles = padded.reshape(-1, 128)
    np.testing.assert_array_equal(y, (tiles + tiles[:, ::-1]).reshape(-1)[:n])


@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_producer_and_consumer_warps(cuda: Cuda, tiles: int) -> None:
    x = np.arange(64 * tiles, dtype=np.int32)
    y = np.zeros_like(x)
    cuda("pipeline").launch("producer_consumer", (1, 1, 1), (128, 1, 1), [x, y, tiles])
    np.testing.assert_array_equal(y, 3 * x.reshape(-1, 64)[:, ::-1].reshape(-1))


def test_reading_before_the_copy_lands(cuda: Cuda) -> None:
    """Without its wait, the kernel `groups` is caught under every schedule but `early`."""
    text = "\n".join(cuda("pipeline").source.text.split("\n"))
    broken = Module(text.replace("cp.async.wait_group 2;", ""))
    x, y = np.zeros(500, np.float32), np.zeros(500, np.float32)
    with pytest.raises(SimError) as caught:
        broken.launch("groups", (1, 1, 1), (32, 1, 1), [x, y, 500])
    assert caught.value.kind == "pending"
    assert "pipeline.cu" in str(caught.value)
    broken.launch("groups", (1, 1, 1), (32, 1, 1), [x, y, 500], schedule="early")


def test_ldmatrix_and_mma(cuda: Cuda) -> None:
    rng = np.random.default_rng(3)
    a, b = (
        rng.normal(size=(32, 48)).astype(np.float16),
        rng.normal(size=(48, 24)).astype(np.float16),
    )
    c = np.zeros((32, 24), np.float32)
    cuda("tensor_sm80").launch("mma_tile", (3, 2, 1), (32, 1, 1), [a, b, c, 24, 48])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


def test_warp_matrix_interface(cuda: Cuda) -> None:
    rng = np.random.default_rng(4)
    a, b = (
        rng.normal(size=(32, 48)).astype(np.float16),
        rng.normal(size=(48, 32)).astype(np.float16),
    )
    c = np.zeros((32, 32), np.float32)
    columns = np.ascontiguousarray(b.T)
    cuda("tensor_sm80").launch("wmma_tile", (2, 2, 1), (32, 1, 1), [a, columns, c, 32, 48])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)

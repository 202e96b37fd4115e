"""Kernels written with cutlass run in the simulator in check mode, and are right."""

from __future__ import annotations

import numpy as np
import pytest
from support.cutlass_kernels import gemm
from support.cutlass_run import ptx
from tile_cute.cutlass.numbers import Integers
from tile_cute.cutlass.records import Problem, pack
from tile_cute.cutlass.schedules import filled, workspace
from tile_sim import Module, SimError

KINDS = ("dp", "static_persistent", "streamk")
#: Bytes of the accumulators of a tile of 32 x 16.
TILE = 32 * 16 * 4


def run(
    text: str, kind: str, shape: tuple[int, int, int], ctas: int, schedule: str = "late"
) -> None:
    """A product of tiles (m, n, k), twice with one workspace: launches leave counters clear."""
    m, n, k = shape
    random = np.random.default_rng(m * n + k)
    a = random.standard_normal((32 * m, 16 * k)).astype(np.float16)
    b = random.standard_normal((16 * n, 16 * k)).astype(np.float16)
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    fields = filled(Problem((m, n, k, 1), ctas=ctas), split=kind == "streamk")
    size = workspace(Integers(), fields, TILE)[0] if kind == "streamk" else 0
    store = np.zeros(max(size, 4) // 4, np.int32)
    module = Module(text)
    grid = (m * n if kind == "dp" else ctas, 1, 1)
    for _ in range(2):
        c = np.full((32 * m, 16 * n), np.nan, np.float32)
        record = np.frombuffer(pack(fields), np.uint8).copy()
        arguments = [a, b, c, record, *([store] if kind == "streamk" else [])]
        report = module.launch("gemm", grid, None, arguments, check=True, schedule=schedule)
        assert not report.findings, "\n".join(map(str, report.findings))
        np.testing.assert_allclose(c, wanted, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_gemm(kind: str, target: str, schedule: str) -> None:
    run(ptx(gemm(kind, 48, 80), target), kind, (3, 3, 5), 4, schedule)


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("kind", KINDS[1:])
def test_depths(kind: str, stages: int) -> None:
    run(ptx(gemm(kind, 32, 48, stages)), kind, (2, 2, 3), 3)


@pytest.mark.parametrize("raster", ['raster = "along_n"', 'raster = "along_n", swizzle = 2'])
@pytest.mark.parametrize("kind", KINDS)
def test_orders(kind: str, raster: str) -> None:
    run(ptx(gemm(kind, 48, 32, 2, raster)), kind, (2, 3, 2), 5)


@pytest.mark.parametrize(
    ("shape", "ctas"), [((1, 1, 8), 5), ((3, 1, 8), 8), ((5, 1, 4), 2), ((4, 1, 1), 3)]
)
def test_parts(shape: tuple[int, int, int], ctas: int) -> None:
    """A tile in five parts; runs across tiles; whole tiles behind runs; one step a tile."""
    run(ptx(gemm("streamk", 16 * shape[1], 16 * shape[2])), "streamk", shape, ctas)


#: What orders threads in the kernel of `streamk`, but for `bar.warp.sync`: lanes run together here.
_ORDERS = ("mbarrier.", "bar.sync", "red.release", "ld.acquire", "st.relaxed")
_TAIL = '"cutlass.pipeline_producer_tail"(%pipe, %end#1) : (!pipe, !state) -> ()'


@pytest.mark.parametrize("number", range(14))
def test_nothing_that_orders_threads_can_go(number: int) -> None:
    """The tail can: a block's memory stays until its last thread ends. See clusters for that."""
    lines = ptx(gemm("streamk", 16, 128, 2).replace(_TAIL, "")).split("\n")
    places = [at for at, line in enumerate(lines) if any(mark in line for mark in _ORDERS)]
    assert len(places) == 14
    at = places[number]
    with pytest.raises((AssertionError, SimError)):
        run("\n".join([*lines[:at], *lines[at + 1 :]]), "streamk", (3, 1, 8), 8)

"""Kernels written with cute run in the simulator, and are right."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from support.cute_kernels import GEMM, MOVES, STAGED, TRANSPOSE
from tile_cute.atoms.tiled_mma import partition_of
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout
from tile_cute.text import parse_layout
from tile_sim import Module, SimError, TensorMap

import tile_core
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

PASS = "convert-cute-and-cute-nvgpu-to-llvm"
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
TARGETS = ("sm_80", "sm_90")


@cache
def ptx(text: str, target: str = "sm_80") -> str:
    job = OptJob(default_registry(), Selection(passes=PASS, target=target))
    lowered = optimize(text, 0, job).text
    made = tile_core.compile(
        lowered.encode(), target, opt_level=1, start_at="llvm-dialect", emit="ptx"
    )
    return str(made.stage("ptx"))


def gemm(text: str, depth: int, schedule: str = "late") -> None:
    random = np.random.default_rng(depth)
    a = random.standard_normal((32, depth)).astype(np.float16)
    b = random.standard_normal((16, depth)).astype(np.float16)
    c = np.zeros((32, 16), np.float32)
    arguments = [a, b, c, np.int32(depth)]
    report = Module(text).launch("gemm", (1, 1, 1), None, arguments, check=True, schedule=schedule)
    assert not report.findings, "\n".join(map(str, report.findings))
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(c, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("depth", [16, 48])
def test_gemm(target: str, depth: int) -> None:
    text = ptx(GEMM.replace("(K,1)", f"({depth},1)"), target)
    assert text.count("mma.sync") == 1
    assert "ld.shared" in text
    gemm(text, depth)


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("target", TARGETS)
def test_staged(target: str, schedule: str) -> None:
    """Copies by cp.async, fragments by ldmatrix; one text for every depth."""
    text = ptx(STAGED, target)
    assert "cp.async.ca.shared.global" in text
    assert len(re.findall(r"ldmatrix\S*\.x[24]\.", text)) == 2
    for depth in (16, 64):
        gemm(text, depth, schedule)


@pytest.mark.parametrize(("text", "count"), [(GEMM, 2), (STAGED, 4)], ids=["plain", "staged"])
def test_no_barrier_or_wait_can_go(text: str, count: int) -> None:
    lines = ptx(text.replace("(K,1)", "(48,1)")).split("\n")
    marks = ("bar.sync", "cp.async.commit_group", "cp.async.wait_group")
    places = [at for at, line in enumerate(lines) if any(mark in line for mark in marks)]
    assert len(places) == count
    for at in places:
        with pytest.raises((AssertionError, SimError)):
            gemm("\n".join([*lines[:at], *lines[at + 1 :]]), 48)


@pytest.mark.parametrize("target", TARGETS)
def test_transpose_through_swizzled_memory(target: str) -> None:
    x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    y = np.zeros_like(x)
    report = Module(ptx(TRANSPOSE, target)).launch("transpose", (1, 1, 1), None, [x, y], check=True)
    assert not report.findings
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("operand", ["A", "B", "C"])
@pytest.mark.parametrize("warps", ["(1,1,1):(0,0,0)", "(2,2,1):(1,2,4)", "(4,1,1):(1,4,4)"])
def test_partitions_hold_each_element_once_for_each_warp_that_needs_it(
    operand: str, warps: str
) -> None:
    """By enumeration: index = lane bits + warps + value, over all of a tensor of two tiles."""
    if warps.startswith("(1"):
        warps = "(1,1,1):(1,1,1)"
    parsed = parse_layout(warps)
    assert isinstance(parsed, Layout)
    m, n = (mode.size for mode in list(parsed)[:2])
    shape = {"A": (32 * m, 32), "B": (16 * n, 32), "C": (32 * m, 16 * n)}[operand]
    tensor = Layout(shape, (shape[1] + 3, 1))
    part = partition_of(MMA, warps, operand, tensor)
    seen: dict[int, int] = {}
    for thread in range(32 * m * n):
        lane = sum(weight for bit, weight in enumerate(part.lane) if thread >> bit & 1)
        warp = sum(thread // (32 * step) % extent * by for step, extent, by in part.warps)
        for value in range(part.layout.size):
            index = int(lane + warp + int(part.layout(value)))  # type: ignore[arg-type]
            seen[index] = seen.get(index, 0) + 1
    times = {"A": n, "B": m, "C": 1}[operand]
    assert seen == dict.fromkeys(map(int, tensor.indices()), times)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("warps", "operand", "tensor", "words"),
    [
        ("(2,2,1):(2,1,4)", "A", "(32,16):(16,1)", "expects warps in order"),
        ("(1,1,2):(1,1,1)", "A", "(32,16):(16,1)", "cannot share K among warps"),
        ("(2,2,1):(1,2,4)", "D", "(32,16):(16,1)", "expects 'operand' to be A, B or C"),
        ("(2,2,1):(1,2,4)", "A", "(40,16):(16,1)", "cannot cut 40:16 into tiles of 32"),
        ("(2,2,1):(1,2,4)", "A", "32:1", "expects a tensor of two modes"),
    ],
)
def test_partitions_that_cannot_be(warps: str, operand: str, tensor: str, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        partition_of(MMA, warps, operand, parse_layout(tensor))  # type: ignore[arg-type]


def moves(text: str) -> None:
    x = np.arange(256, dtype=np.float16).reshape(32, 4, 2)
    y, z = np.zeros((32, 8), np.float16), np.ones((32, 8), np.float16)
    w = np.full(32, -1, np.int32)
    maps = [TensorMap(array, (8, 32)) for array in (y, z)]
    report = Module(text).launch("moves", (1, 1, 1), None, [x, *maps, w], check=True)
    assert not report.findings, "\n".join(map(str, report.findings))
    # Register j of lane t is columns 2 (t % 4) and behind of row t / 4 of matrix j.
    wanted = x.reshape(8, 4, 4, 2).transpose(2, 0, 1, 3).reshape(32, 8)
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(z, wanted + 1)
    np.testing.assert_array_equal(w, np.zeros(32, np.int32))


def test_moves() -> None:
    moves(ptx(MOVES, "sm_90"))


@pytest.mark.parametrize("mark", ["fence.proxy.async", "stmatrix", "cp.async.bulk.wait_group"])
def test_moves_are_ordered(mark: str) -> None:
    lines = ptx(MOVES, "sm_90").split("\n")
    (at,) = [at for at, line in enumerate(lines) if mark in line]
    with pytest.raises((AssertionError, SimError)):
        moves("\n".join([*lines[:at], *lines[at + 1 :]]))

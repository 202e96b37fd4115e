"""Ladders of kernels of our own that follow published ones, against their ratios on one card.

None of these rows is used to fit the model.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from gemm_ptx import Gemm
from tile_time.model import load_kernel, time_kernel
from tile_time.result import Result

from tile_core.machines import builtin_machines


@dataclass(frozen=True)
class Rung:
    """A kernel and what was published for one like it, TFLOP/s."""

    name: str
    gemm: Gemm
    published: float


#: H100, bf16, 4096 cubed: P. Shah, fast.cu, and A. Gordić, "Inside NVIDIA GPUs: Anatomy of high
#: performance matmul kernels". Types of the same width take the same time here.
H100 = (
    Rung("wgmma and TMA, 64x64", Gemm(64, 64), 317),
    Rung("larger tile, 128x128", Gemm(128, 128), 423),
    Rung("producer and consumer, 128x128", Gemm(128, 128, 5, 1), 498),
    Rung("two consumers, 128x256", Gemm(128, 256, 3, 2), 610),
    Rung("persistent, tile order", Gemm(128, 256, 3, 2, True), 660),
    Rung("cluster of 2, multicast", Gemm(128, 256, 4, 2, True, 2), 734),
)


def timed(rung: Rung, gpu: str = "h100-sxm", size: int = 4096) -> Result:
    kernel = load_kernel(rung.gemm.ptx, builtin_machines()[gpu])
    grid, arguments = rung.gemm.arguments(size)
    return time_kernel(kernel, grid, None, arguments)


def show_ladders(names: list[str]) -> None:
    """Each rung's ratio to the last one, the model's and the published one."""
    rows: list[tuple[Rung, Result, float]] = []
    for rung in H100:
        if names and not any(name in rung.name for name in names):
            continue
        start = time.process_time()
        rows.append((rung, timed(rung), time.process_time() - start))
    scale = sum(r.published for r, _, _ in rows) / sum(x.tflops for _, x, _ in rows)
    print("| H100 4096^3 | published | model | ratio error | binds | CPU s |")
    print("|---|--:|--:|--:|---|--:|")
    errors = []
    for rung, result, seconds in rows:
        error = result.tflops * scale / rung.published - 1
        errors.append(abs(error))
        binds = ", ".join(f"{name} {share:.0%}" for name, share in result.binds)
        print(f"| {rung.name} | {rung.published:g} | {result.tflops:.0f} | {error:+.1%} | {binds} "
              f"| {seconds:.1f} |", flush=True)  # fmt: skip
    order = rank_correlation([r.published for r, _, _ in rows], [x.tflops for _, x, _ in rows])
    print(f"\nmean absolute error of ratios {sum(errors) / len(errors):.1%}, largest "
          f"{max(errors):.1%}, rank correlation {order:.2f}")  # fmt: skip


def rank_correlation(first: list[float], second: list[float]) -> float:
    """Spearman's, without ties."""
    count = len(first)
    ranks = [
        {n: i for i, n in enumerate(sorted(range(count), key=lambda n: values[n]))}
        for values in (first, second)
    ]
    distance = sum((ranks[0][n] - ranks[1][n]) ** 2 for n in range(count))
    return 1 - 6 * distance / (count * (count**2 - 1)) if count > 1 else 1.0

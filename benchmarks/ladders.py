"""Ladders of kernels of our own that follow published ones, against their ratios on one card.

None of these rows is used to fit the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gemm_ptx import Gemm
from gemm_sm80 import Gemm80
from gemm_sm100 import Gemm100
from gemm_sm100_pair import Pair100
from stream_ptx import Stream
from tile_time.model import load_kernel, time_kernel
from tile_time.result import Result

from tile_core.machines import Machine, builtin_machines


@dataclass(frozen=True)
class Rung:
    """A kernel and what was published for one like it, in the unit of its ladder."""

    name: str
    kernel: Any  # with `ptx`
    published: float


@dataclass(frozen=True)
class Ladder:
    """Rungs on one card, in the order in which they were published."""

    title: str
    gpu: str
    unit: str
    rungs: Sequence[Rung]
    timed: Callable[[Rung, Machine], tuple[Result, float]]  # the result, and its rate


def product_timed(rung: Rung, machine: Machine, size: int = 4096) -> tuple[Result, float]:
    """A product of `size` cubed, TFLOP/s."""
    kernel = load_kernel(rung.kernel.ptx, machine)
    grid, arguments = rung.kernel.arguments(size)
    shared = getattr(rung.kernel, "shared", 0)
    found = time_kernel(kernel, grid, None, arguments, shared_bytes=shared)
    return found, 2.0 * size**3 / found.seconds / 1e12


def stream_timed(rung: Rung, machine: Machine) -> tuple[Result, float]:
    """A stream's bytes, GB/s."""
    stream = rung.kernel
    kernel = load_kernel(stream.ptx, machine)
    grid, arguments = stream.arguments()
    shared = stream.shared(machine)
    found = time_kernel(kernel, grid, None, arguments, shared_bytes=shared)
    return found, stream.bytes / found.seconds / 1e9


#: P. Shah, fast.cu, and A. Gordić, "Inside NVIDIA GPUs: Anatomy of high performance matmul
#: kernels", bf16. Types of the same width take the same time here.
H100 = (
    Rung("wgmma and TMA, 64x64", Gemm(64, 64), 317),
    Rung("larger tile, 128x128", Gemm(128, 128), 423),
    Rung("producer and consumer, 128x128", Gemm(128, 128, 5, 1), 498),
    Rung("two consumers, 128x256", Gemm(128, 256, 3, 2), 610),
    Rung("persistent, tile order", Gemm(128, 256, 3, 2, True), 660),
    Rung("cluster of 2, multicast", Gemm(128, 256, 4, 2, True, 2), 734),
)
#: gau-nernst, learn-cuda, 02b_matmul_sm80, A100 SXM4 40 GB. Left out: v5, which its author calls a
#: regression to be looked into, and v6b, which is v6 but for the order of tiles (0.1 % apart).
A100 = (
    Rung("v1, loads by way of registers", Gemm80("registers", "plain"), 59.92),
    Rung("v2, cp.async", Gemm80("async", "plain"), 64.94),
    Rung("v3, padded rows", Gemm80("async", "padded"), 166.78),
    Rung("v4, swizzled rows", Gemm80("async", "swizzled"), 190.94),
    Rung("v6, two stages", Gemm80("async", "swizzled", 2), 220.77),
)
#: gau-nernst, learn-cuda, 02e_matmul_sm100. Left out: v0 (`mma.sync`, another generation's code),
#: and what is within 2 % of the rung before, as its author says that runs vary: v1b (v1a with maps
#: of three dimensions), v7a and v7c (order of the setup, a hint at stores).
B200 = (
    Rung("v1a, rows of 16 bytes, 128x256x256", Gemm100(256, 256, 1, 16), 255.73),
    Rung("v2a, rows of 128 bytes, 128x256x256", Gemm100(256, 256, 1), 699.39),
    Rung("v2b, one copy an operand", Gemm100(256, 256, 1, planes=True), 721.02),
    Rung("v3, two stages, 128x256x128", Gemm100(256, 128, 2, planes=True), 914.42),
    Rung("v4, roles, seven stages, 128x128x64", Gemm100(128, 64, 7, roles=True, planes=True),
         1053.61),
    Rung("v5, pairs of CTAs, 256x256x64", Pair100(), 1169.65),
    Rung("v6, persistent, 148 CTAs", Pair100(blocks=148), 1273.32),
    Rung("v7b, 128 CTAs, relaxed barriers", Pair100(blocks=128, wide=16, arrive="relaxed"),
         1316.16),
)  # fmt: skip
#: te42kyfo, gpu-benches, gpu-stream: logs. Reads and fills of the same logs are what the machine
#: files' `dram-wait` and the start of a CTA come from, so only what moves two arrays or three
#: stands here.
STREAMS = {
    "h200": {64: (463, 638), 128: (852, 1129), 256: (1395, 1905), 512: (2263, 2919),
             1024: (3165, 3534)},
    "a100": {64: (305, 427), 128: (581, 799), 256: (1026, 1372), 512: (1577, 1659),
             1024: (1732, 1759)},
}  # fmt: skip


def _streams(gpu: str) -> tuple[Rung, ...]:
    return tuple(
        Rung(f"{kind}, two blocks of {threads} an SM", Stream(kind, threads), published)
        for threads, both in STREAMS[gpu].items()
        for kind, published in zip(("scale", "triad"), both, strict=True)
    )


LADDERS = (
    Ladder("H100, products of 4096^3", "h100-sxm", "TFLOP/s", H100, product_timed),
    Ladder("A100, products of 4096^3", "a100", "TFLOP/s", A100, product_timed),
    Ladder("B200, products of 4096^3", "b200", "TFLOP/s", B200, product_timed),
    Ladder("H200, streams", "h200", "GB/s", _streams("h200"), stream_timed),
    Ladder("A100, streams", "a100", "GB/s", _streams("a100"), stream_timed),
)


def show_ladders(names: list[str]) -> None:
    """Each ladder as a table."""
    for ladder in LADDERS:
        if not names or any(name in ladder.title for name in names):
            _show(ladder)


def _show(ladder: Ladder) -> None:
    """Ratios within the card: the model's rates times one factor, by which both sums are equal."""
    machine = builtin_machines()[ladder.gpu]
    rows: list[tuple[Rung, Result, float, float]] = []
    for rung in ladder.rungs:
        start = time.process_time()
        result, rate = ladder.timed(rung, machine)
        rows.append((rung, result, rate, time.process_time() - start))
    scale = sum(r.published for r, *_ in rows) / sum(rate for _, _, rate, _ in rows)
    print(f"| {ladder.title}, {ladder.unit} | published | model | ratio error | binds | CPU s |")
    print("|---|--:|--:|--:|---|--:|")
    errors = []
    for rung, result, rate, seconds in rows:
        error = rate * scale / rung.published - 1
        errors.append(abs(error))
        binds = ", ".join(f"{name} {share:.0%}" for name, share in result.binds)
        print(f"| {rung.name} | {rung.published:g} | {rate:.0f} | {error:+.1%} | {binds} "
              f"| {seconds:.1f} |", flush=True)  # fmt: skip
    order = rank_correlation([r.published for r, *_ in rows], [rate for _, _, rate, _ in rows])
    print(f"\nmean absolute error of ratios {sum(errors) / len(errors):.1%}, largest "
          f"{max(errors):.1%}, rank correlation {order:.2f}\n", flush=True)  # fmt: skip


def rank_correlation(first: list[float], second: list[float]) -> float:
    """Spearman's; equal values share the mean of their ranks."""
    ranks = [[_rank(value, values) for value in values] for values in (first, second)]
    mean = (len(first) - 1) / 2
    products, squares, others = (
        sum((ranks[a][n] - mean) * (ranks[b][n] - mean) for n in range(len(first)))
        for a, b in ((0, 1), (0, 0), (1, 1))
    )
    return products / (squares * others) ** 0.5 if squares and others else 1.0


def _rank(value: float, values: list[float]) -> float:
    below = sum(other < value for other in values)
    return below + (values.count(value) - 1) / 2

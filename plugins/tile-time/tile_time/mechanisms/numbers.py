"""Which numbers of a machine file follow from which mechanisms, once a GPU has measured them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Number:
    """`path` of the machine ("sync.bar_base") from the measured values of mechanisms by name."""

    path: str
    mechanisms: tuple[str, ...]
    of: Callable[..., float]


def _itself(value: float) -> float:
    return value


def _same(path: str, mechanism: str) -> Number:
    return Number(path, (mechanism,), _itself)


NUMBERS: tuple[Number, ...] = (
    _same("pipes.fma.latency", "FFMA latency"),
    _same("pipes.fma.rate", "FFMA rate"),
    _same("pipes.half.rate", "HFMA2 rate"),
    _same("pipes.alu.rate", "LOP3 rate"),
    _same("pipes.mufu.rate", "ex2 rate"),
    _same("pipes.mufu.latency", "ex2 latency"),
    _same("pipes.convert.rate", "cvt.rn.f16x2.f32 rate"),
    _same("pipes.shuffle.latency", "shuffle latency"),
    _same("pipes.fp64.rate", "FP64 FMA rate"),
    _same("memory.shared_latency", "shared load latency"),
    _same("memory.shared_bandwidth", "shared bandwidth"),
    _same("memory.l1_latency", "L1 hit latency"),
    _same("memory.l2_latency", "L2 hit latency"),
    _same("memory.dram_latency", "DRAM latency"),
    _same("mma.m16n8k16", "mma.sync m16n8k16 interval of a sub-core"),
    _same("mma.latency", "mma.sync m16n8k16 latency"),
    Number("wgmma.clk_per_column", ("wgmma m64n256k16 RS interval",), lambda clk: clk / 256),
    Number(
        "wgmma.drain", ("wgmma m64n64k16, commit, wait", "wgmma m64n64k16 SS interval"),
        lambda waited, interval: waited - interval,
    ),
    Number("tcgen05.clk_per_column", ("tcgen05.mma m128n256k16 interval",), lambda clk: clk / 256),
    Number(
        "sync.bar_per_warp", ("bar.sync of 4 warps", "bar.sync of 16 warps"),
        lambda few, many: (many - few) / 12,
    ),
    Number(
        "sync.bar_base", ("bar.sync of 4 warps", "bar.sync of 16 warps"),
        lambda few, many: few - (many - few) / 3,
    ),
    _same("sync.fence_cta", "fence.acq_rel.cta"),
    _same("sync.fence_gpu", "fence.acq_rel.gpu"),
    _same("sync.cluster_barrier", "barrier of a cluster of 2, relaxed"),
    Number(
        "copies.tma_per_kb",
        ("bulk copy of 16 KB to the waiter", "bulk copy of 64 KB to the waiter"),
        lambda few, many: (many - few) / 48,
    ),
    Number(
        "copies.tma_latency",
        ("bulk copy of 16 KB to the waiter", "bulk copy of 64 KB to the waiter"),
        lambda few, many: few - (many - few) / 3,
    ),
)  # fmt: skip

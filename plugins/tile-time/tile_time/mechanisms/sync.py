"""Barriers, mbarriers and fences."""

from __future__ import annotations

from tile_time.mechanisms.copies import BAR, BAR_START
from tile_time.mechanisms.record import Mechanism
from tile_time.mechanisms.text import chain

_GPUS = (("a100", "sm_80"), ("h100-sxm", "sm_90a"), ("b200", "sm_100a"))


def sync() -> list[Mechanism]:
    """What waiting costs where nobody is late."""
    found: list[Mechanism] = []
    for gpu, target in _GPUS:
        found += [
            Mechanism("bar.sync of 4 warps", gpu, target, chain("bar.sync 0;", 16), 30, "clk", 16,
                      threads=128),
            Mechanism("bar.sync of 16 warps", gpu, target, chain("bar.sync 0;", 16), 54, "clk", 16,
                      threads=512),
            Mechanism("fence.acq_rel.cta", gpu, target, chain("fence.acq_rel.cta;", 8), 12, "clk",
                      8, offset=16),
            Mechanism("fence.acq_rel.gpu", gpu, target, chain("fence.acq_rel.gpu;", 4), 280, "clk",
                      4),
        ]  # fmt: skip
        if target == "sm_80":
            continue
        found += [
            # The loop around eight of them takes 52 clk, behind the last wait.
            Mechanism("mbarrier arrive to its waiter", gpu, target, _arrivals(8), 57, "clk", 8,
                      threads=1, before=BAR_START, declare=BAR, offset=52),
            Mechanism("barrier of a cluster of 2, relaxed", gpu, target,
                      "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;", 102,
                      "clk", grid=2, cluster=2, threads=128, offset=24),
            Mechanism("barrier of a cluster of 2, release", gpu, target,
                      "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", 384, "clk",
                      grid=2, cluster=2, threads=128, offset=20),
        ]  # fmt: skip
    return found


def _arrivals(count: int) -> str:
    """Each arrival is waited for before the next one; `count` is even, as phases are 0 and 1."""
    return "\n".join(
        f"""mbarrier.arrive.shared.b64 _, [%r20];
WAIT{n}: mbarrier.try_wait.parity.shared.b64 %p3, [%r20], {n % 2}; @!%p3 bra WAIT{n};"""
        for n in range(count)
    )

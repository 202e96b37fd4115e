"""Latencies and bandwidths of shared memory, L1, L2 and DRAM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tile_time.mechanisms.record import Mechanism
from tile_time.mechanisms.text import START, STORE, chain


def _ring(step: int) -> Callable[[np.ndarray], None]:
    """Indices in bytes, each `step` elements on."""

    def fill(array: np.ndarray) -> None:
        places = (np.arange(array.size) + step) % array.size * 4
        array.view(np.uint32)[:] = places.astype(np.uint32)

    return fill


_CHASE = "cvt.u64.u32 %rd3, %r4; add.u64 %rd3, %rd1, %rd3; ld.global.{how}.u32 %r4, [%rd3];"
_SHARED = """.shared .align 16 .b8 s[16384];"""
_SHARED_START = """mov.u32 %r5, s; shl.b32 %r6, %r2, 4; add.u32 %r5, %r5, %r6;
mov.u32 %r4, s; st.shared.u32 [%r4], %r4;"""


def _shared_row(i: int) -> str:
    """512 bytes of each warp; volatile, or it would be left out as read before."""
    names = ", ".join(f"%f{10 + 4 * i + j}" for j in range(4))
    return f"ld.volatile.shared.v4.f32 {{{names}}}, [%r5+{4096 * (i % 4)}];"


def memory() -> list[Mechanism]:
    """Latencies by chasing pointers, bandwidths by whole chips. Two clk-exact adds go with each
    step of a chase through global memory, about 10 clk, which are taken off."""
    found: list[Mechanism] = []
    rows = (
        ("a100", "sm_80", 29, 36, 208, 520),
        ("h100-sxm", "sm_90a", 29, 40, 262, 560),
    )
    for gpu, target, shared, l1, l2, dram in rows:
        chase: dict[str, Any] = {
            "before": "shl.b32 %r4, %r2, 2;",
            "after": "st.global.u32 [%rd1], %r4;",
        }
        found += [
            Mechanism("shared load latency", gpu, target, chain("ld.shared.u32 %r4, [%r4];", 16),
                      shared, "clk", 16, before="mov.u32 %r4, s; st.shared.u32 [%r4], %r4;",
                      after="st.global.u32 [%rd1], %r4;", declare=_SHARED),
            Mechanism("shared bandwidth", gpu, target,
                      "\n".join(_shared_row(i) for i in range(8))
                      + "\n".join(f"\nadd.f32 %f1, %f1, %f{10 + 4 * i};" for i in range(8)),
                      128, "B/clk/SM", 8 * 512 * 8, True, 256, START + _SHARED_START, STORE,
                      _SHARED),
            Mechanism("L1 hit latency", gpu, target, chain(_CHASE.format(how="ca"), 8), l1, "clk",
                      8, fill=_ring(0), offset=80, **chase),
            Mechanism("L2 hit latency", gpu, target, chain(_CHASE.format(how="cg"), 8), l2, "clk",
                      8, warm=True, fill=_ring(64), offset=80, **chase),
            Mechanism("DRAM latency", gpu, target, chain(_CHASE.format(how="cg"), 8), dram, "clk",
                      8, size=1 << 20, fill=_ring(1024), offset=80, **chase),
        ]  # fmt: skip
    return found

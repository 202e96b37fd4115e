"""Pipes of the cores: latencies of chains, rates of full SMs."""

from __future__ import annotations

from tile_time.mechanisms.record import Mechanism
from tile_time.mechanisms.text import (
    ISTARTS,
    START,
    STARTS,
    STORE,
    chain,
    sum_of,
    sum_of_integers,
    wide,
)


def core() -> list[Mechanism]:
    """Pipes of the cores: latencies of chains, rates of full SMs."""
    found: list[Mechanism] = []
    for gpu, target, fma in (("a100", "sm_80", 2.0), ("h100-sxm", "sm_90a", 4.0)):
        found += [
            Mechanism("FFMA latency", gpu, target, chain("fma.rn.f32 %f1, %f1, %f2, %f2;", 64),
                      4, "clk", 64, before=START, after=STORE),
            Mechanism("FFMA rate", gpu, target, wide("fma.rn.f32 %f{i}, %f{i}, %f2, %f2;", 8, 8),
                      fma, "warp-inst/clk/SM", 64 * 32, True, 1024, STARTS, sum_of(8)),
            Mechanism("LOP3 rate", gpu, target,
                      wide("lop3.b32 %r{i}, %r{i}, %r1, %r2, 0x96;\n"
                            "shf.l.wrap.b32 %r{i}, %r{i}, %r{i}, 7;", 8, 4),
                      2, "warp-inst/clk/SM", 64 * 32, True, 1024, ISTARTS, sum_of_integers(8)),
            Mechanism("ex2 rate", gpu, target, wide("ex2.approx.ftz.f32 %f{i}, %f{i};", 8, 4),
                      0.5, "warp-inst/clk/SM", 32 * 32, True, 1024, STARTS, sum_of(8)),
            Mechanism("ex2 latency", gpu, target, chain("ex2.approx.ftz.f32 %f1, %f1;", 32), 18,
                      "clk", 32, before=START, after=STORE),
            Mechanism("shuffle latency", gpu, target,
                      chain("shfl.sync.bfly.b32 %r4, %r4, 1, 31, -1;", 16), 24, "clk", 16,
                      before="mov.u32 %r4, %r2;", after="st.global.u32 [%rd1], %r4;"),
            Mechanism("bar.sync of 8 warps", gpu, target, chain("bar.sync 0;", 16), 38, "clk", 16,
                      threads=256),
        ]  # fmt: skip
    return found

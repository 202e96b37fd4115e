"""Numbers of the machine files that nobody has measured on that GPU, or that sources disagree on.

`expected` is what the file says; where a GPU says something else, `tilec gpu-report` changes it.
"""

from __future__ import annotations

from typing import Any

from tile_core.machines import builtin_machines
from tile_time.mechanisms.copies import BAR, BAR_START, WAIT, bulk
from tile_time.mechanisms.record import Mechanism
from tile_time.mechanisms.tensor import drain, mma_sets
from tile_time.mechanisms.text import START, STARTS, STORE, chain, sum_of, wide

_GPUS = (("a100", "sm_80"), ("h100-sxm", "sm_90a"), ("b200", "sm_100a"), ("rtx5090", "sm_120a"))
_ROOM = ".shared .align 128 .b8 s[16384];"
_ROWS = "mov.u32 %r5, s; shl.b32 %r6, %r2, 4; and.b32 %r6, %r6, 511; add.u32 %r5, %r5, %r6;"
_LDMATRIX = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r{a}, %r{b}, %r{c}, %r{d}}}, [%r5+{at}];"


def unsettled() -> list[Mechanism]:
    """Pipes, matrix loads and stores, products, copies."""
    return [*_pipes(), *_matrices(), *_products(), *_copies()]


def _pipes() -> list[Mechanism]:
    found: list[Mechanism] = []
    for gpu, target in _GPUS:
        half = {"a100": 4, "h100-sxm": 4, "b200": 2, "rtx5090": 4}[gpu]
        convert = {"b200": 1}.get(gpu, 2)
        fp64 = builtin_machines()[gpu].pipes.fp64.rate
        common: dict[str, Any] = {"rate": True, "threads": 1024}
        doubles = "\n".join(f"mov.f64 %d{i}, 0d3FF0000000000000;" for i in range(8))
        found += [
            Mechanism("HFMA2 rate", gpu, target,
                      wide("fma.rn.f16x2 %r{i}, %r{i}, %r{i}, %r{i};", 8, 8), half,
                      "warp-inst/clk/SM", 64 * 32,
                      before="\n".join(f"mov.u32 %r{10 + i}, %r2;" for i in range(8)),
                      after="\n".join(f"xor.b32 %r10, %r10, %r{10 + i};" for i in range(1, 8))
                      + "st.global.u32 [%rd1], %r10;", **common),
            Mechanism("cvt.rn.f16x2.f32 rate", gpu, target,
                      wide("cvt.rn.f16x2.f32 %r{i}, %f{i}, %f2; mov.b32 %f{i}, %r{i};", 8, 4),
                      convert, "warp-inst/clk/SM", 32 * 32, before=STARTS, after=sum_of(8),
                      **common),
            Mechanism("FP64 FMA rate", gpu, target,
                      "\n".join(f"fma.rn.f64 %d{i}, %d{i}, %d{i}, %d{i};" for i in range(8)), fp64,
                      "warp-inst/clk/SM", 8 * 32, before=doubles,
                      after="\n".join(f"add.f64 %d0, %d0, %d{i};" for i in range(1, 8))
                      + "st.global.f64 [%rd1], %d0;", turns=(2, 6), **common),
        ]  # fmt: skip
        if target in ("sm_100a", "sm_120a"):
            found += [
                Mechanism("ex2 rate", gpu, target, wide("ex2.approx.ftz.f32 %f{i}, %f{i};", 8, 4),
                          0.5, "warp-inst/clk/SM", 32 * 32, before=STARTS, after=sum_of(8),
                          **common),
                Mechanism("FFMA latency", gpu, target, chain("fma.rn.f32 %f1, %f1, %f2, %f2;", 64),
                          4, "clk", 64, before=START, after=STORE),
            ]  # fmt: skip
    return found


def _matrices() -> list[Mechanism]:
    found: list[Mechanism] = []
    for gpu, target in _GPUS:
        loads = "\n".join(
            _LDMATRIX.format(a=10 + 4 * i, b=11 + 4 * i, c=12 + 4 * i, d=13 + 4 * i, at=512 * i)
            for i in range(8)
        )
        used = "\n".join(f"xor.b32 %r7, %r7, %r{10 + 4 * i};" for i in range(8))
        again = "xor.b32 %r5, %r5, %r7;"
        chased = _LDMATRIX.format(a=10, b=11, c=12, d=13, at=0) + "\nxor.b32 %r5, %r5, %r10;"
        after = "st.global.u32 [%rd1], %r7; st.global.u32 [%rd1], %r5;"
        # Rows of zeros: the address stays what it was.
        zeroed = "\n".join(
            f"st.shared.v4.u32 [%r5+{512 * i}], {{%r3, %r3, %r3, %r3}};" for i in range(8)
        )
        zeroed = f"{_ROWS}\n{zeroed}\nmov.u32 %r7, 0; bar.warp.sync -1;"
        found += [
            Mechanism("ldmatrix.x4 of 512 B, rate", gpu, target, f"{loads}\n{used}\n{again}", 128,
                      "B/clk/SM", 8 * 512 * 8, True, 256, zeroed, after, _ROOM),
            Mechanism("ldmatrix.x4 to its address", gpu, target, chain(chased, 8), 33, "clk", 8,
                      before=zeroed, after=after, declare=_ROOM, offset=40),
        ]  # fmt: skip
        if target != "sm_80":
            stores = "\n".join(
                "stmatrix.sync.aligned.m8n8.x4.shared.b16 "
                f"[%r5+{512 * i}], {{%r2, %r3, %r2, %r3}};" for i in range(8)
            )  # fmt: skip
            found.append(
                # Sources disagree (16 and 115 B/clk): this is the model's.
                Mechanism("stmatrix.x4 of 512 B, rate", gpu, target, stores, 64, "B/clk/SM",
                          8 * 512 * 8, True, 256, zeroed, "bar.sync 0;", _ROOM)
            )  # fmt: skip
    return found


def _products() -> list[Mechanism]:
    sets, start, end = mma_sets()
    drained = [drain(64, 32 + 45)]
    return drained + [
        Mechanism("mma.sync m16n8k16 interval of a sub-core", gpu, target, "\n".join(sets * 2),
                  interval, "clk", 16 * 2, threads=256, before=start, after=end)
        for gpu, target, interval in (("b200", "sm_100a", 8), ("rtx5090", "sm_120a", 32))
    ] + [
        Mechanism("mma.sync m16n8k16 latency", gpu, target, "\n".join(sets[:1] * 16), latency,
                  "clk", 16, before=start, after=end)
        for gpu, target, latency in (("b200", "sm_100a", 20), ("rtx5090", "sm_120a", 33))
    ]  # fmt: skip


def _copies() -> list[Mechanism]:
    """Bulk copies above 16 KB on H100, and many small ones in flight."""
    found = [bulk("h100-sxm", "sm_90a", kb, 366 + 16 * kb) for kb in (4, 16, 32, 64)]
    many = "mbarrier.arrive.expect_tx.shared.b64 _, [%r20], 65536;\n" + "\n".join(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        f"[%r22+{4096 * i}], [%rd1+{4096 * i}], 4096, [%r20];" for i in range(16)
    )  # fmt: skip
    found += [
        Mechanism("16 bulk copies of 4 KB, an SM's bandwidth", gpu, target,
                  many + "\n" + WAIT.format(label="WAIT"), rate, "B/clk/SM", 65536, True, 1,
                  BAR_START, declare=BAR, warm=True)
        for gpu, target, rate in (("h100-sxm", "sm_90a", 46), ("b200", "sm_100a", 70))
    ]  # fmt: skip
    return found

"""Asynchronous copies: bulk copies, cp.async."""

from __future__ import annotations

from tile_time.mechanisms.record import Mechanism

WAIT = """{label}: mbarrier.try_wait.parity.shared.b64 %p3, [%r20], %r21; @!%p3 bra {label};
xor.b32 %r21, %r21, 1;"""
BAR = ".shared .align 8 .b64 bar; .shared .align 1024 .b8 s[131072];"
BAR_START = """mov.u32 %r20, bar; mov.u32 %r21, 0; mov.u32 %r22, s;
mbarrier.init.shared.b64 [%r20], 1; fence.mbarrier_init.release.cluster;"""


_ROOM = ".shared .align 16 .b8 s[16384];"


def bulk(gpu: str, target: str, kilobytes: int, expected: float) -> Mechanism:
    """One bulk copy at a time, from L2 to the waiter."""
    size = kilobytes * 1024
    body = f"""mbarrier.arrive.expect_tx.shared.b64 _, [%r20], {size};
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r22], [%rd1], {size}, [%r20];
""" + WAIT.format(label="WAIT")
    return Mechanism(
        f"bulk copy of {kilobytes} KB to the waiter", gpu, target, body, expected, "clk", threads=1,
        before=BAR_START, declare=BAR, warm=True, offset=40,
    )  # fmt: skip


def copies() -> list[Mechanism]:
    """Bulk copies of several sizes; cp.async likewise."""
    rows = [("h100-sxm", "sm_90a", 1, 366 + 16), ("b200", "sm_100a", 16, 530),
            ("b200", "sm_100a", 32, 655), ("b200", "sm_100a", 64, 925)]  # fmt: skip
    found = [bulk(*row) for row in rows]
    body = """cp.async.cg.shared.global [%r22], [%rd3], 16;
cp.async.commit_group; cp.async.wait_group 0;"""
    start = """mov.u32 %r22, s; shl.b32 %r4, %r2, 4; add.u32 %r22, %r22, %r4; cvt.u64.u32 %rd3, %r4;
add.u64 %rd3, %rd1, %rd3;"""
    for gpu, target in (("a100", "sm_80"), ("h100-sxm", "sm_90a")):
        found.append(
            Mechanism("cp.async of 512 B to the waiter", gpu, target, body, 341, "clk",
                      before=start, declare=_ROOM, warm=True, offset=20)
        )  # fmt: skip
    return found

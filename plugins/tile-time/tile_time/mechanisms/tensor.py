"""Tensor cores: mma.sync, wgmma, tcgen05."""

from __future__ import annotations

from typing import Any

from tile_time.mechanisms.copies import BAR, WAIT
from tile_time.mechanisms.record import Mechanism


def mma_sets() -> tuple[list[str], str, str]:
    """Eight independent products of a warp, what stands before them, and what uses their sums."""
    one = ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f{a}, %f{b}, %f{c}, %f{d}}}, "
           "{{%r4, %r5, %r6, %r7}}, {{%r8, %r9}}, {{%f{a}, %f{b}, %f{c}, %f{d}}};")  # fmt: skip
    sets = [one.format(a=n, b=n + 1, c=n + 2, d=n + 3) for n in range(10, 42, 4)]
    start = "\n".join(f"mov.f32 %f{n}, 0f00000000;" for n in range(10, 42)) + "\n"
    start += "\n".join(f"mov.u32 %r{n}, %r2;" for n in range(4, 10))
    end = "mov.f32 %f1, 0f00000000;\n"
    end += "\n".join(f"add.f32 %f1, %f1, %f{n};" for n in range(10, 42))
    return sets, start, end + "\nst.global.f32 [%rd1], %f1;"


def mma() -> list[Mechanism]:
    """`mma.sync` m16n8k16, f32 accumulators."""
    found: list[Mechanism] = []
    sets, start, end = mma_sets()
    for gpu, target, clk, latency in (("a100", "sm_80", 8, 24.6), ("h100-sxm", "sm_90a", 6.4, 24)):
        found += [
            Mechanism("mma.sync m16n8k16 interval of a sub-core", gpu, target,
                      "\n".join(sets * 2), clk, "clk", 16 * 2, threads=256, before=start,
                      after=end),
            Mechanism("mma.sync m16n8k16 latency", gpu, target, "\n".join(sets[:1] * 16), latency,
                      "clk", 16, before=start, after=end),
        ]  # fmt: skip
    return found


_DESCRIPTOR = 64 << 32 | 1 << 16 | 1 << 62


def wgmma() -> list[Mechanism]:
    """`wgmma` with both operands in shared memory, or A in registers."""
    found: list[Mechanism] = []
    for n, ss, rs in ((8, 18, None), (32, 24, None), (64, 32, 32), (128, 64, 64), (256, 128, 128)):
        for registers, expected in ((False, ss), (True, rs)):
            if expected is not None:
                kind = "RS" if registers else "SS"
                name = f"wgmma m64n{n}k16 {kind} interval"
                found.append(_wgmma(name, n, registers, expected, 8, 1))
    return found


def drain(n: int, expected: float) -> Mechanism:
    """One product and the wait for its result."""
    return _wgmma(f"wgmma m64n{n}k16, commit, wait", n, False, expected, 1, 0)


def _wgmma(
    name: str, n: int, registers: bool, expected: float, count: int, pending: int
) -> Mechanism:
    """`count` products a turn, of which `pending` groups may be in flight."""
    acc = ", ".join(f"%f{i}" for i in range(n // 2))
    a = "{%r8, %r9, %r10, %r11}" if registers else "%rd4"
    rest = "1, 1, 0" if registers else "1, 1, 0, 0"
    one = (f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 {{{acc}}}, {a}, %rd5, "
           f"%p2, {rest};")  # fmt: skip
    body = "wgmma.fence.sync.aligned;\n" + "\n".join([one] * count)
    body += f"\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned {pending};"
    start = "\n".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(n // 2))
    start += "\n" + "\n".join(f"mov.u32 %r{i}, %r2;" for i in range(8, 12))
    start += f"""\nmov.u32 %r4, s; shr.u32 %r4, %r4, 4; cvt.u64.u32 %rd4, %r4;
or.b64 %rd4, %rd4, {_DESCRIPTOR}; mov.b64 %rd5, %rd4; setp.eq.u32 %p2, %r2, %r2;"""
    end = "wgmma.wait_group.sync.aligned 0;\nmov.f32 %f199, 0f00000000;\n"
    end += "\n".join(f"add.f32 %f199, %f199, %f{i};" for i in range(n // 2))
    end += "\nst.global.f32 [%rd1], %f199;"
    return Mechanism(
        name, "h100-sxm", "sm_90a", body, expected, "clk", count, threads=128, before=start,
        after=end, declare=".shared .align 1024 .b8 s[65536];", turns=(4, 12),
    )  # fmt: skip


def tcgen05() -> list[Mechanism]:
    """Products of one CTA on tensor memory: intervals, and from issue to a waiter of the commit."""
    found: list[Mechanism] = []
    for n, interval, visible in ((64, 48, None), (128, 64, 200), (256, 128, 264)):
        word = 1 << 4 | n // 8 << 17 | 128 // 16 << 24
        start = f"""mov.u32 %r20, bar; mov.u32 %r21, 0;
mov.u32 %r23, column; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r23], 256;
ld.shared.u32 %r24, [%r23]; elect.sync _|%p4, 0xffffffff;
@%p4 mbarrier.init.shared.b64 [%r20], 1; @%p4 fence.mbarrier_init.release.cluster;
mov.u32 %r4, s; shr.u32 %r4, %r4, 4; cvt.u64.u32 %rd4, %r4; or.b64 %rd4, %rd4,
{1 << 46 | _DESCRIPTOR};
mov.u32 %r25, {word}; setp.ne.u32 %p2, %r2, %r2;"""
        one = "@%p4 tcgen05.mma.cta_group::1.kind::f16 [%r24], %rd4, %rd4, %r25, %p2;\n"
        commit = ("@%p4 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
                  "[%r20];\n")  # fmt: skip
        wait = WAIT.format(label="WAIT")
        end = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r24, 256;"
        more: dict[str, Any] = {"threads": 32, "before": start, "after": end,
                "declare": ".shared .align 4 .b32 column; " + BAR}  # fmt: skip
        found.append(
            Mechanism(f"tcgen05.mma m128n{n}k16 interval", "b200", "sm_100a",
                      one * 32 + commit + wait, interval, "clk", 32, offset=180, **more)
        )  # fmt: skip
        if visible is not None:
            found.append(
                Mechanism(f"tcgen05.mma m128n{n}k16, commit, wait", "b200", "sm_100a",
                          one + commit + wait, visible, "clk", offset=20, **more)
            )  # fmt: skip
    return found

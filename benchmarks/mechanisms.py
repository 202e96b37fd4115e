"""Kernels of one mechanism each, in PTX, for the timing model's own numbers and for a real GPU.

A kernel runs its body `n` times; what is measured is the slope between two `n`, so that what
happens once does not count. `per` is what one turn of the loop does, in the unit's denominator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_HEAD = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 p, .param .u32 n) .reqntid {threads}
{{
.reg .b64 %rd<16>; .reg .b32 %r<64>; .reg .f32 %f<200>; .reg .pred %p<8>; .reg .b16 %h<4>;
.reg .f64 %d<8>;
{declare}
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.u32 %r3, 0;
{before}
LOOP:
{body}
add.u32 %r3, %r3, 1;
setp.lt.u32 %p1, %r3, %r1;
@%p1 bra LOOP;
{after}
ret;
}}
"""
VERSIONS = {"sm_80": "7.0", "sm_90a": "8.0", "sm_100a": "8.6", "sm_120a": "8.7"}


@dataclass(frozen=True)
class Mechanism:
    """One kernel; the result is `per / slope` where `rate` is set and `slope / per` elsewhere."""

    name: str
    gpu: str
    target: str
    body: str
    expected: float
    unit: str
    per: float = 1.0
    rate: bool = False
    threads: int = 32
    before: str = ""
    after: str = ""
    declare: str = ""
    turns: tuple[int, int] = (8, 24)
    grid: int = 1
    warm: bool = False
    size: int = 1 << 16  # f32 elements of p
    fill: Callable[[np.ndarray], None] | None = field(default=None, compare=False)
    offset: float = 0.0  # clk of a turn that are none of the mechanism's: loop, address

    @property
    def ptx(self) -> str:
        return _HEAD.format(
            version=VERSIONS[self.target], target=self.target, threads=self.threads,
            body=self.body, before=self.before, after=self.after, declare=self.declare,
        )  # fmt: skip

    def array(self) -> np.ndarray:
        made = np.zeros(self.size, np.float32)
        if self.fill is not None:
            self.fill(made)
        return made

    def value(self, slope: float) -> float:
        """The measured quantity from the clk of one turn."""
        slope -= self.offset
        return self.per / slope if self.rate else slope / self.per


_STORE = "add.f32 %f1, %f1, %f2; st.global.f32 [%rd1], %f1;"


def _chain(op: str, count: int) -> str:
    return "\n".join(op for _ in range(count))


def _wide(op: str, chains: int, rounds: int) -> str:
    """Independent chains: `{i}` is the number of the register."""
    return "\n".join(op.format(i=10 + i) for _ in range(rounds) for i in range(chains))


def _sum(chains: int) -> str:
    adds = "\n".join(f"add.f32 %f1, %f1, %f{10 + i};" for i in range(chains))
    return f"{adds}\nst.global.f32 [%rd1], %f1;"


def _isum(chains: int) -> str:
    adds = "\n".join(f"add.u32 %r4, %r4, %r{10 + i};" for i in range(chains))
    return f"{adds}\nst.global.u32 [%rd1], %r4;"


_START = "mov.f32 %f1, 0f3F800000; cvt.rn.f32.u32 %f2, %r1;\n"
_STARTS = _START + "\n".join(f"add.f32 %f{10 + i}, %f2, 0f{0x3F800000 + i:08X};" for i in range(8))
_ISTARTS = "mov.u32 %r4, 0;\n" + "\n".join(f"add.u32 %r{10 + i}, %r1, {i};" for i in range(8))


def core() -> list[Mechanism]:
    """Pipes of the cores: latencies of chains, rates of full SMs."""
    found: list[Mechanism] = []
    for gpu, target, fma in (("a100", "sm_80", 2.0), ("h100-sxm", "sm_90a", 4.0)):
        found += [
            Mechanism("FFMA latency", gpu, target, _chain("fma.rn.f32 %f1, %f1, %f2, %f2;", 64),
                      4, "clk", 64, before=_START, after=_STORE),
            Mechanism("FFMA rate", gpu, target, _wide("fma.rn.f32 %f{i}, %f{i}, %f2, %f2;", 8, 8),
                      fma, "warp-inst/clk/SM", 64 * 32, True, 1024, _STARTS, _sum(8)),
            Mechanism("LOP3 rate", gpu, target,
                      _wide("lop3.b32 %r{i}, %r{i}, %r1, %r2, 0x96;\n"
                            "shf.l.wrap.b32 %r{i}, %r{i}, %r{i}, 7;", 8, 4),
                      2, "warp-inst/clk/SM", 64 * 32, True, 1024, _ISTARTS, _isum(8)),
            Mechanism("ex2 rate", gpu, target, _wide("ex2.approx.ftz.f32 %f{i}, %f{i};", 8, 4),
                      0.5, "warp-inst/clk/SM", 32 * 32, True, 1024, _STARTS, _sum(8)),
            Mechanism("ex2 latency", gpu, target, _chain("ex2.approx.ftz.f32 %f1, %f1;", 32), 18,
                      "clk", 32, before=_START, after=_STORE),
            Mechanism("shuffle latency", gpu, target,
                      _chain("shfl.sync.bfly.b32 %r4, %r4, 1, 31, -1;", 16), 24, "clk", 16,
                      before="mov.u32 %r4, %r2;", after="st.global.u32 [%rd1], %r4;"),
            Mechanism("bar.sync of 8 warps", gpu, target, _chain("bar.sync 0;", 16), 38, "clk", 16,
                      threads=256),
        ]  # fmt: skip
    return found


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
            Mechanism("shared load latency", gpu, target, _chain("ld.shared.u32 %r4, [%r4];", 16),
                      shared, "clk", 16, before="mov.u32 %r4, s; st.shared.u32 [%r4], %r4;",
                      after="st.global.u32 [%rd1], %r4;", declare=_SHARED),
            Mechanism("shared bandwidth", gpu, target,
                      "\n".join(_shared_row(i) for i in range(8))
                      + "\n".join(f"\nadd.f32 %f1, %f1, %f{10 + 4 * i};" for i in range(8)),
                      128, "B/clk/SM", 8 * 512 * 8, True, 256, _START + _SHARED_START, _STORE,
                      _SHARED),
            Mechanism("L1 hit latency", gpu, target, _chain(_CHASE.format(how="ca"), 8), l1, "clk",
                      8, fill=_ring(0), offset=80, **chase),
            Mechanism("L2 hit latency", gpu, target, _chain(_CHASE.format(how="cg"), 8), l2, "clk",
                      8, warm=True, fill=_ring(64), offset=80, **chase),
            Mechanism("DRAM latency", gpu, target, _chain(_CHASE.format(how="cg"), 8), dram, "clk",
                      8, size=1 << 20, fill=_ring(1024), offset=80, **chase),
        ]  # fmt: skip
    return found


def mma() -> list[Mechanism]:
    """`mma.sync` m16n8k16, f32 accumulators."""
    found: list[Mechanism] = []
    one = ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f{a}, %f{b}, %f{c}, %f{d}}}, "
           "{{%r4, %r5, %r6, %r7}}, {{%r8, %r9}}, {{%f{a}, %f{b}, %f{c}, %f{d}}};")  # fmt: skip
    sets = [one.format(a=n, b=n + 1, c=n + 2, d=n + 3) for n in range(10, 42, 4)]
    start = "\n".join(f"mov.f32 %f{n}, 0f00000000;" for n in range(10, 42)) + "\n"
    start += "\n".join(f"mov.u32 %r{n}, %r2;" for n in range(4, 10))
    end = "mov.f32 %f1, 0f00000000;\n"
    end += "\n".join(f"add.f32 %f1, %f1, %f{n};" for n in range(10, 42))
    end += "\nst.global.f32 [%rd1], %f1;"
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
            if expected is None:
                continue
            acc = ", ".join(f"%f{i}" for i in range(n // 2))
            a = "{%r8, %r9, %r10, %r11}" if registers else "%rd4"
            rest = "1, 1, 0" if registers else "1, 1, 0, 0"
            one = (f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 {{{acc}}}, {a}, %rd5, "
                   f"%p2, {rest};")  # fmt: skip
            body = "wgmma.fence.sync.aligned;\n" + "\n".join([one] * 8)
            body += "\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;"
            start = "\n".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(n // 2))
            start += "\n" + "\n".join(f"mov.u32 %r{i}, %r2;" for i in range(8, 12))
            start += f"""\nmov.u32 %r4, s; shr.u32 %r4, %r4, 4; cvt.u64.u32 %rd4, %r4;
or.b64 %rd4, %rd4, {_DESCRIPTOR}; mov.b64 %rd5, %rd4; setp.eq.u32 %p2, %r2, %r2;"""
            end = "wgmma.wait_group.sync.aligned 0;\nmov.f32 %f199, 0f00000000;\n"
            end += "\n".join(f"add.f32 %f199, %f199, %f{i};" for i in range(n // 2))
            end += "\nst.global.f32 [%rd1], %f199;"
            kind = "RS" if registers else "SS"
            found.append(
                Mechanism(f"wgmma m64n{n}k16 {kind} interval", "h100-sxm", "sm_90a", body,
                          expected, "clk", 8, threads=128, before=start, after=end,
                          declare=".shared .align 1024 .b8 s[65536];", turns=(4, 12))
            )  # fmt: skip
    return found


_WAIT = """{label}: mbarrier.try_wait.parity.shared.b64 %p3, [%r20], %r21; @!%p3 bra {label};
xor.b32 %r21, %r21, 1;"""
_BAR = ".shared .align 8 .b64 bar; .shared .align 1024 .b8 s[131072];"
_BAR_START = """mov.u32 %r20, bar; mov.u32 %r21, 0; mov.u32 %r22, s;
mbarrier.init.shared.b64 [%r20], 1; fence.mbarrier_init.release.cluster;"""


def copies() -> list[Mechanism]:
    """One bulk copy at a time, from L2 to the waiter; cp.async likewise."""
    found: list[Mechanism] = []
    rows = [("h100-sxm", "sm_90a", 1, 366 + 16), ("b200", "sm_100a", 16, 530),
            ("b200", "sm_100a", 32, 655), ("b200", "sm_100a", 64, 925)]  # fmt: skip
    for gpu, target, kilobytes, expected in rows:
        size = kilobytes * 1024
        body = f"""mbarrier.arrive.expect_tx.shared.b64 _, [%r20], {size};
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r22], [%rd1], {size}, [%r20];
""" + _WAIT.format(label="WAIT")
        found.append(
            Mechanism(f"bulk copy of {kilobytes} KB to the waiter", gpu, target, body,
                      expected, "clk", threads=1, before=_BAR_START, declare=_BAR, warm=True,
                      offset=40)
        )  # fmt: skip
    body = """cp.async.cg.shared.global [%r22], [%rd3], 16;
cp.async.commit_group; cp.async.wait_group 0;"""
    start = """mov.u32 %r22, s; shl.b32 %r4, %r2, 4; add.u32 %r22, %r22, %r4; cvt.u64.u32 %rd3, %r4;
add.u64 %rd3, %rd1, %rd3;"""
    for gpu, target in (("a100", "sm_80"), ("h100-sxm", "sm_90a")):
        found.append(
            Mechanism("cp.async of 512 B to the waiter", gpu, target, body, 341, "clk",
                      before=start, declare=_SHARED, warm=True, offset=20)
        )  # fmt: skip
    return found


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
        wait = _WAIT.format(label="WAIT")
        end = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r24, 256;"
        more: dict[str, Any] = {"threads": 32, "before": start, "after": end,
                "declare": ".shared .align 4 .b32 column; " + _BAR}  # fmt: skip
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


def every() -> list[Mechanism]:
    return [*core(), *memory(), *mma(), *wgmma(), *copies(), *tcgen05()]

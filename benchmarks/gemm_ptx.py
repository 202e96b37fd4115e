"""Matrix products for sm_90a as the published ladder climbs: C = A B^T, f16 in, f32 accumulators.

Written for the timing model: TMA, wgmma, mbarriers and clusters as those kernels use them, results
stored from registers. `Gemm.ptx` is the kernel, `Gemm.arguments` what a launch takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_DESCRIPTOR = 64 << 32 | 1 << 16 | 1 << 62  # rows of 128 swizzled bytes, 8 rows 1024 bytes apart
_K = 64


@dataclass(frozen=True)
class Gemm:
    """One kernel: tile, stages of the ring, consumer warpgroups (0: no specialisation)."""

    m: int
    n: int
    stages: int = 1
    consumers: int = 0
    persistent: bool = False
    cluster: int = 1
    depth: int = 0  # wgmma groups in flight across steps

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + 1) if self.consumers else 128

    @property
    def workers(self) -> int:
        return max(self.consumers, 1)

    @property
    def blocks(self) -> int:
        """m64 blocks of a warpgroup."""
        return self.m // 64 // self.workers

    @property
    def a_bytes(self) -> int:
        return self.m * _K * 2

    @property
    def stage_bytes(self) -> int:
        return self.a_bytes + self.n * _K * 2

    @property
    def ptx(self) -> str:
        body = self._specialised() if self.consumers else self._together()
        floats = self.blocks * self.n // 2
        cluster = f".reqnctapercluster {self.cluster}, 1, 1" if self.cluster > 1 else ""
        return f""".version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128],
.param .u64 .ptr .global .align 16 c, .param .u32 steps, .param .u32 tiles_m, .param .u32 tiles_n,
.param .u32 columns) .reqntid {self.threads} {cluster} {{
.reg .b32 %r<80>; .reg .b16 %h<4>; .reg .b64 %rd<32>; .reg .pred %p<16>; .reg .f32 %f<{floats}>;
.shared .align 1024 .b8 tiles[{self.stages * self.stage_bytes}];
.shared .align 8 .b64 full[{self.stages}]; .shared .align 8 .b64 empty[{self.stages}];
ld.param.u32 %r40, [steps]; ld.param.u32 %r41, [tiles_m]; ld.param.u32 %r42, [tiles_n];
ld.param.u32 %r43, [columns]; mov.b64 %rd20, a; cvta.param.u64 %rd20, %rd20;
mov.b64 %rd21, b; cvta.param.u64 %rd21, %rd21; ld.param.u64 %rd22, [c];
mov.u32 %r1, %tid.x; mov.u32 %r2, tiles; mov.u32 %r3, full; mov.u32 %r4, empty;
mov.u32 %r44, %ctaid.x; mul.lo.u32 %r45, %r41, %r42; mov.u32 %r46, %nctaid.x;
mov.u32 %r47, %cluster_ctarank; shr.u32 %r48, %r1, 7;
setp.eq.u32 %p1, %r1, 0;
{self._init()}
{"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if self.cluster > 1 else ""}
bar.sync 0;
mov.u32 %r6, 0; mov.u32 %r7, 0;
{body}
DONE:
{"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if self.cluster > 1 else ""}
ret;
}}
"""

    def _init(self) -> str:
        count = self.workers * self.cluster
        rows = [
            f"@%p1 mbarrier.init.shared.b64 [%r3+{8 * s}], 1;\n"
            f"@%p1 mbarrier.init.shared.b64 [%r4+{8 * s}], {count};"
            for s in range(self.stages)
        ]
        return "\n".join([*rows, "@%p1 fence.mbarrier_init.release.cluster;"])

    # --- parts ------------------------------------------------------------------------------

    def _place(self) -> str:
        """Row %r50 and column %r51 of tile %r44: groups of 8 rows of tiles, column by column."""
        return (
            """shl.b32 %r52, %r42, 3; div.u32 %r53, %r44, %r52; rem.u32 %r54, %r44, %r52;
shl.b32 %r55, %r53, 3; sub.u32 %r62, %r41, %r55; min.u32 %r62, %r62, 8; rem.u32 %r56, %r54, %r62;
add.u32 %r50, %r55, %r56; div.u32 %r51, %r54, %r62;
"""
            + f"mul.lo.u32 %r50, %r50, {self.m}; mul.lo.u32 %r51, %r51, {self.n};"
        )

    def _loads(self) -> str:
        """Both operands of step %r5 into stage %r6."""
        copy = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        part = self.n // self.cluster
        text = f"""mul.lo.u32 %r13, %r6, {self.stage_bytes}; add.u32 %r13, %r13, %r2;
shl.b32 %r10, %r6, 3; add.u32 %r11, %r3, %r10;
mbarrier.arrive.expect_tx.shared.b64 _, [%r11], {self.stage_bytes};
add.u32 %r14, %r13, {self.a_bytes}; shl.b32 %r15, %r5, 6;
{copy} [%r13], [%rd20, {{%r15, %r50}}], [%r11];
"""
        if self.cluster == 1:
            return text + f"{copy} [%r14], [%rd21, {{%r15, %r51}}], [%r11];"
        return (
            text
            + f"""mul.lo.u32 %r16, %r47, {part}; add.u32 %r17, %r51, %r16;
mul.lo.u32 %r16, %r16, {2 * _K}; add.u32 %r14, %r14, %r16; mov.u32 %r18, {(1 << self.cluster) - 1};
cvt.u16.u32 %h1, %r18;
{copy}.multicast::cluster [%r14], [%rd21, {{%r15, %r17}}], [%r11], %h1;"""
        )

    def _next_stage(self) -> str:
        return f"""add.u32 %r5, %r5, 1; add.u32 %r6, %r6, 1; setp.eq.u32 %p5, %r6, {self.stages};
@%p5 xor.b32 %r7, %r7, 1; @%p5 mov.u32 %r6, 0;"""

    def _products(self) -> str:
        """The step's products of one warpgroup, a group of their own."""
        text = f"""mul.lo.u32 %r13, %r6, {self.stage_bytes}; add.u32 %r13, %r13, %r2;
add.u32 %r14, %r13, {self.a_bytes};
mul.lo.u32 %r15, %r57, {self.blocks * 8192}; add.u32 %r13, %r13, %r15;
shr.u32 %r13, %r13, 4; shr.u32 %r14, %r14, 4; cvt.u64.u32 %rd10, %r13; cvt.u64.u32 %rd11, %r14;
or.b64 %rd10, %rd10, {_DESCRIPTOR}; or.b64 %rd11, %rd11, {_DESCRIPTOR};
wgmma.fence.sync.aligned;
"""
        half = self.n // 2
        for step in range(4):
            for block in range(self.blocks):
                regs = ", ".join(f"%f{i}" for i in range(block * half, (block + 1) * half))
                text += f"""add.u64 %rd12, %rd10, {2 * step + 512 * block};
add.u64 %rd13, %rd11, {2 * step};
wgmma.mma_async.sync.aligned.m64n{self.n}k16.f32.f16.f16 {{{regs}}}, %rd12, %rd13, %p4, 1, 1, 0, 0;
"""
        return text + "wgmma.commit_group.sync.aligned;"

    def _zero(self) -> str:
        return "\n".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(self.blocks * self.n // 2))

    def _store(self) -> str:
        """Accumulators to C, f16 pairs."""
        text = f"""and.b32 %r21, %r1, 127; shr.u32 %r20, %r21, 5; shl.b32 %r20, %r20, 4;
and.b32 %r22, %r21, 31; shr.u32 %r23, %r22, 2; add.u32 %r20, %r20, %r23;
mul.lo.u32 %r24, %r57, {64 * self.blocks}; add.u32 %r20, %r20, %r24; add.u32 %r20, %r20, %r50;
and.b32 %r23, %r22, 3; shl.b32 %r23, %r23, 1; add.u32 %r23, %r23, %r51;
mad.lo.u32 %r24, %r20, %r43, %r23; mul.wide.u32 %rd1, %r24, 2; add.u64 %rd2, %rd22, %rd1;
mul.wide.u32 %rd3, %r43, 16; mul.wide.u32 %rd5, %r43, 128;
"""
        half = self.n // 2
        for block in range(self.blocks):
            if block:
                text += "add.u64 %rd2, %rd2, %rd5;\n"
            text += "add.u64 %rd4, %rd2, %rd3;\n"
            for j in range(self.n // 8):
                f = block * half + 4 * j
                text += f"""cvt.rn.f16x2.f32 %r25, %f{f + 1}, %f{f};
st.global.b32 [%rd2+{16 * j}], %r25;
cvt.rn.f16x2.f32 %r25, %f{f + 3}, %f{f + 2}; st.global.b32 [%rd4+{16 * j}], %r25;
"""
        return text

    # --- whole kernels ----------------------------------------------------------------------

    def _together(self) -> str:
        """One warpgroup loads, waits and multiplies, step by step."""
        return f"""mov.u32 %r57, 0; setp.eq.u32 %p4, %r1, %r1; {self._place()}
{self._zero()}
mov.u32 %r5, 0;
STEP:
setp.ne.u32 %p2, %r1, 0; @%p2 bra LOADED;
{self._loads()}
LOADED:
WAIT_FULL: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], %r7; @!%p3 bra WAIT_FULL;
{self._products()}
wgmma.wait_group.sync.aligned 0;
bar.sync 0;
{self._next_stage()}
setp.lt.u32 %p6, %r5, %r40; @%p6 bra STEP;
{self._store()}"""

    def _specialised(self) -> str:
        again = "add.u32 %r44, %r44, %r46; setp.lt.u32 %p7, %r44, %r45; @%p7 bra {};"
        more = again if self.persistent else ""
        return f"""setp.eq.u32 %p2, %r48, 0; @%p2 bra PRODUCER;
setmaxnreg.inc.sync.aligned.u32 {240 if self.consumers == 2 else 232};
sub.u32 %r57, %r48, 1; setp.eq.u32 %p4, %r1, %r1; and.b32 %r58, %r1, 127;
C_TILE:
{self._place()}
{self._zero()}
mov.u32 %r5, 0; mov.u32 %r60, 0;
C_STEP:
shl.b32 %r10, %r6, 3; add.u32 %r11, %r3, %r10; add.u32 %r12, %r4, %r10;
WAIT_FULL: mbarrier.try_wait.parity.shared.b64 %p3, [%r11], %r7; @!%p3 bra WAIT_FULL;
{self._products()}
wgmma.wait_group.sync.aligned {self.depth};
{self._release()}
{self._next_stage()}
setp.lt.u32 %p6, %r5, %r40; @%p6 bra C_STEP;
wgmma.wait_group.sync.aligned 0;
{self._release_last()}
{self._store()}
{more.format("C_TILE")}
bra DONE;
PRODUCER:
setmaxnreg.dec.sync.aligned.u32 {24 if self.consumers == 2 else 40};
setp.ne.u32 %p2, %r1, 0; @%p2 bra DONE;
P_TILE:
{self._place()}
mov.u32 %r5, 0;
P_STEP:
shl.b32 %r10, %r6, 3; add.u32 %r12, %r4, %r10; xor.b32 %r8, %r7, 1;
WAIT_EMPTY: mbarrier.try_wait.parity.shared.b64 %p3, [%r12], %r8; @!%p3 bra WAIT_EMPTY;
{self._loads()}
{self._next_stage()}
setp.lt.u32 %p6, %r5, %r40; @%p6 bra P_STEP;
{more.format("P_TILE")}"""

    def _release(self) -> str:
        """One thread of the warpgroup gives back the slot of this step, or of the one before."""
        if self.depth == 0:
            return self._arrive("%r12", "setp.eq.u32 %p8, %r58, 0;")
        before = "setp.eq.u32 %p8, %r58, 0; setp.ne.and.u32 %p8, %r5, 0, %p8;"
        return self._arrive("%r60", before) + "\nmov.u32 %r60, %r12;"

    def _release_last(self) -> str:
        return self._arrive("%r60", "setp.eq.u32 %p8, %r58, 0;") if self.depth else ""

    def _arrive(self, where: str, guard: str) -> str:
        if self.cluster == 1:
            return f"{guard} @%p8 mbarrier.arrive.shared.b64 _, [{where}];"
        return guard + "".join(
            f"\n@%p8 mapa.shared::cluster.u32 %r61, {where}, {rank};\n"
            f"@%p8 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r61];"
            for rank in range(self.cluster)
        )

    def arguments(self, size: int) -> tuple[tuple[int, int, int], list[Any]]:
        """Grid and arguments of a product of `size` cubed, on 132 SMs."""
        from tile_sim import TensorMap

        a, b = (np.zeros((size, size), np.float16) for _ in range(2))
        c = np.zeros((size, size), np.float16)
        maps = [
            TensorMap(a, box=(_K, self.m), swizzle="128B"),
            TensorMap(b, box=(_K, self.n // self.cluster), swizzle="128B"),
        ]
        tiles = size // self.m, size // self.n
        count = tiles[0] * tiles[1]
        grid = min(count, 132) if self.persistent else count
        return (grid, 1, 1), [*maps, c, size // _K, *tiles, size]

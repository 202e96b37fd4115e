"""Matrix products for sm_100a by pairs of CTAs (`cta_group::2`): C = A B^T, f16 in, f32 inside.

Each CTA has 128 rows of A and half of B's columns in its shared memory; the first of a pair
multiplies for both, and each has its own 128 rows of accumulators. With `blocks` that many CTAs
go from tile to tile, with accumulators twice and warps of their own for the way out. Written for
the timing model, as `gemm_sm100.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gemm_sm100 import mapped
from sm100_text import ROWS, Step, described, following, stored, wait

_COMMIT = ("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
           ".multicast::cluster.b64 [{}], %both;\n")  # fmt: skip
_CLUSTER = "barrier.cluster.arrive.{}.aligned; barrier.cluster.wait.acquire.aligned;"


@dataclass(frozen=True)
class Pair100:
    """Columns of a pair's tile, K of a step, stages, CTAs of a persistent grid (0: one tile each),
    columns that are read from tensor memory at once, how the cluster's barriers are ordered."""

    n: int = 256
    k: int = 64
    stages: int = 7
    blocks: int = 0
    wide: int = 8
    arrive: str = "release"

    @property
    def step(self) -> Step:
        return Step(self.n // 2, self.k, self.stages, planes=True, ctas=2)

    @property
    def shared(self) -> int:
        return self.stages * self.step.bytes + 1024

    @property
    def _columns(self) -> int:
        return 2 * self.n if self.blocks else self.n

    @property
    def ptx(self) -> str:
        threads = 192 if self.blocks else 128
        return f""".version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tiles[];
.visible .entry gemm(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128],
.param .u64 .ptr .global .align 16 c, .param .u32 steps, .param .u32 tiles_n, .param .u32 columns,
.param .u32 count)
.reqntid {threads} .reqnctapercluster 2, 1, 1 {{
.reg .b32 %r<80>; .reg .b64 %rd<32>; .reg .pred %p<12>; .reg .b32 %t<{self.wide}>;
.reg .b32 %h<{self.wide // 2}>; .reg .f32 %f<2>; .reg .b16 %both;
.shared .align 8 .b64 full[{self.stages}]; .shared .align 8 .b64 empty[{self.stages}];
.shared .align 8 .b64 done[2]; .shared .align 8 .b64 free[2]; .shared .align 4 .b32 column;
ld.param.u32 %r1, [steps]; ld.param.u32 %r2, [tiles_n]; ld.param.u32 %r3, [columns];
ld.param.u32 %r60, [count]; mov.b64 %rd1, a; cvta.param.u64 %rd1, %rd1;
mov.b64 %rd2, b; cvta.param.u64 %rd2, %rd2; ld.param.u64 %rd3, [c];
mov.u32 %r4, %tid.x; mov.u32 %r5, tiles; mov.u32 %r6, full; mov.u32 %r7, empty; mov.u32 %r8, done;
mov.u32 %r61, free; mov.u32 %r9, column; shr.u32 %r10, %r4, 5; and.b32 %r19, %r4, 31;
mov.u32 %r11, %ctaid.x; mov.u32 %r62, %nctaid.x; mov.u32 %r63, %cluster_ctarank;
mov.u16 %both, 3; mapa.shared::cluster.u32 %r64, %r6, 0; mapa.shared::cluster.u32 %r65, %r61, 0;
{self._begin()}
setp.eq.u32 %p7, %r10, 0; @%p7 bra LOADER; setp.eq.u32 %p7, %r10, 1; @%p7 bra MULTIPLIER;
{self._roles()}
@%p2 bra DONE;
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r14, {self._columns};
DONE: ret;
}}
"""

    # --- parts ------------------------------------------------------------------------------

    def _begin(self) -> str:
        """The mbarriers of a CTA, and tensor memory of both."""
        counts = [(f"%r6+{8 * s}", 2) for s in range(self.stages)]
        counts += [(f"%r7+{8 * s}", 1) for s in range(self.stages)]
        counts += [("%r8", 1), ("%r8+8", 1), ("%r61", 8), ("%r61+8", 8)]
        inits = "\n".join(f"@%p1 mbarrier.init.shared.b64 [{at}], {n};" for at, n in counts)
        return f"""setp.eq.u32 %p1, %r4, 0; setp.ne.u32 %p2, %r10, 1;
{inits}
@%p1 fence.mbarrier_init.release.cluster;
@%p2 bra ALLOCATED;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r9], {self._columns};
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
ALLOCATED: tcgen05.fence::before_thread_sync; {_CLUSTER.format(self.arrive)} bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.u32 %r14, [%r9]; mov.u32 %r15, {described(self.n, 2 * ROWS)};
mov.u32 %r16, 0; mov.u32 %r17, 0; mov.u32 %r20, 0; mov.u32 %r66, 0; mov.u32 %r67, 0;
"""

    def _place(self) -> str:
        """Row %r12 and column %r13 of tile %r11: two CTAs, one above the other, have one tile."""
        return f"""shl.b32 %r70, %r2, 1; div.u32 %r71, %r11, %r70; rem.u32 %r72, %r11, %r70;
and.b32 %r73, %r11, 1; shl.b32 %r71, %r71, 1; or.b32 %r71, %r71, %r73; shr.u32 %r72, %r72, 1;
mul.lo.u32 %r12, %r71, {ROWS}; mul.lo.u32 %r13, %r72, {self.n};
"""

    def _again(self, label: str) -> str:
        """A persistent CTA goes on with the tile a whole grid further."""
        if not self.blocks:
            return ""
        return f"add.u32 %r11, %r11, %r62; setp.lt.u32 %p4, %r11, %r60; @%p4 bra {label};\n"

    def _load(self) -> str:
        """A thread of each CTA: its rows of A, its half of B, for the first one's mbarriers."""
        return f"""LOADER: setp.ne.u32 %p7, %r19, 0; @%p7 bra TOGETHER; mov.u32 %r17, 1;
LOAD_TILE: {self._place()}
mul.lo.u32 %r74, %r63, {self.n // 2}; add.u32 %r13, %r13, %r74; mov.u32 %r16, 0;
LOAD: shl.b32 %r33, %r20, 3; add.u32 %r35, %r33, %r7; add.u32 %r34, %r33, %r64;
mul.lo.u32 %r21, %r20, {self.step.bytes}; add.u32 %r21, %r21, %r5;
{wait("WAIT_EMPTY", "%r35", "%r17")}
{self.step.copies("%r21", "%r16", ("%r12", "%r13"), "%r34")}
mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r34], {self.step.bytes};
{self.step.following("%r20", "%r17")}
add.u32 %r16, %r16, 1; setp.lt.u32 %p4, %r16, %r1; @%p4 bra LOAD;
{self._again("LOAD_TILE")}bra TOGETHER;
"""

    def _multiply(self) -> str:
        """A thread of the first CTA, for both: %r66 and %r67 are which accumulators, and their
        phase."""
        free = ""
        if self.blocks:
            free = f"""shl.b32 %r75, %r66, 3; add.u32 %r76, %r75, %r61; xor.b32 %r77, %r67, 1;
{wait("WAIT_FREE", "%r76", "%r77")}
tcgen05.fence::after_thread_sync;"""
        return f"""MULTIPLIER: or.b32 %r70, %r19, %r63; setp.ne.u32 %p7, %r70, 0; @%p7 bra TOGETHER;
TILE: {free}
mul.lo.u32 %r78, %r66, {self.n}; add.u32 %r78, %r78, %r14; mov.u32 %r16, 0;
STEP: shl.b32 %r33, %r20, 3; add.u32 %r34, %r33, %r6; add.u32 %r35, %r33, %r7;
mul.lo.u32 %r31, %r20, {self.step.bytes}; add.u32 %r31, %r31, %r5;
{wait("WAIT", "%r34", "%r17")}
tcgen05.fence::after_thread_sync;
{self.step.products("%r31", "%r16", "%r78")}
{_COMMIT.format("%r35")}
{self.step.following("%r20", "%r17")}
add.u32 %r16, %r16, 1; setp.lt.u32 %p4, %r16, %r1; @%p4 bra STEP;
shl.b32 %r75, %r66, 3; add.u32 %r76, %r75, %r8;
{_COMMIT.format("%r76")}
{following("%r66", "%r67", 2)}
{self._again("TILE")}bra TOGETHER;
"""

    def _out(self) -> str:
        """Four warps: accumulators %r66, phase %r67, to C."""
        return f"""shl.b32 %r75, %r66, 3; add.u32 %r76, %r75, %r8;
{wait("WAIT_DONE", "%r76", "%r67")}
tcgen05.fence::after_thread_sync; {self._place()}
and.b32 %r70, %r10, 3; shl.b32 %r40, %r70, 5; add.u32 %r40, %r40, %r19; add.u32 %r40, %r40, %r12;
mad.lo.u32 %r41, %r40, %r3, %r13; mul.wide.u32 %rd12, %r41, 2; add.u64 %rd12, %rd12, %rd3;
shl.b32 %r42, %r70, 21; add.u32 %r42, %r42, %r14; mad.lo.u32 %r42, %r66, {self.n}, %r42;
{stored(self.n, self.wide)}
"""

    def _roles(self) -> str:
        """Of four warps that meet for the way out, or of two and four that have their own."""
        end = f"""tcgen05.fence::before_thread_sync; {_CLUSTER.format(self.arrive)}
tcgen05.fence::after_thread_sync;"""
        if not self.blocks:
            return f"""bra TOGETHER;
{self._load()}{self._multiply()}
TOGETHER: bar.sync 0; mov.u32 %r66, 0; mov.u32 %r67, 0;
{self._out()}
{end}"""
        return f"""OUT: {self._out()}
tcgen05.fence::before_thread_sync; add.u32 %r76, %r75, %r65; setp.eq.u32 %p7, %r19, 0;
@%p7 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r76];
{following("%r66", "%r67", 2)}
{self._again("OUT")}bra TOGETHER;
{self._load()}{self._multiply()}
TOGETHER: bar.warp.sync 0xffffffff; {end}"""

    def arguments(self, size: int) -> tuple[tuple[int, int, int], list[Any]]:
        """Grid and arguments of a product of `size` cubed."""
        a, b, c = (np.zeros((size, size), np.float16) for _ in range(3))
        maps = [mapped(a, self.step, ROWS), mapped(b, self.step, self.n // 2)]
        columns = size // self.n
        tiles = size // ROWS * columns
        grid = min(self.blocks or tiles, tiles)
        return (grid, 1, 1), [*maps, c, size // self.k, columns, size, tiles]

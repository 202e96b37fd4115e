"""Matrix products for sm_100a as the published ladder climbs: C = A B^T, f16 in, f32 accumulators.

Written for the timing model: TMA, one CTA's `tcgen05.mma` of 128 rows, accumulators in tensor
memory, four warps. `Gemm100.ptx` is the kernel, `Gemm100.arguments` what a launch takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sm100_text import ROWS, Step, described, stored, wait

_THREADS = 128


@dataclass(frozen=True)
class Gemm100:
    """Columns of a tile, K of a step, stages, bytes of a box's rows, whether warps have roles, and
    whether one copy brings all boxes of a step (a map of three dimensions)."""

    n: int = 256
    k: int = 256
    stages: int = 1
    box: int = 128
    roles: bool = False
    planes: bool = False

    @property
    def step(self) -> Step:
        return Step(self.n, self.k, self.stages, self.box, self.planes)

    @property
    def shared(self) -> int:
        return self.stages * self.step.bytes + 1024

    @property
    def ptx(self) -> str:
        return f""".version 8.7
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tiles[];
.visible .entry gemm(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128],
.param .u64 .ptr .global .align 16 c, .param .u32 steps, .param .u32 tiles_n, .param .u32 columns)
.reqntid {_THREADS} {{
.reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .pred %p<12>; .reg .b32 %t<8>; .reg .b32 %h<4>;
.reg .f32 %f<2>;
.shared .align 8 .b64 full[{self.stages}]; .shared .align 8 .b64 empty[{self.stages}];
.shared .align 8 .b64 all; .shared .align 4 .b32 column;
ld.param.u32 %r1, [steps]; ld.param.u32 %r2, [tiles_n]; ld.param.u32 %r3, [columns];
mov.b64 %rd1, a; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, b; cvta.param.u64 %rd2, %rd2;
ld.param.u64 %rd3, [c]; mov.u32 %r4, %tid.x; mov.u32 %r5, tiles; mov.u32 %r6, full;
mov.u32 %r7, empty; mov.u32 %r8, all; mov.u32 %r9, column; shr.u32 %r10, %r4, 5;
mov.u32 %r11, %ctaid.x; div.u32 %r12, %r11, %r2; rem.u32 %r13, %r11, %r2;
shl.b32 %r12, %r12, 7; mul.lo.u32 %r13, %r13, {self.n};
setp.eq.u32 %p1, %r4, 0; setp.ne.u32 %p2, %r10, 0;
{"".join(self._init(s) for s in range(self.stages))}
@%p1 mbarrier.init.shared.b64 [%r8], 1; @%p1 fence.mbarrier_init.release.cluster;
@%p2 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], {self.n};
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
ld.shared.u32 %r14, [%r9]; mov.u32 %r15, {described(self.n, ROWS)};
{self._with_roles() if self.roles else self._together()}
{self._store()}
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
@%p2 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r14, {self.n};
DONE: ret;
}}
"""

    def _init(self, stage: int) -> str:
        at = 8 * stage
        return (f"@%p1 mbarrier.init.shared.b64 [%r6+{at}], 1; "
                f"@%p1 mbarrier.init.shared.b64 [%r7+{at}], 1;\n")  # fmt: skip

    # --- parts ------------------------------------------------------------------------------

    def _loads(self, step: str) -> str:
        """Both operands of a step into the stage %r20, by one thread."""
        return f"""mul.lo.u32 %r21, %r20, {self.step.bytes}; add.u32 %r21, %r21, %r5;
shl.b32 %r22, %r20, 3; add.u32 %r22, %r22, %r6;
mbarrier.arrive.expect_tx.shared.b64 _, [%r22], {self.step.bytes};
{self.step.copies("%r21", step, ("%r12", "%r13"), "%r22")}"""

    def _products(self, step: str, end: str) -> str:
        """The products of the stage %r30, and the commit to an mbarrier, by one thread."""
        return f"""mul.lo.u32 %r31, %r30, {self.step.bytes}; add.u32 %r31, %r31, %r5;
{self.step.products("%r31", step, "%r14")}
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{end}];
"""

    def _together(self) -> str:
        """All threads go from step to step; one of them loads ahead and multiplies."""
        ahead = self.stages - 1
        early = "".join(
            f"mov.u32 %r20, {s}; mov.u32 %r26, {s};\n{self._loads('%r26')}" for s in range(ahead)
        )
        return f"""mov.u32 %r16, 0; mov.u32 %r17, 0; mov.u32 %r18, 0; mov.u32 %r30, 0;
@!%p1 bra STEP;
{early}
STEP:
add.u32 %r26, %r16, {ahead}; setp.lt.u32 %p3, %r26, %r1; and.pred %p3, %p3, %p1;
@!%p3 bra LOADED;
rem.u32 %r20, %r26, {self.stages};
{self._loads("%r26")}
LOADED: shl.b32 %r33, %r30, 3; add.u32 %r33, %r33, %r6;
{wait("WAIT", "%r33", "%r17")}
tcgen05.fence::after_thread_sync;
@!%p1 bra MULTIPLIED;
{self._products("%r16", "%r8")}
MULTIPLIED:
{wait("WAIT_ALL", "%r8", "%r18")}
xor.b32 %r18, %r18, 1;
{self.step.following("%r30", "%r17")}
add.u32 %r16, %r16, 1; setp.lt.u32 %p4, %r16, %r1; @%p4 bra STEP;
tcgen05.fence::after_thread_sync;"""

    def _with_roles(self) -> str:
        """A thread of one warp loads, a thread of another multiplies."""
        return f"""mov.u32 %r16, 0; mov.u32 %r17, 0; mov.u32 %r20, 0; mov.u32 %r30, 0;
and.b32 %r19, %r4, 31; setp.ne.u32 %p7, %r19, 0; @%p7 bra TOGETHER;
setp.eq.u32 %p7, %r10, 0; @%p7 bra LOADER; setp.eq.u32 %p7, %r10, 1; @!%p7 bra TOGETHER;
STEP: shl.b32 %r33, %r30, 3; add.u32 %r34, %r33, %r6; add.u32 %r35, %r33, %r7;
{wait("WAIT", "%r34", "%r17")}
tcgen05.fence::after_thread_sync;
{self._products("%r16", "%r35")}
{self.step.following("%r30", "%r17")}
add.u32 %r16, %r16, 1; setp.lt.u32 %p4, %r16, %r1; @%p4 bra STEP;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r8];
bra TOGETHER;
LOADER: mov.u32 %r17, 1;
LOAD: shl.b32 %r33, %r20, 3; add.u32 %r35, %r33, %r7;
{wait("WAIT_EMPTY", "%r35", "%r17")}
{self._loads("%r16")}
{self.step.following("%r20", "%r17")}
add.u32 %r16, %r16, 1; setp.lt.u32 %p4, %r16, %r1; @%p4 bra LOAD;
TOGETHER: bar.sync 0; mov.u32 %r18, 0;
{wait("WAIT_ALL", "%r8", "%r18")}
tcgen05.fence::after_thread_sync;"""

    def _store(self) -> str:
        """A row of accumulators a thread to C, 8 columns at a time."""
        return f"""add.u32 %r40, %r12, %r4; mad.lo.u32 %r41, %r40, %r3, %r13;
mul.wide.u32 %rd12, %r41, 2; add.u64 %rd12, %rd12, %rd3; shl.b32 %r42, %r10, 21;
add.u32 %r42, %r42, %r14;
{stored(self.n)}"""

    def arguments(self, size: int) -> tuple[tuple[int, int, int], list[Any]]:
        """Grid and arguments of a product of `size` cubed."""
        a, b, c = (np.zeros((size, size), np.float16) for _ in range(3))
        maps = [mapped(a, self.step, ROWS), mapped(b, self.step, self.n)]
        tiles = size // self.n
        return (size // ROWS * tiles, 1, 1), [*maps, c, size // self.k, tiles, size]


def mapped(array: np.ndarray, step: Step, rows: int) -> Any:
    """The map of a square array whose boxes have so many rows."""
    from tile_sim import TensorMap

    size, wide = array.shape[0], step.box // 2
    swizzle = "128B" if step.box == 128 else "none"
    if not step.planes:
        return TensorMap(array, box=(wide, rows), swizzle=swizzle)
    return TensorMap(
        array, box=(wide, rows, step.k // wide), dims=(wide, size, size // wide),
        strides=(2 * size, step.box), swizzle=swizzle,
    )  # fmt: skip

"""Matrix products for sm_100a as the published ladder climbs: C = A B^T, f16 in, f32 accumulators.

Written for the timing model: TMA, one CTA's `tcgen05.mma` of 128 rows, accumulators in tensor
memory, four warps. `Gemm100.ptx` is the kernel, `Gemm100.arguments` what a launch takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_ROWS, _THREADS = 128, 128
_COPY = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"


@dataclass(frozen=True)
class Gemm100:
    """Columns of a tile, K of a step, stages, bytes of a box's rows, whether warps have roles."""

    n: int = 256
    k: int = 256
    stages: int = 1
    box: int = 128
    roles: bool = False

    @property
    def a_bytes(self) -> int:
        return _ROWS * self.k * 2

    @property
    def stage_bytes(self) -> int:
        return self.a_bytes + self.n * self.k * 2

    @property
    def shared(self) -> int:
        return self.stages * self.stage_bytes + 1024

    @property
    def ptx(self) -> str:
        return f""".version 8.7
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tiles[];
.visible .entry gemm(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128],
.param .u64 .ptr .global .align 16 c, .param .u32 steps, .param .u32 tiles_n, .param .u32 columns)
.reqntid {_THREADS} {{
.reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .pred %p<12>; .reg .b32 %t<8>; .reg .f32 %f<2>;
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
ld.shared.u32 %r14, [%r9]; mov.u32 %r15, {1 << 4 | self.n // 8 << 17 | _ROWS // 16 << 24};
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
        text = f"""mul.lo.u32 %r21, %r20, {self.stage_bytes}; add.u32 %r21, %r21, %r5;
shl.b32 %r22, %r20, 3; add.u32 %r22, %r22, %r6; mul.lo.u32 %r23, {step}, {self.k};
mbarrier.arrive.expect_tx.shared.b64 _, [%r22], {self.stage_bytes};
"""
        wide = self.box // 2
        for first, rows, source, row in (
            (0, _ROWS, "%rd1", "%r12"), (self.a_bytes, self.n, "%rd2", "%r13")
        ):  # fmt: skip
            for part in range(self.k // wide):
                text += (f"add.u32 %r24, %r21, {first + part * rows * self.box}; "
                         f"add.u32 %r25, %r23, {part * wide};\n"
                         f"{_COPY} [%r24], [{source}, {{%r25, {row}}}], [%r22];\n")  # fmt: skip
        return text

    def _products(self, step: str, end: str) -> str:
        """The products of the stage %r30, and the commit to an mbarrier, by one thread."""
        # Rows of 128 swizzled bytes, 8 rows 1024 bytes apart; or cores of 8 rows of 16 bytes.
        word = (1 << 46 | 64 << 32 | 1 << 16 | 2 << 61) if self.box == 128 else 1 << 46 | 8 << 32
        text = f"""mul.lo.u32 %r31, %r30, {self.stage_bytes}; add.u32 %r31, %r31, %r5;
setp.ne.u32 %p8, {step}, 0; setp.eq.u32 %p9, %r31, %r31;
"""
        for part in range(self.k // 16):
            at, more = divmod(part * 32, self.box) if self.box == 128 else (2 * part, 0)
            for name, first, rows in (("%rd10", 0, _ROWS), ("%rd11", self.a_bytes, self.n)):
                lead = rows << 16 if self.box < 128 else 0
                text += (f"add.u32 %r32, %r31, {first + at * rows * self.box + more}; "
                         "shr.u32 %r32, %r32, 4; cvt.u64.u32 "
                         f"{name}, %r32; or.b64 {name}, {name}, {word | lead};\n")  # fmt: skip
            text += ("tcgen05.mma.cta_group::1.kind::f16 [%r14], %rd10, %rd11, %r15, "
                     f"{'%p9' if part else '%p8'};\n")  # fmt: skip
        return text + (
            f"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{end}];\n"
        )

    def _wait(self, label: str, where: str, phase: str) -> str:
        return (f"{label}: mbarrier.try_wait.parity.shared.b64 %p5, [{where}], {phase}; "
                f"@!%p5 bra {label};\n")  # fmt: skip

    def _next(self, stage: str, phase: str) -> str:
        return (f"add.u32 {stage}, {stage}, 1; setp.eq.u32 %p6, {stage}, {self.stages}; "
                f"@%p6 mov.u32 {stage}, 0; @%p6 xor.b32 {phase}, {phase}, 1;\n")  # fmt: skip

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
{self._wait("WAIT", "%r33", "%r17")}
tcgen05.fence::after_thread_sync;
@!%p1 bra MULTIPLIED;
{self._products("%r16", "%r8")}
MULTIPLIED:
{self._wait("WAIT_ALL", "%r8", "%r18")}
xor.b32 %r18, %r18, 1;
{self._next("%r30", "%r17")}
add.u32 %r16, %r16, 1; setp.lt.u32 %p4, %r16, %r1; @%p4 bra STEP;
tcgen05.fence::after_thread_sync;"""

    def _with_roles(self) -> str:
        """A thread of one warp loads, a thread of another multiplies."""
        return f"""mov.u32 %r16, 0; mov.u32 %r17, 0; mov.u32 %r20, 0; mov.u32 %r30, 0;
and.b32 %r19, %r4, 31; setp.ne.u32 %p7, %r19, 0; @%p7 bra TOGETHER;
setp.eq.u32 %p7, %r10, 0; @%p7 bra LOADER; setp.eq.u32 %p7, %r10, 1; @!%p7 bra TOGETHER;
STEP: shl.b32 %r33, %r30, 3; add.u32 %r34, %r33, %r6; add.u32 %r35, %r33, %r7;
{self._wait("WAIT", "%r34", "%r17")}
tcgen05.fence::after_thread_sync;
{self._products("%r16", "%r35")}
{self._next("%r30", "%r17")}
add.u32 %r16, %r16, 1; setp.lt.u32 %p4, %r16, %r1; @%p4 bra STEP;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r8];
bra TOGETHER;
LOADER: mov.u32 %r17, 1;
LOAD: shl.b32 %r33, %r20, 3; add.u32 %r35, %r33, %r7;
{self._wait("WAIT_EMPTY", "%r35", "%r17")}
{self._loads("%r16")}
{self._next("%r20", "%r17")}
add.u32 %r16, %r16, 1; setp.lt.u32 %p4, %r16, %r1; @%p4 bra LOAD;
TOGETHER: bar.sync 0; mov.u32 %r18, 0;
{self._wait("WAIT_ALL", "%r8", "%r18")}
tcgen05.fence::after_thread_sync;"""

    def _store(self) -> str:
        """A row of accumulators a thread to C, 8 columns at a time."""
        text = """add.u32 %r40, %r12, %r4; mad.lo.u32 %r41, %r40, %r3, %r13;
mul.wide.u32 %rd12, %r41, 2; add.u64 %rd12, %rd12, %rd3; shl.b32 %r42, %r10, 21;
add.u32 %r42, %r42, %r14;
"""
        regs = ", ".join(f"%t{i}" for i in range(8))
        for column in range(0, self.n, 8):
            text += f"""add.u32 %r43, %r42, {column};
tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{regs}}}, [%r43]; tcgen05.wait::ld.sync.aligned;
"""
            for pair in range(4):
                text += (f"mov.b32 %f0, %t{2 * pair}; mov.b32 %f1, %t{2 * pair + 1}; "
                         f"cvt.rn.f16x2.f32 %r{44 + pair}, %f1, %f0;\n")  # fmt: skip
            text += f"st.global.v4.b32 [%rd12+{2 * column}], {{%r44, %r45, %r46, %r47}};\n"
        return text

    def arguments(self, size: int) -> tuple[tuple[int, int, int], list[Any]]:
        """Grid and arguments of a product of `size` cubed."""
        from tile_sim import TensorMap

        a, b, c = (np.zeros((size, size), np.float16) for _ in range(3))
        swizzle = "128B" if self.box == 128 else "none"
        wide = self.box // 2
        maps = [
            TensorMap(a, box=(wide, _ROWS), swizzle=swizzle),
            TensorMap(b, box=(wide, self.n), swizzle=swizzle),
        ]
        tiles = size // self.n
        return (size // _ROWS * tiles, 1, 1), [*maps, c, size // self.k, tiles, size]

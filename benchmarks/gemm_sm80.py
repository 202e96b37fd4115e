"""Matrix products for sm_80 as the published ladder climbs: C = A B^T, f16 in, f32 accumulators.

Written for the timing model: tiles of 128 x 128 x 64, four warps of 64 x 64, `ldmatrix` and
`mma.sync`; what differs is how tiles come to shared memory and how they lie there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_TILE, _K, _THREADS = 128, 64, 128
_LAYOUTS = {"plain": 128, "padded": 144, "swizzled": 128}  # bytes of a row of K


@dataclass(frozen=True)
class Gemm80:
    """`copies` "registers" or "async", `layout` of shared memory, `stages` of tiles."""

    copies: str = "async"
    layout: str = "swizzled"
    stages: int = 1

    @property
    def stride(self) -> int:
        return _LAYOUTS[self.layout]

    @property
    def operand(self) -> int:
        return _TILE * self.stride

    @property
    def shared(self) -> int:
        return 2 * self.operand * self.stages

    @property
    def ptx(self) -> str:
        body = self._one_stage() if self.stages == 1 else self._ahead()
        return f""".version 8.0
.target sm_80
.address_size 64
.extern .shared .align 128 .b8 tiles[];
.visible .entry gemm(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr .global .align 16 b,
.param .u64 .ptr .global .align 16 c, .param .u32 n, .param .u32 k)
.reqntid {_THREADS} {{
.reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .pred %p<4>; .reg .f32 %f<128>;
.reg .b32 %a<16>; .reg .b32 %b<16>; .reg .b32 %g<64>; .reg .b32 %la<4>; .reg .b32 %lb<4>;
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];
cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2; cvta.to.global.u64 %rd3, %rd3;
ld.param.u32 %r1, [n]; ld.param.u32 %r2, [k]; mov.u32 %r3, %tid.x; mov.u32 %r4, tiles;
mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ctaid.y; shl.b32 %r5, %r5, 7; shl.b32 %r6, %r6, 7;
{self._places()}
{chr(10).join(f"mov.f32 %f{i}, 0f00000000;" for i in range(128))}
{body}
{self._store()}
ret;
}}
"""

    def _places(self) -> str:
        """Where a thread loads from (%rd4, %rd5) and stores to (%r10), and what it multiplies."""
        chunk = "xor.b32 %r9, %r8, %r11;" if self.layout == "swizzled" else "mov.b32 %r9, %r8;"
        text = f"""shr.u32 %r7, %r3, 3; and.b32 %r8, %r3, 7; and.b32 %r11, %r7, 7;
{chunk}
mul.lo.u32 %r10, %r7, {self.stride}; shl.b32 %r9, %r9, 4; add.u32 %r10, %r10, %r9;
add.u32 %r10, %r10, %r4; shl.b32 %r8, %r8, 4; shl.b32 %r12, %r2, 1;
add.u32 %r13, %r6, %r7; mul.wide.u32 %rd4, %r13, %r12; add.u64 %rd4, %rd4, %rd1;
cvt.u64.u32 %rd6, %r8; add.u64 %rd4, %rd4, %rd6;
add.u32 %r13, %r5, %r7; mul.wide.u32 %rd5, %r13, %r12; add.u64 %rd5, %rd5, %rd2;
add.u64 %rd5, %rd5, %rd6; shl.b32 %r14, %r12, 4; cvt.u64.u32 %rd7, %r14;
and.b32 %r15, %r3, 31; shr.u32 %r16, %r3, 5; shr.u32 %r17, %r16, 1; and.b32 %r18, %r16, 1;
shl.b32 %r17, %r17, 6; shl.b32 %r18, %r18, 6; and.b32 %r19, %r15, 15; add.u32 %r20, %r17, %r19;
mul.lo.u32 %r20, %r20, {self.stride}; add.u32 %r20, %r20, %r4; shr.u32 %r21, %r15, 4;
and.b32 %r22, %r15, 7; add.u32 %r23, %r18, %r22; mul.lo.u32 %r23, %r23, {self.stride};
add.u32 %r23, %r23, %r4; add.u32 %r23, %r23, {self.operand};
shr.u32 %r24, %r15, 3; and.b32 %r24, %r24, 1;
"""
        twist = self.layout == "swizzled"
        for step in range(4):
            for name, row, half in (("la", "%r20", "%r21"), ("lb", "%r23", "%r24")):
                text += f"add.u32 %r25, {half}, {2 * step}; "
                text += "xor.b32 %r25, %r25, %r22; " if twist else ""
                text += f"shl.b32 %r25, %r25, 4; add.u32 %{name}{step}, {row}, %r25;\n"
        return text

    # --- parts ------------------------------------------------------------------------------

    def _loads(self, registers: bool) -> str:
        """Both tiles of the step that %rd4 and %rd5 are at, to the stage at %r10."""
        text = ""
        for operand, base in enumerate(("%rd4", "%rd5")):
            text += f"mov.u64 %rd8, {base};\n"
            for i in range(8):
                to = operand * self.operand + i * 16 * self.stride
                first = 4 * (8 * operand + i)
                if registers:
                    regs = ", ".join(f"%g{n}" for n in range(first, first + 4))
                    text += f"ld.global.v4.b32 {{{regs}}}, [%rd8];\n"
                else:
                    text += f"cp.async.cg.shared.global [%r10+{to}], [%rd8], 16;\n"
                text += "add.u64 %rd8, %rd8, %rd7;\n"
        if registers:
            for place in range(16):
                to = place // 8 * self.operand + place % 8 * 16 * self.stride
                regs = ", ".join(f"%g{n}" for n in range(4 * place, 4 * place + 4))
                text += f"st.shared.v4.b32 [%r10+{to}], {{{regs}}};\n"
        else:
            text += "cp.async.commit_group;\n"
        return text + f"add.u64 %rd4, %rd4, {2 * _K}; add.u64 %rd5, %rd5, {2 * _K};\n"

    def _products(self) -> str:
        text = ""
        for step in range(4):
            for i in range(4):
                regs = ", ".join(f"%a{4 * i + n}" for n in range(4))
                text += (f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{regs}}}, "
                         f"[%la{step}+{i * 16 * self.stride}];\n")  # fmt: skip
            for j in range(8):
                text += (f"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{%b{2 * j}, %b{2 * j + 1}}}, "
                         f"[%lb{step}+{j * 8 * self.stride}];\n")  # fmt: skip
            for i in range(4):
                for j in range(8):
                    c = ", ".join(f"%f{32 * i + 4 * j + n}" for n in range(4))
                    a = ", ".join(f"%a{4 * i + n}" for n in range(4))
                    b = f"%b{2 * j}, %b{2 * j + 1}"
                    text += ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                             f"{{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};\n")  # fmt: skip
        return text

    def _one_stage(self) -> str:
        """Load, wait, multiply, step by step."""
        registers = self.copies == "registers"
        wait = "" if registers else "cp.async.wait_all;"
        return f"""mov.u32 %r30, 0;
STEP:
{self._loads(registers)}
{wait} bar.sync 0;
{self._products()}
bar.sync 0;
add.u32 %r30, %r30, {_K}; setp.lt.u32 %p1, %r30, %r2; @%p1 bra STEP;"""

    def _ahead(self) -> str:
        """The next step's tiles come while this step's are multiplied."""
        size = 2 * self.operand
        moves = "".join(
            f"xor.b32 %r32, %r31, 1; mad.lo.s32 %{name}{i}, %r33, {size}, %{name}{i};\n"
            for name in ("la", "lb") for i in range(4)
        )  # fmt: skip
        return f"""mov.u32 %r30, 0; mov.u32 %r33, 1;
{self._loads(False)}
STEP:
bar.sync 0;
mad.lo.s32 %r10, %r33, {size}, %r10;
add.u32 %r34, %r30, {_K}; setp.ge.u32 %p2, %r34, %r2; @%p2 bra LAST;
{self._loads(False)}
cp.async.wait_group 1; bra READY;
LAST: cp.async.wait_group 0;
READY: bar.sync 0;
{self._products()}
{moves.replace("xor.b32 %r32, %r31, 1; ", "")}
neg.s32 %r33, %r33;
add.u32 %r30, %r30, {_K}; setp.lt.u32 %p1, %r30, %r2; @%p1 bra STEP;"""

    def _store(self) -> str:
        """Accumulators to C, f16 pairs."""
        text = """shr.u32 %r40, %r15, 2; add.u32 %r40, %r40, %r17; add.u32 %r40, %r40, %r6;
and.b32 %r41, %r15, 3; shl.b32 %r41, %r41, 1; add.u32 %r41, %r41, %r18; add.u32 %r41, %r41, %r5;
mad.lo.u32 %r42, %r40, %r1, %r41; mul.wide.u32 %rd10, %r42, 2; add.u64 %rd10, %rd10, %rd3;
mul.wide.u32 %rd11, %r1, 16;
"""
        for i in range(4):
            for half in range(2):
                for j in range(8):
                    f = 32 * i + 4 * j + 2 * half
                    text += f"cvt.rn.f16x2.f32 %r43, %f{f + 1}, %f{f}; "
                    text += f"st.global.b32 [%rd10+{16 * j}], %r43;\n"
                text += "add.u64 %rd10, %rd10, %rd11;\n"
        return text

    def arguments(self, size: int) -> tuple[tuple[int, int, int], list[Any]]:
        """Grid and arguments of a product of `size` cubed."""
        a, b, c = (np.zeros((size, size), np.float16) for _ in range(3))
        return (size // _TILE, size // _TILE, 1), [a, b, c, np.uint32(size), np.uint32(size)]

"""Streams of doubles, as gpu-benches' gpu-stream has them: one element a thread, two blocks an SM.

Written for the timing model. Blocks take so much shared memory that two are on an SM, which is how
the benchmark sets how many bytes are in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_core.machines import Machine

#: Elements of an array: 16 Mi where the benchmark has 128 Mi; both are many times L2.
_COUNT = 1 << 26
_BODIES = {
    "init": "mov.f64 %d1, 0d3FCD70A3D70A3D71; st.global.f64 [%rd1], %d1;",
    "read": """ld.global.f64 %d1, [%rd2]; setp.eq.f64 %p1, %d1, 0d405EC00000000000;
@%p1 st.global.f64 [%rd1], %d1;""",
    "scale": """ld.global.f64 %d1, [%rd2]; mul.f64 %d1, %d1, 0d3FF3333333333333;
st.global.f64 [%rd1], %d1;""",
    "triad": """ld.global.f64 %d1, [%rd2]; ld.global.f64 %d2, [%rd3];
fma.rn.f64 %d1, %d1, 0d3FF3333333333333, %d2; st.global.f64 [%rd1], %d1;""",
}
#: Arrays that a kernel reads or writes.
_ARRAYS = {"init": 1, "read": 1, "scale": 2, "triad": 3}


@dataclass(frozen=True)
class Stream:
    """A kernel, and the threads of its blocks."""

    kind: str
    threads: int

    @property
    def bytes(self) -> float:
        return 8.0 * _COUNT * _ARRAYS[self.kind]

    @property
    def ptx(self) -> str:
        return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry stream(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr .global .align 16 b,
.param .u64 .ptr .global .align 16 c)
.reqntid {self.threads} {{
.reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .pred %p<2>; .reg .f64 %d<4>;
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];
cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2; cvta.to.global.u64 %rd3, %rd3;
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
mul.wide.u32 %rd4, %r1, 8; add.u64 %rd1, %rd1, %rd4; add.u64 %rd2, %rd2, %rd4;
add.u64 %rd3, %rd3, %rd4;
{_BODIES[self.kind]}
ret;
}}
"""

    def shared(self, machine: Machine) -> int:
        """Bytes of shared memory that leave room for two blocks and no third one."""
        chip = machine.chip
        return int(min(chip.shared / 2 - chip.shared_reserved, chip.shared_cta)) // 128 * 128

    def arguments(self) -> tuple[tuple[int, int, int], list[Any]]:
        a, b, c = (np.zeros(_COUNT) for _ in range(3))
        return (_COUNT // self.threads, 1, 1), [a, b, c]

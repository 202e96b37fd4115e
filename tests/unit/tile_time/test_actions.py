"""What a warp issues comes in the order in which it runs, round after round of a loop."""

from __future__ import annotations

import numpy as np
from tile_time.model import load_kernel, time_kernel

from tile_core.machines import builtin_machines

_ROUNDS = 4
#: A loop that waits for an mbarrier in its middle, behind a function, and then for all threads.
_KERNEL = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 out) .reqntid 64 {{
.shared .align 8 .b64 done;
.reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %rd<5>; .reg .pred %p<4>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1;
mov.u32 %r2, done; setp.ne.u32 %p1, %r1, 0;
@!%p1 mbarrier.init.shared.b64 [%r2], 64;
bar.sync 0;
mov.u32 %r3, 0;
LOOP: ex2.approx.f32 %f1, %f1;
mbarrier.arrive.shared.b64 %rd2, [%r2];
and.b32 %r4, %r3, 1;
AGAIN: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], %r4;
@!%p2 bra AGAIN;
bar.sync 0;
add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, {_ROUNDS}; @%p3 bra LOOP;
mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3; st.global.f32 [%rd1], %f1; ret; }}
"""


def test_a_loop_that_waits_in_its_middle() -> None:
    """Its first part belongs to the next round, wherever ptxas put the second one."""
    kernel = load_kernel(_KERNEL, builtin_machines()["h100-sxm"])
    result = time_kernel(kernel, (1, 1, 1), None, [np.zeros(64, np.float32)], trace_clk=1e6)
    kinds = {"MUFU.EX2": "first", "PHASECHK": "wait", "BAR.SYNC": "meeting"}
    for warp in ("block 0 warp 0", "block 0 warp 1"):
        mine = sorted((start, what) for row, what, start, _ in result.marks if row == warp)
        order = [kind for _, what in mine for text, kind in kinds.items() if text in what]
        assert order == ["meeting", *["first", "wait", "meeting"] * _ROUNDS]
